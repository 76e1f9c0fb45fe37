class PartitionState:
    is_leader: bool
    leader_epoch: int
    is_plain: bool
    is_watched: bool
    @property
    def append_errno(self) -> int: ...
