"""Conversions of partitions and offsets between confluent-kafka's classes and kafkapy's."""

from __future__ import annotations

from typing import Any

from kafkapy._core.client.fetched_records import ConsumerRecord
from kafkapy.client.coordinator import OffsetAndMetadata
from kafkapy.compat.confluent_kafka._records import Message, TopicPartition
from kafkapy.types import TopicPartition as Place


def place_of(record: ConsumerRecord) -> Place:
    """Returns the partition of a record."""
    return Place(record.topic, record.partition)


def epoch_of(partition: TopicPartition) -> int:
    """Returns the leader epoch that is given with a partition's offset, or -1 if it is None."""
    return -1 if partition.leader_epoch is None else partition.leader_epoch


def checked(partitions: Any) -> list[TopicPartition]:
    """Returns the argument; raises TypeError unless it is a list of TopicPartitions."""
    if not isinstance(partitions, list):
        raise TypeError("requires list of TopicPartition")
    for each in partitions:
        if not isinstance(each, TopicPartition):
            raise TypeError("expected TopicPartition")
    return partitions


def to_commit(message: Message | None, offsets: list[TopicPartition] | None) -> dict[Place, OffsetAndMetadata]:
    """Returns the offsets to commit, by partition.

    If `message` is given, this is the offset after the message. Otherwise these are `offsets`, without the negative
    ones such as OFFSET_INVALID.
    """
    if message is not None:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None and partition is not None and offset is not None
        epoch = message.leader_epoch()
        return {Place(topic, partition): OffsetAndMetadata(offset + 1, "", -1 if epoch is None else epoch)}
    return {
        Place(each.topic, each.partition): OffsetAndMetadata(each.offset, each.metadata or "", epoch_of(each))
        for each in checked(offsets)
        if each.offset >= 0
    }


def partition_of(place: Place, offset: OffsetAndMetadata | None) -> TopicPartition:
    """Returns confluent-kafka's TopicPartition for a partition and its committed offset.

    If `offset` is None, nothing was committed, and the TopicPartition has OFFSET_INVALID.
    """
    if offset is None:
        return TopicPartition(place.topic, place.partition)
    return TopicPartition(
        place.topic, place.partition, offset.offset, offset.metadata or None, leader_epoch=offset.leader_epoch
    )


def partitions_of(offsets: dict[Place, OffsetAndMetadata]) -> list[TopicPartition]:
    """Converts committed offsets by partition to a list of confluent-kafka's TopicPartitions."""
    return [partition_of(place, offset) for place, offset in offsets.items()]
