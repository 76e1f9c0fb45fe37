"""The time of a simulation, and a network that loses, delays, duplicates and reorders messages."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from itertools import count
from random import Random

Action = Callable[[], None]

BEGIN_MS = 1_000_000
LONGEST_DELAY_MS = 3000  # of a slow message; the others take 1 to 8 ms


class Network:
    """Owns the events to come, and decides what happens to each message. `cut` has the pairs of source and target
    between which messages are lost; `drop`, `duplicate` and `slow` are probabilities."""

    def __init__(self, random: Random, *, is_traced: bool = False) -> None:
        self.random = random
        self.now_ms = BEGIN_MS
        self.drop = 0.0
        self.duplicate = 0.0
        self.slow = 0.0
        self.cut: set[tuple[int, int]] = set()
        self.trace: list[str] | None = [] if is_traced else None
        self._events: list[tuple[int, int, Action]] = []
        self._numbers = count()

    def note(self, text: str) -> None:
        """Adds a line to the trace of a replayed schedule."""
        if self.trace is not None:
            self.trace.append(f"{self.now_ms - BEGIN_MS:7} {text}")

    def after(self, delay_ms: int, action: Action) -> None:
        """Makes `advance` call `action()` when `delay_ms` milliseconds of simulated time have passed."""
        heapq.heappush(self._events, (self.now_ms + delay_ms, next(self._numbers), action))

    def advance(self, duration_ms: int) -> None:
        """Runs the events of the next `duration_ms` milliseconds."""
        until_ms = self.now_ms + duration_ms
        events = self._events
        while events and events[0][0] <= until_ms:
            at_ms, _, action = heapq.heappop(events)
            self.now_ms = max(self.now_ms, at_ms)
            action()
        self.now_ms = until_ms

    def cut_off(self, ids: Iterable[int], probability: float) -> None:
        """Cuts some nodes off from the others, each with the given probability, and sometimes in one direction only."""
        nodes = list(ids)
        side = {node for node in nodes if self.random.random() < probability}
        is_one_way = self.random.random() < 0.3
        self.note(f"cut off {sorted(side)}")
        self.cut = {
            (left, right)
            for left in nodes
            for right in nodes
            if (left in side) != (right in side) and not (is_one_way and left in side)
        }

    def join(self) -> None:
        """Ends all cuts, so that every message can arrive again."""
        self.cut = set()

    def delay_ms(self) -> int:
        """Returns how long a message takes."""
        random = self.random.random
        return int(random() * LONGEST_DELAY_MS) if random() < self.slow else 1 + int(random() * 8)

    def transmit(self, source: int, target: int, action: Action) -> bool:
        """Delivers a message after a while, perhaps twice; returns False if it is lost.

        It is lost if the source is cut off from the target.
        """
        if (source, target) in self.cut or self.random.random() < self.drop:
            return False
        for _ in range(2 if self.random.random() < self.duplicate else 1):
            self.after(self.delay_ms(), action)
        return True
