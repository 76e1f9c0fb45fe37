"""Holds the reading and writing of background work (cleaning, moving between directories) to a rate."""

from collections.abc import Callable

from kafkapy.types import Clock

PERIOD_MS = 300
# So long a change of the rate may be without effect.
LONGEST_WAIT_MS = 1000


class IoThrottle:
    """Owns the count of bytes in the current period. One thread."""

    __slots__ = ("_clock", "_counted", "_period_start_ms", "_rate", "_wait_ms")

    def __init__(self, rate: Callable[[], float], clock: Clock, wait_ms: Callable[[int], object]) -> None:
        """`rate()`: bytes per second, asked again and again; `wait_ms(n)` sleeps, or returns True at once to stop."""
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
        while (excess_ms := self._excess_ms()) > 0:
            if self._wait_ms(min(excess_ms, LONGEST_WAIT_MS)):
                break
        self._counted = 0
        self._period_start_ms = self._clock.monotonic_ms()

    def _excess_ms(self) -> int:
        elapsed_ms = self._clock.monotonic_ms() - self._period_start_ms
        return int(self._counted * 1000 / self._rate()) - elapsed_ms
