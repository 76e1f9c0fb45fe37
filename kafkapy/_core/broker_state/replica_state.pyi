class PeerState:
    epoch: int
    is_active: bool

class ReplicaState:
    log_start_offset: int
    log_end_offset: int
    last_fetch_leader_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int
    broker_epoch: int
    is_in_maximal_isr: bool
    def __init__(self, broker_id: int, peer: PeerState) -> None: ...
    @property
    def broker_id(self) -> int: ...
    @property
    def peer(self) -> PeerState: ...
    def record_fetch(
        self, fetch_offset: int, log_start_offset: int, leader_end_offset: int, monotonic_ms: int, broker_epoch: int
    ) -> None: ...
    def is_caught_up(self, leader_end_offset: int, monotonic_ms: int, lag_max_ms: int) -> bool: ...
    def is_outdated(self, broker_epoch: int) -> bool: ...
