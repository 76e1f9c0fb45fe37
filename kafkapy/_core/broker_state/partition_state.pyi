from collections.abc import Mapping
from typing import Any

from kafkapy._core.broker_state.client_notes import ClientNotes
from kafkapy._core.broker_state.quota_sensor import QuotaSensor
from kafkapy._core.broker_state.replica_state import ReplicaState
from kafkapy._core.broker_state.topic_counters import TopicCounters

class PartitionState:
    counters: TopicCounters
    is_leader: bool
    leader_epoch: int
    is_gated: bool
    is_for_clients: bool
    is_watched: bool
    is_commit_watched: bool
    large_fetch_noted_until_ms: int
    min_insync_replicas: int
    leader_epoch_start_offset: int
    replica_lag_max_ms: int
    client_notes: ClientNotes | None
    leader_throttle: QuotaSensor | None
    @property
    def remote_replicas(self) -> dict[int, Any]: ...
    @property
    def effective_min_isr(self) -> int: ...
    @property
    def awaited_count(self) -> int: ...
    def set_remote_replicas(self, replicas: Mapping[int, ReplicaState]) -> None: ...
    def set_isr(self, isr_size: int, maximal_isr: frozenset[int], is_in_flight: bool) -> None: ...
    def raise_high_watermark(self, monotonic_ms: int) -> bool: ...
    def watch_fetch(self, *, is_from_follower: bool) -> None: ...
    def is_withheld(self, replica: ReplicaState, monotonic_ms: int) -> bool: ...
    def may_expand_isr(self, replica: ReplicaState) -> bool: ...
    @property
    def append_errno(self) -> int: ...
