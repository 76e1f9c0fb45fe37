"""A token bucket: how many things may happen now if there may be so many a second."""

from __future__ import annotations


class TokenBucket:
    """Holds up to one second's worth of tokens, full at first. Not thread-safe; time comes with each call."""

    __slots__ = ("_rate", "_tokens", "_updated_ms")

    def __init__(self, rate: float, now_ms: int) -> None:
        self._rate = rate
        self._tokens = max(rate, 1.0)
        self._updated_ms = now_ms

    def set_rate(self, rate: float, now_ms: int) -> None:
        """Changes the tokens per second; what has been saved stays, up to the new capacity."""
        if rate != self._rate:
            self._refill(now_ms)
            self._rate = rate
            self._tokens = min(self._tokens, max(rate, 1.0))

    def delay_ms(self, now_ms: int) -> int:
        """Milliseconds until a token is there: 0 if there is one; at most 1,000, to be asked again."""
        self._refill(now_ms)
        if self._tokens >= 1.0:
            return 0
        if self._rate <= 0:
            return 1000
        return min(1000, int((1.0 - self._tokens) * 1000 / self._rate) + 1)

    def take(self) -> None:
        self._tokens -= 1.0

    def _refill(self, now_ms: int) -> None:
        gained = (now_ms - self._updated_ms) * self._rate / 1000
        self._tokens = min(self._tokens + gained, max(self._rate, 1.0))
        self._updated_ms = now_ms
