"""Quantiles of the last minute, out of counts that only grow.

Nothing runs between two scrapes: each one keeps what it read, and compares with the oldest that is not older than the
window. The first one compares with the start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

WINDOW_S = 60.0
# More scrapes than this within the window do not each keep what they read.
MOST_KEPT = 16

T = TypeVar("T")


class Window(Generic[T]):
    """Owns what was read in the last minute, oldest first. One thread."""

    def __init__(self, first: T, now_s: float, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._kept: deque[tuple[float, T]] = deque([(now_s, first)])

    def before(self, now_s: float) -> tuple[float, T]:
        """What to compare with: the time and the reading, the oldest of the window, or the newest before it."""
        kept = self._kept
        while len(kept) > 1 and now_s - kept[1][0] >= self._window_s:
            kept.popleft()
        return kept[0]

    def keep(self, now_s: float, reading: T) -> None:
        if now_s - self._kept[-1][0] >= self._window_s / MOST_KEPT:
            self._kept.append((now_s, reading))


def quantile(fraction: float, counts: Sequence[int], bounds: Sequence[float]) -> float:
    """The value below which `fraction` of all lie, between the bounds of its bucket in proportion; NaN of nothing.

    `counts[n]` lie below `bounds[n]`, and not below the one before; the last has no bound, its lower one stands for it.
    """
    total = sum(counts)
    if total == 0:
        return float("nan")
    wanted = fraction * total
    below = 0
    lower = 0.0
    for index, count in enumerate(counts):
        if count and below + count >= wanted:
            if index >= len(bounds):
                return lower
            return lower + (bounds[index] - lower) * (wanted - below) / count
        below += count
        if index < len(bounds):
            lower = bounds[index]
    return lower
