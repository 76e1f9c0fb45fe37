from kafkapy._core.broker_state.topic_counters import TopicCounters

class PartitionState:
    counters: TopicCounters
    is_leader: bool
    leader_epoch: int
    is_gated: bool
    is_watched: bool
    @property
    def append_errno(self) -> int: ...
