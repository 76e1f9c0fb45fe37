"""Converts assignments of partitions to members of groups into the entries of messages and records, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from kafkapy.metadata.topics_image import TopicImage

# topic id -> its partitions
Assignment = Mapping[bytes, frozenset[int]]
E = TypeVar("E")


def topic_entries(entry_class: Callable[..., E], assignment: Mapping[bytes, Iterable[int]]) -> list[E]:
    """Returns one `entry_class` object for each topic with at least one assigned partition.

    `assignment` maps topic ids to partitions. `entry_class`, a class of message entries, is called with `topic_id` and
    the sorted `partitions`.
    """
    return [
        entry_class(topic_id=topic_id, partitions=sorted(partitions))
        for topic_id, partitions in assignment.items()
        if partitions
    ]


def named_topic_entries(
    entry_class: Callable[..., E], assignment: Assignment, topics: Mapping[bytes, TopicImage]
) -> list[E]:
    """Returns one `entry_class` object for each assigned topic that still exists.

    `entry_class`, a class of message entries, is called with `topic_id`, `topic_name` and the sorted `partitions`.
    `topics` are all topics of the cluster by id.
    """
    return [
        entry_class(topic_id=topic_id, topic_name=topics[topic_id].name, partitions=sorted(partitions))
        for topic_id, partitions in assignment.items()
        if topic_id in topics
    ]


def assignment_from(entries: Iterable[Any]) -> dict[bytes, frozenset[int]]:
    """Returns the assignment that the entries of a message describe: partitions by topic id. Each entry has a
    `topic_id` and `partitions`."""
    return {entry.topic_id: frozenset(entry.partitions) for entry in entries}
