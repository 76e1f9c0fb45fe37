"""The partitions that a member of a group has or is to have, and their entries in messages and records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from kafkapy.metadata.topics_image import TopicImage

# topic id -> its partitions
Assignment = Mapping[bytes, frozenset[int]]
E = TypeVar("E")


def topic_entries(entry_class: Callable[..., E], assignment: Mapping[bytes, Iterable[int]]) -> list[E]:
    """Returns an object of `entry_class`, a part of a message, for each topic with at least one assigned partition."""
    return [
        entry_class(topic_id=topic_id, partitions=sorted(partitions))
        for topic_id, partitions in assignment.items()
        if partitions
    ]


def named_topic_entries(
    entry_class: Callable[..., E], assignment: Assignment, topics: Mapping[bytes, TopicImage]
) -> list[E]:
    """Returns an object of `entry_class`, a part of a response, with the name of each topic that exists.

    `topics` are all topics of the cluster by id.
    """
    return [
        entry_class(topic_id=topic_id, topic_name=topics[topic_id].name, partitions=sorted(partitions))
        for topic_id, partitions in assignment.items()
        if topic_id in topics
    ]


def assignment_from(entries: Iterable[Any]) -> dict[bytes, frozenset[int]]:
    """Returns the assignment that the entries of a message describe."""
    return {entry.topic_id: frozenset(entry.partitions) for entry in entries}
