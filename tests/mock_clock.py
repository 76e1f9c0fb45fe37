"""A clock that stands still until the test moves it."""

from __future__ import annotations


class MockClock:
    """Both clocks of `kafkapy.types.Clock`, moved together by `advance`."""

    def __init__(self, now_ms: int = 1_700_000_000_000, monotonic_ms: int = 0) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = monotonic_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def advance(self, elapsed_ms: int) -> None:
        self._now_ms += elapsed_ms
        self._monotonic_ms += elapsed_ms

    def set_now_ms(self, now_ms: int) -> None:
        """The wall clock jumps (set by hand, NTP); the monotonic one does not notice."""
        self._now_ms = now_ms
