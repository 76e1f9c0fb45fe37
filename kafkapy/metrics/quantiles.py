"""Quantiles of the last minute, computed from counts that only grow.

Nothing runs between two scrapes: each scrape stores its reading and compares it with a reading that is about one minute
old. The first scrape compares with the reading at the start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

WINDOW_S = 60.0
# Readings within a window; more frequent scrapes store only some of theirs.
MOST_KEPT = 16

T = TypeVar("T")


class Window(Generic[T]):
    """Earlier readings of counts that only grow, each with its time, oldest first. They cover at least the last
    `window_s` seconds. Used by one thread."""

    def __init__(self, first: T, now_s: float, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._kept: deque[tuple[float, T]] = deque([(now_s, first)])

    def before(self, now_s: float) -> tuple[float, T]:
        """Returns the time and the value of the earlier reading with which to compare the present reading, made at
        `now_s`.

        This is the newest reading that is at least `window_s` seconds old, or the oldest reading if all are younger.
        """
        kept = self._kept
        while len(kept) > 1 and now_s - kept[1][0] >= self._window_s:
            kept.popleft()
        return kept[0]

    def keep(self, now_s: float, reading: T) -> None:
        if now_s - self._kept[-1][0] >= self._window_s / MOST_KEPT:
            self._kept.append((now_s, reading))


def quantile(fraction: float, counts: Sequence[int], bounds: Sequence[float]) -> float:
    """Returns the value below which `fraction` (0 to 1) of all values lie, interpolated within its bucket.

    Returns NaN if there are no values. `counts[n]` is the number of values between `bounds[n - 1]` (or 0) and
    `bounds[n]`. The last bucket has no upper bound; for a quantile in it, its lower bound is returned.
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
