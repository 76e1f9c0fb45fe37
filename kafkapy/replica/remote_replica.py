"""The leader's view of one follower, which it derives from the follower's fetch requests."""

from __future__ import annotations

from kafkapy._core.broker_state.replica_state import PeerState, ReplicaState

UNKNOWN_OFFSET = -1
# Earlier than any time of a monotonic clock.
NEVER_MS = -(1 << 62)
# The broker epoch of a follower that has not fetched yet; -1 is the epoch of a follower that does not send one.
NEVER_FETCHED = -2


class RemoteReplica(ReplicaState):
    """The state of one follower. Used only by the thread that owns it. Times are milliseconds of a monotonic clock.

    `log_end_offset` is the offset of the follower's last fetch, so that it lags behind the follower by one request.
    Invariant: `last_caught_up_ms` does not decrease within a leader epoch.
    """

    __slots__ = ()

    def __init__(self, broker_id: int, peer: PeerState) -> None:
        super().__init__(broker_id, peer)
        self._forget()
        self.last_caught_up_ms = NEVER_MS

    def _forget(self) -> None:
        self.log_start_offset = UNKNOWN_OFFSET
        self.log_end_offset = UNKNOWN_OFFSET
        self.last_fetch_leader_end_offset = UNKNOWN_OFFSET
        self.last_fetch_ms = NEVER_MS
        self.broker_epoch = NEVER_FETCHED

    def reset(self, monotonic_ms: int, leader_end_offset: int, *, is_new_leader: bool, is_in_sync: bool) -> None:
        """Resets the state at the beginning of a leader epoch.

        A follower in the ISR (`is_in_sync`) then has replica.lag.time.max.ms to fetch before it can leave the ISR. If
        this broker led the former epoch too (not `is_new_leader`), the follower's offsets are kept, and its next fetch
        is compared with `leader_end_offset`, the end of the log at the beginning of the epoch.
        """
        caught_up_ms = monotonic_ms if is_in_sync else NEVER_MS
        self.last_caught_up_ms = caught_up_ms
        if is_new_leader:
            self._forget()
        else:
            self.last_fetch_leader_end_offset = leader_end_offset
            self.last_fetch_ms = caught_up_ms
