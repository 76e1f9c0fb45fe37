"""Limits the rate at which background work (cleaning, moves between directories) reads and writes."""

from collections.abc import Callable

from kafkapy.types import Clock

PERIOD_MS = 300
# The longest time until a change of the rate takes effect.
LONGEST_WAIT_MS = 1000


class IoThrottle:
    """A limit on bytes per second: counts the bytes of the current period and waits. Used by one thread."""

    __slots__ = ("_clock", "_counted", "_period_start_ms", "_rate", "_wait_ms")

    def __init__(self, rate: Callable[[], float], clock: Clock, wait_ms: Callable[[int], object]) -> None:
        """Creates a throttle that has counted no bytes yet.

        `rate()` returns the limit in bytes per second, which may change. `wait_ms(n)` sleeps for n ms, and returns True
        if the caller must not wait any longer.
        """
        self._rate = rate
        self._clock = clock
        self._wait_ms = wait_ms
        self._counted = 0
        self._period_start_ms = clock.monotonic_ms()

    def count(self, size: int) -> None:
        """Counts `size` bytes read or written, and waits if they exceed the rate."""
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
