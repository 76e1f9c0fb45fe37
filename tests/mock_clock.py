"""A clock that only the test advances."""

from __future__ import annotations


class MockClock:
    """Both clocks of `kafkapy.types.Clock`, which `advance` moves together."""

    def __init__(self, wall_ms: int = 1_700_000_000_000, monotonic_ms: int = 0) -> None:
        self._wall_ms = wall_ms
        self._monotonic_ms = monotonic_ms

    def wall_ms(self) -> int:
        return self._wall_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def advance(self, elapsed_ms: int) -> None:
        self._wall_ms += elapsed_ms
        self._monotonic_ms += elapsed_ms

    def set_wall_ms(self, wall_ms: int) -> None:
        """Sets the wall clock, as an administrator or NTP does; the monotonic clock does not change."""
        self._wall_ms = wall_ms
