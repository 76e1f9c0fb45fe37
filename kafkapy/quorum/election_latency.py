"""The duration of the quorum's elections, as this node sees it."""

from __future__ import annotations


class ElectionLatency:
    """The number, sum and maximum (in ms) of the periods in which this node knew no leader of the quorum.

    Written by the quorum thread, which runs Raft; any thread may read it.
    """

    __slots__ = ("_since_ms", "count", "longest_ms", "sum_ms")

    def __init__(self) -> None:
        self.count = 0
        self.sum_ms = 0
        self.longest_ms = 0
        self._since_ms: int | None = None

    def leader_is(self, leader_id: int, monotonic_ms: int) -> None:
        """Records that `leader_id` is the leader from `monotonic_ms` on, or that no leader is known if `leader_id` is
        -1.

        Must be called at each such change.
        """
        if leader_id < 0:
            if self._since_ms is None:
                self._since_ms = monotonic_ms
        elif self._since_ms is not None:
            latency_ms = monotonic_ms - self._since_ms
            self._since_ms = None
            self.count += 1
            self.sum_ms += latency_ms
            self.longest_ms = max(self.longest_ms, latency_ms)
