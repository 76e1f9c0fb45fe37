"""A transaction coordinator on a log in memory, driven by the commands of a transcript; its responses become lines."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from kafkapy.coordinator.transaction.end_of_transaction import EndRequest
from kafkapy.coordinator.transaction.marker_delivery import MarkerResults
from kafkapy.coordinator.transaction.transaction_config import TransactionConfig
from kafkapy.coordinator.transaction.transaction_coordinator import TransactionCoordinator
from kafkapy.coordinator.transaction.transaction_requests import (
    InitCall,
    ProducerIdAndEpoch,
    ProducerResponse,
    TransactionMarker,
)
from kafkapy.coordinator.transaction.transaction_state import TransactionState
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.coordinator_record import Coordinator, decode_coordinator_key, decode_coordinator_value
from kafkapy.types import TopicPartition
from tests.harness.config import FixedBrokerKeys
from tests.memory_coordinator_log import MemoryCoordinatorLog
from tests.mock_clock import MockClock
from tests.scenarios.group_harness import MockSchedule

SETTINGS = {
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.load.buffer.size": 1 << 20,
    "transaction.max.timeout.ms": 900000,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 10000,
    "transactional.id.expiration.ms": 604800000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 3600000,
}


class ScriptedMarkers:
    """Acknowledges each marker: at once, or at `release` while `is_holding`; with NONE, or once with the error in
    `errors`."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        self.is_holding = False
        self.errors: dict[TopicPartition, Error] = {}
        self._hear = hear
        self._held: list[Callable[[], None]] = []

    def write(
        self,
        marker: TransactionMarker,
        partitions: Collection[TopicPartition],
        on_written: Callable[[MarkerResults], None],
    ) -> None:
        outcome = "commit" if marker.is_commit else "abort"
        places = " ".join(f"{topic}-{number}" for topic, number in sorted(partitions))
        self._hear(
            f"marker: {outcome} producer={marker.producer_id}/{marker.producer_epoch} "
            f"coordinator={marker.coordinator_epoch} {places}"
        )
        results = {partition: self.errors.pop(partition, Error.NONE) for partition in partitions}
        if self.is_holding:
            self._held.append(lambda: on_written(results))
        else:
            on_written(results)

    def release(self) -> None:
        self.is_holding = False
        held, self._held = self._held, []
        for answer in held:
            answer()


class NumberedProducerIds:
    """Generates the ids 1000, 1001, ...; if `error` is set, returns it once instead of an id."""

    def __init__(self) -> None:
        self.next_id = 1000
        self.error: Error | None = None

    def generate(self, on_producer_id: Callable[[int | Error], None]) -> None:
        error, self.error = self.error, None
        if error is not None:
            on_producer_id(error)
            return
        self.next_id += 1
        on_producer_id(self.next_id - 1)


class TransactionHarness:
    """Runs one command at a time; `heard` collects its effects."""

    def __init__(self) -> None:
        self.clock = MockClock()
        self.schedule = MockSchedule(self.clock)
        self.log = MemoryCoordinatorLog()
        self.heard: list[str] = []
        self.markers = ScriptedMarkers(self._hear)
        self.producer_ids = NumberedProducerIds()
        self.transaction_version = 2
        self._shown = 0
        self.coordinator = self._new_coordinator()

    def run(self, command: str) -> list[str]:
        self.heard = []
        name, *words = command.split()
        positional = [word for word in words if "=" not in word]
        named = dict(word.split("=", 1) for word in words if "=" in word)
        getattr(self, f"do_{name}")(*positional, **named)
        self._hear_records()
        return self.heard

    # -- the harness

    def do_version(self, level: str) -> None:
        """Finalizes transaction.version."""
        self.transaction_version = int(level)

    def do_elect(self, epoch: str = "0") -> None:
        self.coordinator.elect(0, int(epoch))
        self.schedule.advance(0)

    def do_resign(self) -> None:
        self.coordinator.resign(0)

    def do_restart(self, epoch: str = "1") -> None:
        """Kills the broker and starts it again with its log."""
        self.schedule = MockSchedule(self.clock)
        self.markers = ScriptedMarkers(self._hear)
        self.coordinator = self._new_coordinator()
        self.do_elect(epoch)

    def do_advance(self, milliseconds: str) -> None:
        self.schedule.advance(int(milliseconds))

    def do_hold(self, what: str) -> None:
        """Holds the `log`, so that appended records are not committed, or the `markers`, which are not acknowledged."""
        (self.log if what == "log" else self.markers).is_holding = True

    def do_release(self, what: str) -> None:
        (self.log if what == "log" else self.markers).release()

    def do_fail(self, what: str, error: str) -> None:
        """Makes the next append to the log, the next producer id, or the next marker of a partition fail."""
        if what == "log":
            self.log.next_failure = Error[error]
        elif what == "ids":
            self.producer_ids.error = Error[error]
        else:
            self.markers.errors[_partition(what)] = Error[error]

    # -- requests

    def do_init(self, transactional_id: str, timeout: str = "60000", producer: str = "") -> None:
        expected = _producer(producer) if producer else None
        self.coordinator.init_producer_id(InitCall(transactional_id, int(timeout), expected), self._hear_producer)

    def do_add(self, transactional_id: str, producer: str, *partitions: str, client: str = "2") -> None:
        self.coordinator.add_partitions(
            transactional_id,
            _producer(producer),
            frozenset(map(_partition, partitions)),
            int(client),
            lambda error: self._hear(f"added: {error.name}"),
        )

    def do_verify(self, transactional_id: str, producer: str, *partitions: str) -> None:
        try:
            found = self.coordinator.verify_partitions(
                transactional_id, _producer(producer), frozenset(map(_partition, partitions))
            )
        except ApiError as error:
            self._hear(f"verified: {error.error.name}")
            return
        self._hear(f"verified: {' '.join(f'{topic}-{n}={e.name}' for (topic, n), e in sorted(found.items()))}")

    def do_commit(self, transactional_id: str, producer: str, client: str = "2") -> None:
        self._end(transactional_id, producer, client, commit=True)

    def do_abort(self, transactional_id: str, producer: str, client: str = "2") -> None:
        self._end(transactional_id, producer, client, commit=False)

    def _end(self, transactional_id: str, producer: str, client: str, *, commit: bool) -> None:
        request = EndRequest(*_producer(producer), commit, int(client))
        self.coordinator.end(transactional_id, request, self._hear_producer)

    def do_describe(self, transactional_id: str) -> None:
        try:
            found = self.coordinator.find(transactional_id)
        except ApiError as error:
            self._hear(f"described: {error.error.name}")
            return
        places = [f"{topic}-{number}" for topic, number in sorted(found.partitions)]
        producer = f"producer={found.producer_id}/{found.producer_epoch}"
        self._hear(" ".join([f"described: {found.state.title}", producer, *places]))

    # -- effects

    def _new_coordinator(self) -> TransactionCoordinator:
        return TransactionCoordinator(
            TransactionConfig.from_broker_config(FixedBrokerKeys(SETTINGS)),
            log=self.log,
            schedule=self.schedule,
            clock=self.clock,
            producer_ids=self.producer_ids,
            marker_writer=self.markers,
            transaction_version=lambda: self.transaction_version,
        )

    def _hear(self, line: str) -> None:
        self._hear_records()
        self.heard.append(line)

    def _hear_producer(self, answer: ProducerResponse) -> None:
        producer_id, epoch = answer.producer
        self._hear(f"producer: {answer.error.name if answer.error else f'{producer_id}/{epoch}'}")

    def _hear_records(self) -> None:
        records = self.log.records[self._shown :]
        self._shown = len(self.log.records)
        for record in records:
            self.heard.append(f"record: {_said(record.key, record.value)}")


def _producer(text: str) -> ProducerIdAndEpoch:
    producer_id, epoch = text.split("/")
    return ProducerIdAndEpoch(int(producer_id), int(epoch))


def _partition(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


def _said(key_bytes: bytes, value_bytes: bytes | None) -> str:
    key: Any = decode_coordinator_key(key_bytes, Coordinator.TRANSACTION)
    if value_bytes is None:
        return f"{key.transactional_id} deleted"
    value: Any = decode_coordinator_value(0, value_bytes, Coordinator.TRANSACTION)
    words = [key.transactional_id, TransactionState(value.transaction_status).title]
    words.append(f"producer={value.producer_id}/{value.producer_epoch}")
    if value.next_producer_id != -1:
        words.append(f"next={value.next_producer_id}")
    words += [f"{each.topic}-{number}" for each in value.transaction_partitions or () for number in each.partition_ids]
    return " ".join(words)
