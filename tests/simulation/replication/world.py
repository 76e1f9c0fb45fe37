"""The nodes of a simulated cluster with replicated partitions, its clock, and what a schedule permits."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from kafkapy._core.gate.data_gate import DataGate
from tests.simulation.network import Action, Network
from tests.simulation.replication.history import History

if TYPE_CHECKING:
    from tests.simulation.replication.broker import Broker
    from tests.simulation.replication.controller import SimulatedController

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


class World(Network):
    """The network of the brokers, and the clock of all nodes (`kafkapy.types.Clock`)."""

    def __init__(self, random: Random, *, is_traced: bool = False) -> None:
        super().__init__(random, is_traced=is_traced)
        self.history = History(self)
        self.brokers: dict[int, Broker] = {}
        self.controller: SimulatedController
        self.fail_in_sync = 0.0
        self.gate_share = 0.0  # of the produce and fetch requests; these are offered to the gate of their broker
        self.gated: Counter[str] = Counter()  # what the gates of all processes that have ended have served
        self.loses_power = False
        self.most_disturbed = -1  # the brokers that may be down at a time without a clean stop; -1: all

    def note_gated(self, gate: DataGate) -> None:
        """Adds the counters of a gate whose process ends."""
        self.gated.update(gate.counters())

    # -- clock

    def monotonic_ms(self) -> int:
        return self.now_ms

    def wall_ms(self) -> int:
        return WALL_MS + self.now_ms

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
