"""The leader's view of one follower, which it derives from the follower's fetch requests."""

from __future__ import annotations

UNKNOWN_OFFSET = -1
# Earlier than any time of a monotonic clock.
NEVER_MS = -(1 << 62)
# The broker epoch of a follower that has not fetched yet; -1 is the epoch of a follower that does not send one.
NEVER_FETCHED = -2


class RemoteReplica:
    """The state of one follower. Used by the owner thread only. Times are milliseconds of a monotonic clock.

    `log_end_offset` is the offset of the follower's last fetch, so that it lags behind the follower by one request.
    Invariant: `last_caught_up_ms` does not decrease within a leader epoch.
    """

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "last_caught_up_ms",
        "last_fetch_leader_end_offset",
        "last_fetch_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.log_start_offset = UNKNOWN_OFFSET
        self.log_end_offset = UNKNOWN_OFFSET
        self.last_fetch_leader_end_offset = UNKNOWN_OFFSET
        self.last_fetch_ms = NEVER_MS
        self.last_caught_up_ms = NEVER_MS
        self.broker_epoch = NEVER_FETCHED

    def reset(self, monotonic_ms: int, leader_end_offset: int, *, is_new_leader: bool, is_in_sync: bool) -> None:
        """Begins a leader epoch: an in-sync follower has the whole lag limit to fetch before it can leave the ISR."""
        caught_up_ms = monotonic_ms if is_in_sync else NEVER_MS
        self.last_caught_up_ms = caught_up_ms
        if is_new_leader:
            self.log_start_offset = UNKNOWN_OFFSET
            self.log_end_offset = UNKNOWN_OFFSET
            self.last_fetch_leader_end_offset = UNKNOWN_OFFSET
            self.last_fetch_ms = NEVER_MS
            self.broker_epoch = NEVER_FETCHED
        else:
            self.last_fetch_leader_end_offset = leader_end_offset
            self.last_fetch_ms = caught_up_ms

    def record_fetch(
        self, fetch_offset: int, log_start_offset: int, leader_end_offset: int, monotonic_ms: int, broker_epoch: int
    ) -> None:
        """Records a fetch from `fetch_offset` while the leader's log ended at `leader_end_offset`.

        The follower is caught up now if it fetches from that end. It was caught up at its previous fetch if it fetches
        from the log end of that time: a follower that keeps pace with a steady writer never reaches the moving end but
        is in sync.
        """
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, monotonic_ms)
        elif fetch_offset >= self.last_fetch_leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_start_offset = log_start_offset
        self.log_end_offset = fetch_offset
        self.last_fetch_leader_end_offset = max(leader_end_offset, self.last_fetch_leader_end_offset)
        self.last_fetch_ms = monotonic_ms
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end_offset: int, monotonic_ms: int, lag_max_ms: int) -> bool:
        """Returns whether the follower is at the leader's log end, or was within the last `lag_max_ms`."""
        return self.log_end_offset == leader_end_offset or monotonic_ms - self.last_caught_up_ms <= lag_max_ms
