"""The round-robin assignment of the old high-level consumer. This module has no state and does no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from kafkapy.client.assignors import Assignor
from kafkapy.client.rack_matching import NO_RACKS, PartitionRacks
from kafkapy.client.sticky_assignor import Assignment, Members, PartitionCounts
from kafkapy.types import TopicPartition, java_string_hash

P = TypeVar("P")


def deal(partitions: Iterable[P], streams: Sequence[str]) -> dict[str, list[P]]:
    """Assigns partitions, in the given order, to the streams in turn; the streams are ordered by name.

    Returns the partitions of each stream.
    """
    ordered = sorted(streams)
    dealt: dict[str, list[P]] = {stream: [] for stream in ordered}
    for number, partition in enumerate(partitions):
        dealt[ordered[number % len(ordered)]].append(partition)
    return dealt


def in_order_of_hashes(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Returns partitions in the order of Java's hash codes of their text, `[topic,number]`."""
    return sorted(partitions, key=lambda each: java_string_hash(f"[{each.topic},{each.partition}]"))


def _assign(members: Members, counts: PartitionCounts, racks: PartitionRacks = NO_RACKS) -> Assignment:
    """Assigns the partitions of all topics to the members, which have the same subscriptions.

    `counts` maps each topic to its number of partitions; `racks` has no effect. Returns the partitions of each member.
    """
    topics = {topic for member in members.values() for topic in member.topics}
    partitions = [TopicPartition(topic, number) for topic in topics for number in range(counts.get(topic, 0))]
    return deal(in_order_of_hashes(partitions), list(members))


OLD_ROUND_ROBIN = Assignor("roundrobin", _assign)
