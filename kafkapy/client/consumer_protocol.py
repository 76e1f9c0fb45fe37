"""The messages that members of a classic consumer group exchange through the coordinator.

These are Kafka's ConsumerProtocolSubscription (in JoinGroup) and ConsumerProtocolAssignment (in SyncGroup).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from kafkapy._core.bytes.wire import Reader, Writer
from kafkapy.client.assignors import COOPERATIVE_STICKY, STICKY, Assignor, GroupMember
from kafkapy.errors import ProtocolViolation
from kafkapy.protocol.messages.data_records import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafkapy.types import TopicPartition

PROTOCOL_TYPE = "consumer"
_SUBSCRIPTION_VERSION = 3
_ASSIGNMENT_VERSION = 3


def encode_subscription(
    assignor: Assignor, topics: Iterable[str], owned: Iterable[TopicPartition], generation: int, rack: str
) -> bytes:
    """Encodes a member's subscription for one assignor.

    `owned` are the partitions that the member had in the generation `generation`; `rack` is "" without a rack. A
    cooperative member keeps its partitions while it joins, so `owned` is encoded as its owned partitions. An eager
    member has revoked its partitions before: for the sticky assignor `owned` and `generation` are encoded in the user
    data, and for other eager assignors `owned` has no effect.
    """
    partitions = sorted(owned)
    message = ConsumerProtocolSubscription(
        topics=sorted(topics), user_data=_user_data(assignor, partitions, generation), owned_partitions=[]
    )
    if assignor.is_cooperative:
        message.owned_partitions = [
            ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=[each.partition for each in group])
            for topic, group in groupby(partitions, key=lambda each: each.topic)
        ]
    message.generation_id = generation
    message.rack_id = rack or None
    return _prefixed(_SUBSCRIPTION_VERSION, message.encode(_SUBSCRIPTION_VERSION))


def decode_subscription(assignor: Assignor, data: bytes, instance_id: str | None) -> GroupMember:
    """Decodes a member's subscription for the leader; raises ProtocolViolation if it is malformed."""
    version, reader = _unprefixed(data)
    message = ConsumerProtocolSubscription.read(reader, min(max(version, 0), _SUBSCRIPTION_VERSION))
    owned = [TopicPartition(each.topic, number) for each in message.owned_partitions for number in each.partitions]
    generation = message.generation_id
    if assignor is STICKY and message.user_data:
        owned, generation = _previous(message.user_data)
    elif assignor is COOPERATIVE_STICKY and generation < 0 and message.user_data and len(message.user_data) >= 4:
        generation = Reader(message.user_data).read_int32()
    return GroupMember(tuple(message.topics), tuple(owned), generation, instance_id, message.rack_id or None)


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """Encodes the partitions that the leader assigns to one member."""
    assigned = [
        ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=[each.partition for each in group])
        for topic, group in groupby(sorted(partitions), key=lambda each: each.topic)
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=assigned, user_data=None)
    return _prefixed(_ASSIGNMENT_VERSION, message.encode(_ASSIGNMENT_VERSION))


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """Decodes a member's partitions; empty `data` means none.

    Raises ProtocolViolation if `data` is malformed.
    """
    if not data:
        return []
    version, reader = _unprefixed(data)
    message = ConsumerProtocolAssignment.read(reader, min(max(version, 0), _ASSIGNMENT_VERSION))
    return [TopicPartition(each.topic, number) for each in message.assigned_partitions for number in each.partitions]


def _prefixed(version: int, body: bytes) -> bytes:
    return version.to_bytes(2, "big") + body


def _unprefixed(data: bytes) -> tuple[int, Reader]:
    reader = Reader(data)
    return reader.read_int16(), reader


def _user_data(assignor: Assignor, owned: list[TopicPartition], generation: int) -> bytes | None:
    if assignor is COOPERATIVE_STICKY:
        return generation.to_bytes(4, "big", signed=True)
    if assignor is not STICKY:
        return None
    writer = Writer()
    topics = {topic: [each.partition for each in group] for topic, group in groupby(owned, key=lambda each: each.topic)}
    writer.write_int32(len(topics))
    for topic, partitions in topics.items():
        writer.write_string(topic, False)
        writer.write_int32_array(partitions, False, False)
    writer.write_int32(generation)
    return writer.getvalue()


def _previous(data: bytes) -> tuple[list[TopicPartition], int]:
    """Decodes the partitions that an eager sticky member had, and the generation in which it had them.

    The generation is -1 if an old client did not store it. Malformed `data` result in ([], -1).
    """
    reader = Reader(data)
    owned: list[TopicPartition] = []
    try:
        for _ in range(reader.read_array_length(False)):
            topic = reader.read_string(False)
            owned += [TopicPartition(topic, number) for number in reader.read_int32_array(False, False)]
        return owned, reader.read_int32() if reader.remaining >= 4 else -1
    except ProtocolViolation:
        return [], -1  # as in Java's client, malformed user data means no partitions
