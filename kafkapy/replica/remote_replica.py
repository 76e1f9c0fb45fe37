"""What the leader of a partition knows about one follower: all of it comes from the follower's fetch requests."""

from __future__ import annotations

UNKNOWN_OFFSET = -1
# Before any time that a monotonic clock can show.
NEVER_MS = -(1 << 62)


class RemoteReplica:
    """A follower as its leader sees it. Owner thread only. Times are those of a monotonic clock, in milliseconds.

    The follower's log end offset is the offset of its *next* fetch, so that it lags one request behind the truth.
    Invariant: `last_caught_up_ms` never goes back while the leader stays the same.
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
        self.broker_epoch = -1

    def reset(self, now_ms: int, leader_end_offset: int, *, is_new_leader: bool, is_in_sync: bool) -> None:
        """A leader epoch begins: an in-sync follower has a whole lag limit to fetch before it can leave the ISR."""
        caught_up_ms = now_ms if is_in_sync else NEVER_MS
        self.last_caught_up_ms = caught_up_ms
        if is_new_leader:
            self.log_start_offset = UNKNOWN_OFFSET
            self.log_end_offset = UNKNOWN_OFFSET
            self.last_fetch_leader_end_offset = UNKNOWN_OFFSET
            self.last_fetch_ms = NEVER_MS
            self.broker_epoch = -1
        else:
            self.last_fetch_leader_end_offset = leader_end_offset
            self.last_fetch_ms = caught_up_ms

    def record_fetch(
        self, fetch_offset: int, log_start_offset: int, leader_end_offset: int, now_ms: int, broker_epoch: int
    ) -> None:
        """The follower asked for `fetch_offset` while the leader's log ended at `leader_end_offset`.

        Caught up now if it asks for that end; caught up at its previous fetch if it asks for what was the end then: a
        follower that keeps pace with a steady writer never reaches the moving end, and is in sync all the same.
        """
        if fetch_offset >= leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif fetch_offset >= self.last_fetch_leader_end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_start_offset = log_start_offset
        self.log_end_offset = fetch_offset
        self.last_fetch_leader_end_offset = max(leader_end_offset, self.last_fetch_leader_end_offset)
        self.last_fetch_ms = now_ms
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_max_ms: int) -> bool:
        """At the leader's end, or there less than `lag_max_ms` ago."""
        return self.log_end_offset == leader_end_offset or now_ms - self.last_caught_up_ms <= lag_max_ms
