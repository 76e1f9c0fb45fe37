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
    """Returns the leader epoch of an offset, -1 if it is not known."""
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
    """Returns the offset after `message`, or, if it is None, those of `offsets` that are valid.

    Negative offsets, such as OFFSET_INVALID, are left out.
    """
    if message is not None:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None and partition is not None and offset is not None
        return {Place(topic, partition): OffsetAndMetadata(offset + 1)}
    return {
        Place(each.topic, each.partition): OffsetAndMetadata(each.offset, each.metadata or "", epoch_of(each))
        for each in checked(offsets)
        if each.offset >= 0
    }


def partition_of(place: Place, offset: OffsetAndMetadata | None) -> TopicPartition:
    """Returns a partition with an offset that was committed, OFFSET_INVALID without one."""
    if offset is None:
        return TopicPartition(place.topic, place.partition)
    return TopicPartition(
        place.topic, place.partition, offset.offset, offset.metadata or None, leader_epoch=offset.leader_epoch
    )


def partitions_of(offsets: dict[Place, OffsetAndMetadata]) -> list[TopicPartition]:
    """Returns the partitions with their offsets."""
    return [partition_of(place, offset) for place, offset in offsets.items()]
