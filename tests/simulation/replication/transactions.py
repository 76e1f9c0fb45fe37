"""Transactional producers of a simulated cluster, with a coordinator that never fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kafkapy.coordinator.transaction.transaction_metadata import TRANSACTION_VERSION_2
from kafkapy.coordinator.transaction.transaction_requests import TransactionMarker
from kafkapy.errors import Error
from kafkapy.server.transaction_markers import LocalMarkerWriter
from kafkapy.types import TopicPartition
from tests.simulation.replication.clients import (
    ACKS_ALL,
    PRODUCE_TIMEOUT_MS,
    REQUEST_TIMEOUT_MS,
    RETRY_MS,
    Metadata,
    Producer,
)
from tests.simulation.replication.world import CLIENT, World

if TYPE_CHECKING:
    from tests.simulation.replication.broker import Broker

COORDINATOR_EPOCH = 0


class TransactionalProducer:
    """Begins one transaction after the other. Each has an epoch and a name of its own, as with transaction.version 2.

    The coordinator's decision is durable at once. Its markers are written to every partition, again and again, before
    the next transaction begins; requests of earlier attempts may arrive later.
    """

    def __init__(self, world: World, number: int, partitions: list[TopicPartition]) -> None:
        self.world = world
        self.number = number
        self.partitions = partitions
        self.producer_id = 1000 + number
        self.epoch = 0
        self.writers: list[Producer] = []
        self.committed: list[Producer] = []
        self._count = 0
        self._unmarked: set[TopicPartition] = set()

    @property
    def is_idle(self) -> bool:
        return not self.writers and not self._unmarked

    def step(self) -> None:
        """Begins a transaction, continues it, or ends it."""
        random = self.world.random
        if self._unmarked:
            return
        if not self.writers:
            self._begin()
        elif any(writer.is_busy for writer in self.writers):
            if random.random() < 0.1:
                self._end(is_commit=False)
        elif random.random() < 0.5:
            for writer in self.writers:
                writer.send()
        else:
            self._end(is_commit=random.random() < 0.6)

    def finish(self) -> None:
        """Ends the transaction if there is one."""
        if self.writers and not any(writer.is_busy for writer in self.writers):
            self._end(is_commit=True)

    def _begin(self) -> None:
        self._count += 1
        count = self.world.random.randint(1, len(self.partitions))
        for partition in self.world.random.sample(self.partitions, count):
            name = f"transaction{self.number}.{self._count}"
            writer = Producer(self.world, name, partition, ACKS_ALL, self.producer_id, self.epoch)
            writer.is_transactional = True
            writer.send()
            self.writers.append(writer)

    def _end(self, *, is_commit: bool) -> None:
        writers, self.writers = self.writers, []
        self.world.note(f"{writers[0].name!r} {'commits' if is_commit else 'aborts'}")
        self.world.history.outcomes[writers[0].name] = is_commit
        if is_commit:
            self.committed += writers
        self.epoch += 1
        marker = TransactionMarker(
            self.producer_id, self.epoch, COORDINATOR_EPOCH, is_commit, transaction_version=TRANSACTION_VERSION_2
        )
        for writer in writers:
            writer.give_up()
            self._unmarked.add(writer.partition)
            self._write(marker, writer.metadata)

    def _write(self, marker: TransactionMarker, metadata: Metadata) -> None:
        """Writes the marker to one partition, until its leader has acknowledged it."""
        world, partition = self.world, metadata.partition
        is_done = False
        attempts = 0

        def attempt(after: int) -> None:
            """Tries again, unless another attempt was made since."""
            nonlocal attempts
            if is_done or after != attempts:
                return
            attempts += 1
            number = attempts
            world.after(REQUEST_TIMEOUT_MS, lambda: attempt(number))
            leader = metadata.leader_broker()
            if leader is not None:
                world.transmit(CLIENT, leader.broker_id, lambda: leader.receive(lambda: handle(leader)))

        def handle(leader: Broker) -> None:
            if leader.is_accepting:
                no_groups: Any = None
                writer = LocalMarkerWriter(leader.manager, no_groups, world, PRODUCE_TIMEOUT_MS)
                writer.write(marker, [partition], lambda errors: respond(leader, errors))

        def respond(leader: Broker, errors: Mapping[TopicPartition, Error]) -> None:
            error = errors[partition]
            world.transmit(leader.broker_id, CLIENT, lambda: take(error))

        def take(error: Error) -> None:
            nonlocal is_done
            if is_done:
                return
            if error is Error.NONE:
                is_done = True
                self._unmarked.remove(partition)
            else:
                number = attempts
                world.after(RETRY_MS, lambda: attempt(number))

        attempt(0)
