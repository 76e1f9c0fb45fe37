"""Holds the log cleaner's reading and writing to `log.cleaner.io.max.bytes.per.second`."""

from collections.abc import Callable

from kafkapy.types import Clock

PERIOD_MS = 300


class CleanerThrottle:
    """Owns the count of bytes in the current period. One thread."""

    __slots__ = ("_clock", "_counted", "_period_start_ms", "_rate", "_wait_ms")

    def __init__(self, rate: Callable[[], float], clock: Clock, wait_ms: Callable[[int], object]) -> None:
        """`rate()`: bytes per second, asked anew each period; `wait_ms(n)` sleeps, or returns early to stop."""
        self._rate = rate
        self._clock = clock
        self._wait_ms = wait_ms
        self._counted = 0
        self._period_start_ms = clock.monotonic_ms()

    def count(self, size: int) -> None:
        """Notes `size` bytes read or written; waits if they were too many for the time that has passed."""
        self._counted += size
        elapsed_ms = self._clock.monotonic_ms() - self._period_start_ms
        if elapsed_ms < PERIOD_MS and self._counted * 1000 < self._rate() * PERIOD_MS:
            return
        excess_ms = int(self._counted * 1000 / self._rate()) - elapsed_ms
        if excess_ms > 0:
            self._wait_ms(excess_ms)
        self._counted = 0
        self._period_start_ms = self._clock.monotonic_ms()
