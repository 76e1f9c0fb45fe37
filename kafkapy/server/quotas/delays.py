"""Statistics of the delays that one kind of quota causes: the clients that wait now, and the average delays."""

from __future__ import annotations

from heapq import heappop, heappush

from kafkapy.metrics.duration_window import DurationWindow
from kafkapy.server.quotas.precedence import Bucket


class Delays:
    """The delays of one kind of quota. Written by the reactor's thread; any thread may read."""

    def __init__(self, window_ms: int) -> None:
        """`window_ms` is the length of the window in which the quota is measured."""
        self._half_ms = max(1, window_ms // 2)
        self._ends_ms: list[int] = []  # a heap
        self._by_bucket: dict[Bucket, DurationWindow] = {}

    def add(self, bucket: Bucket, throttle_ms: int, monotonic_ms: int) -> None:
        """Counts a client's delay of `throttle_ms`. The delay begins at `monotonic_ms`, the time of the call."""
        ends_ms = self._ends_ms
        while ends_ms and ends_ms[0] <= monotonic_ms:
            heappop(ends_ms)
        heappush(ends_ms, monotonic_ms + throttle_ms)
        window = self._by_bucket.get(bucket)
        if window is None:
            window = self._by_bucket[bucket] = DurationWindow(monotonic_ms, self._half_ms)
        window.add(throttle_ms, monotonic_ms)

    def drop(self, bucket: Bucket) -> None:
        """Deletes the delays of the clients in `bucket`, a group of clients that share a limit."""
        self._by_bucket.pop(bucket, None)

    def waiting(self, monotonic_ms: int) -> int:
        """Returns how many delays still last at `monotonic_ms`; Kafka's metric for this number is queue-size.

        As in Kafka, the delay of a client that disconnects counts until its end.
        """
        return sum(1 for end_ms in self._ends_ms.copy() if end_ms > monotonic_ms)

    def average_ms(self, bucket: Bucket, monotonic_ms: int) -> float:
        """Returns the average delay within the window of the clients in `bucket`, a group of clients that share a
        limit. Returns 0 if there were no delays.
        """
        window = self._by_bucket.get(bucket)
        return 0.0 if window is None else window.average(monotonic_ms)
