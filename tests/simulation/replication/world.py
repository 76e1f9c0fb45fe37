"""The time of a simulated cluster, and a network that loses, delays, doubles and reorders messages."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.replication.history import History

if TYPE_CHECKING:
    from tests.simulation.replication.broker import Broker
    from tests.simulation.replication.controller import SimulatedController

Action = Callable[[], None]

BEGIN_MS = 1_000_000
WALL_MS = 1_700_000_000_000
# The places of messages that are no brokers.
CONTROLLER = 0
CLIENT = -1


class Timer:
    """An event that can be cancelled."""

    __slots__ = ("action",)

    def __init__(self, action: Action) -> None:
        self.action: Action | None = action

    def cancel(self) -> None:
        self.action = None

    def run(self) -> None:
        action, self.action = self.action, None
        if action is not None:
            action()


class World:
    """Owns the events to come. It is the clock of all nodes (`kafkapy.types.Clock`)."""

    def __init__(self, random: Random, *, is_traced: bool = False) -> None:
        self.random = random
        self.now_ms = BEGIN_MS
        self.history = History(self)
        self.brokers: dict[int, Broker] = {}
        self.controller: SimulatedController
        self.trace: list[str] | None = [] if is_traced else None
        self.drop = 0.0
        self.duplicate = 0.0
        self.slow = 0.0
        self.fail_in_sync = 0.0
        self.loses_power = False
        self.most_disturbed = -1  # the brokers that may be down at a time without a clean stop; -1: all
        self.cut: set[tuple[int, int]] = set()
        self._events: list[tuple[int, int, Action]] = []
        self._numbers = count()

    # -- clock

    def monotonic_ms(self) -> int:
        return self.now_ms

    def wall_ms(self) -> int:
        return WALL_MS + self.now_ms

    # -- time

    def note(self, text: str) -> None:
        """Adds a line to the trace of a replayed schedule."""
        if self.trace is not None:
            self.trace.append(f"{self.now_ms - BEGIN_MS:7} {text}")

    def after(self, delay_ms: int, action: Action) -> None:
        heapq.heappush(self._events, (self.now_ms + delay_ms, next(self._numbers), action))

    def advance(self, duration_ms: int) -> None:
        """Runs the events of the next so many milliseconds."""
        until_ms = self.now_ms + duration_ms
        events = self._events
        while events and events[0][0] <= until_ms:
            at_ms, _, action = heapq.heappop(events)
            self.now_ms = max(self.now_ms, at_ms)
            action()
        self.now_ms = until_ms

    # -- what a schedule permits

    def may_die(self, broker: Broker) -> bool:
        """Returns whether a broker may be killed at this point of the schedule."""
        return self.most_disturbed < 0 or len(self._disturbed(broker)) <= self.most_disturbed

    def may_lose_power(self, broker: Broker) -> bool:
        return self.loses_power and self.may_die(broker)

    def _disturbed(self, broker: Broker) -> set[int]:
        return {broker.broker_id, *(each.broker_id for each in self.brokers.values() if self._is_disturbed(each))}

    def _is_disturbed(self, broker: Broker) -> bool:
        """Returns whether a broker ended without a clean stop, and has not joined all ISRs again since."""
        if broker.is_disturbed and broker.state.name == "RUNNING":
            registration = self.controller.image.brokers.get(broker.broker_id)
            partitions = [each for each in self.controller.partitions().values() if broker.broker_id in each.replicas]
            is_registered = registration is not None and registration.epoch == broker.epoch
            if is_registered and all(broker.broker_id in each.isr for each in partitions):
                broker.is_disturbed = False
        return broker.is_disturbed

    # -- network

    def delay_ms(self) -> int:
        random = self.random.random
        return int(random() * 3000) if random() < self.slow else 1 + int(random() * 8)

    def transmit(self, source: int, target: int, action: Action) -> bool:
        """Delivers a message after a while, perhaps twice; returns False if it is lost.

        Between two brokers the source and the target can be cut off from each other.
        """
        if (source, target) in self.cut or self.random.random() < self.drop:
            return False
        self.after(self.delay_ms(), action)
        if self.random.random() < self.duplicate:
            self.after(self.delay_ms(), action)
        return True
