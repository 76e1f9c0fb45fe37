"""How long to wait before the next attempt: doubling pauses with jitter, so that clients do not come back together."""

from __future__ import annotations

import random
from collections.abc import Callable

JITTER = 0.2


class ExponentialBackoff:
    """Pauses in milliseconds: `initial` times 2 to the power of attempts, at most `largest`, give or take a fifth.

    Immutable; any thread. `chance` gives a number from 0 to 1.
    """

    __slots__ = ("_chance", "_initial", "_largest")

    def __init__(self, initial: int, largest: int, chance: Callable[[], float] = random.random) -> None:
        self._initial = min(initial, largest)
        self._largest = largest
        self._chance = chance

    def pause_ms(self, attempts: int) -> int:
        """The pause after that many failed attempts since the last that went well, less one (0: the first pause)."""
        term = min(self._initial * 2 ** min(attempts, 30), self._largest)
        return int(term * (1 - JITTER + 2 * JITTER * self._chance()))
