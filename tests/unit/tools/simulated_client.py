"""Simulated clients for the tools' unit tests: a consumer, a producer, and records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from kafkapy.client import TopicPartition
from kafkapy.client.cluster import PartitionInfo


class Record(NamedTuple):
    """A record with the fields of ConsumerRecord, which has no constructor."""

    value: bytes | None
    key: bytes | None = None
    offset: int = 0
    partition: int = 0
    topic: str = "t"
    timestamp: int = 1_700_000_000_000
    timestamp_type: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()


def numbered(count: int, partition: int = 0) -> list[Record]:
    """Returns records with the values b"0", b"1", ... at the offsets 0, 1, ..."""
    return [Record(b"%d" % number, offset=number, partition=partition) for number in range(count)]


class SimulatedConsumer:
    """A consumer whose polls return the given batches in order, or raise them if they are exceptions."""

    def __init__(self, *polls: list[Record] | BaseException, partitions: int = 3) -> None:
        self._polls = list(polls)
        self._partitions = partitions
        self.assigned: list[TopicPartition] = []
        self.subscribed: Any = None
        self.positions: dict[TopicPartition, int | str] = {}
        self.woken = 0

    def poll(self, timeout: float) -> list[Record]:
        batch = self._polls.pop(0) if self._polls else []
        if isinstance(batch, BaseException):
            raise batch
        return batch

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        self.assigned = list(partitions)

    def subscribe(self, topics: Any, listener: Any = None) -> None:
        self.subscribed = topics

    def partitions_for(self, topic: str, timeout: float | None = None) -> tuple[PartitionInfo, ...]:
        return tuple(PartitionInfo(number, 1, 0) for number in range(self._partitions))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.positions[partition] = offset

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        self.positions.update(dict.fromkeys(partitions, "beginning"))

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        self.positions.update(dict.fromkeys(partitions, "end"))

    def wakeup(self) -> None:
        self.woken += 1


class SimulatedDelivery:
    """The delivery of one record, failed if `error` is not None."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    def result(self, timeout: float | None = None) -> None:
        if self._error is not None:
            raise self._error


class SimulatedProducer:
    """A producer that records what it sends; sends of values in `failing` fail with their error."""

    def __init__(self, failing: dict[bytes, Exception] | None = None) -> None:
        self._failing = failing or {}
        self.sent: list[tuple[str, bytes | None, bytes | None, Any]] = []

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        headers: Any = None,
        on_delivery: Callable[[Any, Exception | None], None] | None = None,
    ) -> SimulatedDelivery:
        self.sent.append((topic, key, value, headers))
        error = self._failing.get(value)
        if on_delivery is not None:
            on_delivery(None, error)
        return SimulatedDelivery(error)
