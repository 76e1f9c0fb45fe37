"""The topology of a Kafka Streams application: its subtopologies and their topics, as a member declares them. This
module has no state and does no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple


class TopicInfo(NamedTuple):
    """A repartition or changelog topic. If `partitions` or `replication_factor` is 0, the broker determines the
    number."""

    name: str
    partitions: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...]


class CopartitionGroup(NamedTuple):
    """Topics of a subtopology that need equal numbers of partitions. Each field has indexes into the field of the same
    name of Subtopology."""

    source_topics: tuple[int, ...]
    source_topic_regex: tuple[int, ...]
    repartition_topics: tuple[int, ...]


class Subtopology(NamedTuple):
    """A connected component of the topology. It has as many tasks as its largest input topic (source or repartition
    topic) has partitions. Task n processes partition n of every input topic that has such a partition."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    source_topic_regex: tuple[str, ...]
    sink_topics: tuple[str, ...]
    repartition_topics: tuple[TopicInfo, ...]
    changelog_topics: tuple[TopicInfo, ...]
    copartition_groups: tuple[CopartitionGroup, ...]

    def input_topics(self) -> Iterator[str]:
        yield from self.source_topics
        for topic in self.repartition_topics:
            yield topic.name

    def copartitioned(self) -> list[set[str]]:
        """Returns the topic names of each copartition group. Raises ApiError UNKNOWN_SERVER_ERROR if a group contains
        an index that is outside of the subtopology's list of topics."""
        return [
            {_at(self.source_topics, index) for index in group.source_topics}
            | {_at(self.repartition_topics, index).name for index in group.repartition_topics}
            for group in self.copartition_groups
        ]


class Topology(NamedTuple):
    """A topology: its epoch, and its subtopologies by id in the order in which the member declared them."""

    epoch: int
    subtopologies: Mapping[str, Subtopology]

    def required_topics(self) -> frozenset[str]:
        """Returns the names of the topics that must exist before tasks can be assigned: source, repartition and
        changelog topics."""
        names: set[str] = set()
        for subtopology in self.subtopologies.values():
            names.update(subtopology.input_topics())
            names.update(topic.name for topic in subtopology.changelog_topics)
        return frozenset(names)

    def reader_of(self, topic: str) -> Subtopology | None:
        """Returns the subtopology that reads the topic, or None if no subtopology reads it. If several subtopologies
        read the topic, returns the last one."""
        found = None
        for subtopology in self.subtopologies.values():
            if topic in subtopology.input_topics():
                found = subtopology
        return found


def topology_from(message: Any) -> Topology:
    """Returns the topology that the fields of `message`, a StreamsGroupHeartbeat or a topology record, describe.

    Raises ApiError UNKNOWN_SERVER_ERROR if two subtopologies have the same id.
    """
    subtopologies = {each.subtopology_id: _subtopology(each) for each in message.subtopologies}
    if len(subtopologies) < len(message.subtopologies):
        raise ApiError(Error.UNKNOWN_SERVER_ERROR)
    return Topology(message.epoch, subtopologies)


def _subtopology(message: Any) -> Subtopology:
    return Subtopology(
        message.subtopology_id,
        tuple(message.source_topics),
        tuple(message.source_topic_regex),
        tuple(message.repartition_sink_topics),
        _topic_infos(message.repartition_source_topics),
        _topic_infos(message.state_changelog_topics),
        tuple(
            CopartitionGroup(
                tuple(group.source_topics), tuple(group.source_topic_regex), tuple(group.repartition_source_topics)
            )
            for group in message.copartition_groups
        ),
    )


def _topic_infos(messages: Any) -> tuple[TopicInfo, ...]:
    return tuple(
        TopicInfo(
            each.name,
            each.partitions,
            each.replication_factor,
            tuple((config.key, config.value) for config in each.topic_configs),
        )
        for each in messages
    )


def _at(topics: tuple[Any, ...], index: int) -> Any:
    if not 0 <= index < len(topics):
        raise ApiError(Error.UNKNOWN_SERVER_ERROR)
    return topics[index]
