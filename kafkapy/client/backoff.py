"""Exponential backoff with jitter, so that many clients do not retry at the same moment."""

from __future__ import annotations

import random
from collections.abc import Callable

JITTER = 0.2


class ExponentialBackoff:
    """Computes pauses before retries: `initial` ms, doubled at each further attempt, at most `largest` ms.

    Each pause is changed at random by up to a fifth in either direction. `chance` returns a random number from 0 to 1.
    The object does not change, so that any thread may use it.
    """

    __slots__ = ("_chance", "_initial", "_largest")

    def __init__(self, initial: int, largest: int, chance: Callable[[], float] = random.random) -> None:
        self._initial = min(initial, largest)
        self._largest = largest
        self._chance = chance

    def pause_ms(self, attempts: int) -> int:
        """Returns the pause in ms before a retry; `attempts` is the number of pauses since the last success."""
        term = min(self._initial * 2 ** min(attempts, 30), self._largest)
        return int(term * (1 - JITTER + 2 * JITTER * self._chance()))
