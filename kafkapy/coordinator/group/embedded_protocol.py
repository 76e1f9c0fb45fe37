"""The contents of the opaque fields of JoinGroup and SyncGroup of classic consumers: subscriptions and assignments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafkapy._core.bytes.wire import Reader, Writer
from kafkapy.coordinator.group.assignment import Assignment
from kafkapy.errors import ProtocolViolation
from kafkapy.metadata.topics_image import TopicsImage
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.data_records import ConsumerProtocolAssignment, ConsumerProtocolSubscription

_HIGHEST_VERSION = 3


class Subscription(NamedTuple):
    """A decoded subscription. `owned` are the partitions that the client says it has. `version` is the version in which
    the subscription was decoded; the member's assignment has to be encoded in the same version."""

    version: int
    topics: tuple[str, ...]
    owned: Assignment
    rack_id: str | None


def decode_subscription(data: bytes, topics: TopicsImage) -> Subscription:
    """Returns the subscription that `data` encodes. Owned partitions of topics that do not exist are left out.

    Raises ValueError if `data` is not a subscription.
    """
    try:
        reader = Reader(data)
        version = _version(reader)
        decoded = ConsumerProtocolSubscription.read(reader, version)
    except ProtocolViolation as error:
        raise ValueError(str(error)) from error
    owned = _by_id([(entry.topic, entry.partitions) for entry in decoded.owned_partitions], topics)
    return Subscription(version, tuple(sorted(set(decoded.topics))), owned, decoded.rack_id)


def decode_assignment(data: bytes, topics: TopicsImage) -> dict[bytes, frozenset[int]]:
    """Returns the assigned partitions that `data` encodes, by topic id. Topics that do not exist are left out. Empty
    `data` is an empty assignment.

    Raises ValueError if `data` is not an assignment.
    """
    if not data:
        return {}
    try:
        reader = Reader(data)
        decoded = ConsumerProtocolAssignment.read(reader, _version(reader))
    except ProtocolViolation as error:
        raise ValueError(str(error)) from error
    return _by_id([(entry.topic, entry.partitions) for entry in decoded.assigned_partitions], topics)


def encode_assignment(owned: Mapping[bytes, Iterable[int]], version: int, topics: TopicsImage) -> bytes:
    """Returns the assignment `owned` (partitions by topic id), encoded in `version`.

    Deleted topics are left out, because they have no name.
    """
    by_id = topics.by_id
    known = [(by_id[topic_id].name, sorted(numbers)) for topic_id, numbers in owned.items() if topic_id in by_id]
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=name, partitions=numbers)
            for name, numbers in sorted(known)
            if numbers
        ]
    )
    writer = Writer()
    writer.write_int16(version)
    assignment.write(writer, version)
    return writer.getvalue()


def _version(reader: Reader) -> int:
    """Reads the version at the start of the data, and returns the version in which to decode the rest of the data.

    If the version is higher than the highest known version, returns the highest known version, because newer versions
    only add fields at the end. Raises ValueError if the version is negative.
    """
    version = reader.read_int16()
    if version < 0:
        raise ValueError(f"version {version}")
    return min(version, _HIGHEST_VERSION)


def _by_id(entries: list[tuple[str, list[int]]], topics: TopicsImage) -> dict[bytes, frozenset[int]]:
    found: dict[bytes, frozenset[int]] = {}
    for name, partitions in entries:
        topic = topics.by_name.get(name)
        if topic is not None and partitions:
            found[topic.topic_id] = found.get(topic.topic_id, frozenset()) | frozenset(partitions)
    return found
