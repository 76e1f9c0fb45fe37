"""Simulated clients for the tools' unit tests: a consumer, a producer, an admin client, and records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from kafkapy.client import TopicPartition
from kafkapy.client.admin import (
    EARLIEST,
    LATEST,
    GroupDescription,
    GroupListing,
    MemberDescription,
    Node,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    PartitionDescription,
    Results,
    TopicDescription,
)
from kafkapy.client.cluster import PartitionInfo
from kafkapy.errors import ApiError, Error

Key = TypeVar("Key")
Value = TypeVar("Value")
COORDINATOR = Node(1, "localhost", 9092)


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
    delivery_count: int = 0


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
    """A producer that records what it sends; sends of values in `failing` fail with their error.

    events: "begin", "send" and "commit" in their order.
    """

    def __init__(self, failing: dict[bytes, Exception] | None = None) -> None:
        self._failing = failing or {}
        self.sent: list[tuple[str, bytes | None, bytes | None, Any]] = []
        self.events: list[str] = []

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
        self.events.append("send")
        error = self._failing.get(value)
        if on_delivery is not None:
            on_delivery(None, error)
        return SimulatedDelivery(error)

    def begin_transaction(self) -> None:
        self.events.append("begin")

    def commit_transaction(self) -> None:
        self.events.append("commit")


def results(values: Mapping[Key, Value], errors: Mapping[Key, ApiError] | None = None) -> Results[Key, Value]:
    """Returns the results of an operation of the admin client."""
    made: Results[Key, Value] = Results()
    made.values.update(values)
    made.errors.update(errors or {})
    return made


def group(group_id: str, state: str = "Empty", members: tuple[MemberDescription, ...] = ()) -> GroupDescription:
    """Returns a classic group of consumers."""
    return GroupDescription(group_id, "Classic", state, "consumer", "range", members, COORDINATOR)


class SimulatedAdmin:
    """An admin client of a cluster with the given topics, groups and committed offsets.

    topics: name -> (log start offset, log end offset) of each partition. times: timestamp -> offset of every partition.
    """

    def __init__(
        self,
        topics: Mapping[str, list[tuple[int, int]]],
        *groups: GroupDescription,
        committed: Mapping[str, Mapping[TopicPartition, int]] | None = None,
        times: Mapping[int, int] | None = None,
    ) -> None:
        self._topics = topics
        self._groups = {each.group_id: each for each in groups}
        self.committed = {name: dict(offsets) for name, offsets in (committed or {}).items()}
        self._times = times or {}
        self.leaders: dict[TopicPartition, int] = {}

    def describe_topics(self, topics: Iterable[str], **options: Any) -> Results[str, TopicDescription]:
        names = list(topics)
        found = {
            name: TopicDescription(
                name,
                bytes(16),
                False,
                tuple(
                    PartitionDescription(number, self.leaders.get(TopicPartition(name, number), 1), 0, (1,), (1,))
                    for number in range(len(self._topics[name]))
                ),
            )
            for name in names
            if name in self._topics
        }
        unknown = ApiError(Error.UNKNOWN_TOPIC_OR_PARTITION)
        return results(found, {name: unknown for name in names if name not in found})

    def list_offsets(
        self, partitions: Mapping[TopicPartition, int], **options: Any
    ) -> Results[TopicPartition, OffsetAndTimestamp]:
        found = {}
        for partition, time in partitions.items():
            start, end = self._topics[partition.topic][partition.partition]
            offset = start if time == EARLIEST else end if time == LATEST else self._times.get(time, -1)
            found[partition] = OffsetAndTimestamp(offset, -1, 0)
        return results(found)

    def list_groups(self, **options: Any) -> list[GroupListing]:
        self.list_options = options
        return [GroupListing(each.group_id, "consumer", each.state, each.type) for each in self._groups.values()]

    def describe_groups(self, groups: Iterable[str], **options: Any) -> Results[str, GroupDescription]:
        names = list(groups)
        missing = {
            name: ApiError(Error.GROUP_ID_NOT_FOUND, f"Group {name} not found.")
            for name in names
            if name not in self._groups
        }
        return results({name: self._groups[name] for name in names if name in self._groups}, missing)

    def delete_groups(self, groups: Iterable[str], **options: Any) -> Results[str, None]:
        described = self.describe_groups(groups)
        full = {name: ApiError(Error.NON_EMPTY_GROUP) for name, each in described.values.items() if each.members}
        return results(dict.fromkeys(described.values.keys() - full.keys()), {**described.errors, **full})

    def list_group_offsets(
        self, groups: Iterable[str], **options: Any
    ) -> Results[str, dict[TopicPartition, OffsetAndMetadata]]:
        return results(
            {
                name: {
                    partition: OffsetAndMetadata(offset) for partition, offset in self.committed.get(name, {}).items()
                }
                for name in groups
            }
        )

    def alter_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int], **options: Any
    ) -> Results[TopicPartition, None]:
        self.committed.setdefault(group, {}).update(offsets)
        return results(dict.fromkeys(offsets))

    def delete_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition], **options: Any
    ) -> Results[TopicPartition, None]:
        if group not in self._groups:
            raise ApiError(Error.GROUP_ID_NOT_FOUND, f"Group {group} not found.")
        read = {each for member in self._groups[group].members for each in member.partitions}
        names = list(partitions)
        refused = {name: ApiError(Error.GROUP_SUBSCRIBED_TO_TOPIC) for name in names if name in read}
        return results({name: None for name in names if name not in refused}, refused)
