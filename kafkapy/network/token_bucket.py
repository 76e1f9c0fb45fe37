"""A token bucket, which limits how often something may happen per second."""

from __future__ import annotations


class TokenBucket:
    """A bucket of tokens, which is full at first. Not thread-safe; the caller passes the time.

    Its capacity is the number of tokens that are added in one second, but at least 1.
    """

    __slots__ = ("_rate", "_tokens", "_updated_ms")

    def __init__(self, rate: float, monotonic_ms: int) -> None:
        self._rate = rate
        self._tokens = max(rate, 1.0)
        self._updated_ms = monotonic_ms

    def set_rate(self, rate: float, monotonic_ms: int) -> None:
        """Changes the number of tokens that are added per second; saved tokens stay, up to the new capacity."""
        if rate != self._rate:
            self._refill(monotonic_ms)
            self._rate = rate
            self._tokens = min(self._tokens, max(rate, 1.0))

    def delay_ms(self, monotonic_ms: int) -> int:
        """Returns the milliseconds until a token is available, at most 1,000; 0 if a token is available now. Does not
        remove a token.

        If the result is above 0, the caller waits for that time and calls `delay_ms` again.
        """
        self._refill(monotonic_ms)
        if self._tokens >= 1.0:
            return 0
        if self._rate <= 0:
            return 1000
        return min(1000, int((1.0 - self._tokens) * 1000 / self._rate) + 1)

    def take(self, count: int = 1) -> None:
        self._tokens -= count

    def _refill(self, monotonic_ms: int) -> None:
        gained = (monotonic_ms - self._updated_ms) * self._rate / 1000
        self._tokens = min(self._tokens + gained, max(self._rate, 1.0))
        self._updated_ms = monotonic_ms
