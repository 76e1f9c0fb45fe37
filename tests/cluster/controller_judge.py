"""Explains the records of a metadata log by the decisions of `kafkapy.controller`.

Every record of Apache Kafka's controller about brokers and partitions is compared with what the pure functions return
for the image before it. Nobody knows which request led to a record, so that every decision which is possible at an
offset is tried; the longest equal sequence of records counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

from kafkapy._core.bytes.record_batch import RecordBatch
from kafkapy.controller.broker_registration import (
    begin_controlled_shutdown,
    cordon_directories,
    fence_broker,
    register_broker,
    unfence_broker,
)
from kafkapy.controller.elections import balance_leaders, elect_leaders
from kafkapy.controller.partitions import AlterPartition, alter_partition, assign_directories
from kafkapy.controller.reassignments import alter_partition_reassignments
from kafkapy.controller.result import ControllerResult
from kafkapy.controller.settings import ControllerSettings
from kafkapy.errors import ApiError
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import EMPTY_IMAGE, MetadataImage
from kafkapy.protocol.record_frame import decode_metadata_record, encode_metadata_record
from kafkapy.quorum.log_scanner import LogScanner
from kafkapy.types import TopicPartition

Decision = Callable[[MetadataImage], ControllerResult[Any]]
# The records that the functions in question write.
JUDGED = frozenset({"BrokerRegistrationChangeRecord", "PartitionChangeRecord", "RegisterBrokerRecord"})
IGNORED = frozenset({"BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord", "NoOpRecord"})


class LogRecord(NamedTuple):
    """A record of the log: its offset, its value as it was written, and decoded."""

    offset: int
    value: bytes
    message: Any

    @property
    def kind(self) -> str:
        return type(self.message).__name__


class Reassignment(NamedTuple):
    """A reassignment that was requested; `replicas` is None if the request cancels a reassignment."""

    partition: TopicPartition
    replicas: tuple[int, ...] | None


def read_log(directory: Path) -> list[LogRecord]:
    """Returns the metadata records of a log directory, in order."""
    records: list[LogRecord] = []

    def visit(batch: RecordBatch) -> None:
        if not batch.is_control:
            for record in batch:
                value = bytes(record.value or b"")
                records.append(LogRecord(record.offset, value, decode_metadata_record(value)))

    LogScanner(str(directory)).scan(0, visit)
    return records


class Judge:
    """Replays a log and explains its records. `explained` are the names of the decisions that were recognized."""

    def __init__(self, settings: ControllerSettings, reassignments: Sequence[Reassignment]) -> None:
        self.explained: list[str] = []
        self.unexplained: list[str] = []
        self._settings = settings
        self._reassignments = reassignments
        self._image = EMPTY_IMAGE

    def run(self, records: Sequence[LogRecord]) -> None:
        position = 0
        while position < len(records):
            count = 1
            if records[position].kind in JUDGED:
                count = self._explain(records, position)
            for record in records[position : position + count]:
                self._replay(record)
            position += count

    def _replay(self, record: LogRecord) -> None:
        delta = MetadataDelta(self._image)
        if record.kind not in IGNORED:
            delta.replay(record.message)
        self._image = delta.to_image(record.offset + 1, self._image.epoch)

    def _explain(self, records: Sequence[LogRecord], position: int) -> int:
        self._image = self._image._replace(offset=records[position].offset)
        best, best_name = 0, ""
        for name, decide in self._decisions(records, position):
            try:
                result = decide(self._image)
            except (ApiError, AssertionError):
                continue
            ours = sorted(encode_metadata_record(*record) for record in result.records)
            written = [record.value for record in records[position : position + len(ours)]]
            if len(ours) > best and ours == sorted(written):
                best, best_name = len(ours), name
        record = records[position]
        if not best and _fences_again(self._image, record):
            best, best_name = 1, "fence again"
        if best:
            self.explained.append(best_name)
            return best
        self.unexplained.append(f"{record.offset}: {record.message} after {self._before(record)}")
        return 1

    def _before(self, record: LogRecord) -> object:
        if record.kind == "PartitionChangeRecord":
            topic = self._image.topics.by_id[record.message.topic_id]
            return topic.name, topic.partitions[record.message.partition_id]
        return self._image.brokers.get(record.message.broker_id)

    def _decisions(self, records: Sequence[LogRecord], position: int) -> Iterator[tuple[str, Decision]]:
        settings, message = self._settings, records[position].message
        for broker_id in self._image.brokers:
            yield "fence", partial(fence_broker, broker_id=broker_id, settings=settings)
            yield "unfence", partial(unfence_broker, broker_id=broker_id, settings=settings)
            yield "shutdown", partial(begin_controlled_shutdown, broker_id=broker_id, settings=settings)
            yield "cordon", partial(cordon_directories, broker_id=broker_id, directory_ids=())
        yield from self._registrations(records, position)
        yield "balance", partial(balance_leaders, settings=settings)
        if records[position].kind == "PartitionChangeRecord":
            name = self._image.topics.by_id[message.topic_id].name
            partition = TopicPartition(name, message.partition_id)
            yield "elect", partial(elect_leaders, election_type=0, partitions=[partition], settings=settings)
            yield from self._isr_changes(message)
            yield from self._assignments(message)
            for each in self._reassignments:
                if each.partition == partition:
                    yield "reassign", partial(alter_partition_reassignments, wanted=[each], settings=settings)

    def _registrations(self, records: Sequence[LogRecord], position: int) -> Iterator[tuple[str, Decision]]:
        """Yields the registrations that a RegisterBrokerRecord behind changes of partitions may be the end of."""
        for record in records[position : position + 200]:
            if record.kind == "RegisterBrokerRecord":
                for epoch in (-1, *(broker.epoch for broker in self._image.brokers.values())):
                    yield (
                        "register",
                        partial(
                            register_broker,
                            registration=_registration(self._image, record),
                            clean_broker_epoch=epoch,
                            settings=self._settings,
                            kraft_version=1,
                        ),
                    )
            if record.kind != "PartitionChangeRecord":
                return

    def _isr_changes(self, message: Any) -> Iterator[tuple[str, Decision]]:
        partition = self._image.topics.by_id[message.topic_id].partitions[message.partition_id]
        for size in range(1, len(partition.replicas) + 1):
            for isr in permutations(partition.replicas, size):
                request = AlterPartition(
                    message.topic_id, message.partition_id, partition.leader_epoch, partition.partition_epoch, isr, 0
                )
                yield (
                    "isr",
                    partial(alter_partition, broker_id=partition.leader, request=request, settings=self._settings),
                )

    def _assignments(self, message: Any) -> Iterator[tuple[str, Decision]]:
        if message.directories is None or message.replicas is not None:
            return
        partition = self._image.topics.by_id[message.topic_id].partitions[message.partition_id]
        for broker_id, directory_id in zip(partition.replicas, message.directories, strict=True):
            assignments = {(message.topic_id, message.partition_id): directory_id}
            yield "directory", partial(assign_directories, broker_id=broker_id, assignments=assignments)


def _fences_again(image: MetadataImage, record: LogRecord) -> bool:
    """Returns whether a record fences a fenced broker: Apache Kafka repeats it for every request to shut down."""
    if record.kind != "BrokerRegistrationChangeRecord" or record.message.fenced != 1:
        return False
    return image.brokers[record.message.broker_id].fenced


def _registration(image: MetadataImage, record: LogRecord) -> Any:
    """Returns the registration of a RegisterBrokerRecord as its broker requested it."""
    known = image.brokers.get(record.message.broker_id)
    delta = MetadataDelta(image)
    delta.replay(record.message)
    registered = delta.brokers[record.message.broker_id]
    assert known is None or known.epoch != registered.epoch or known.incarnation_id == registered.incarnation_id
    return registered
