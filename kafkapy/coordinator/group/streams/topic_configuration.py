"""The numbers of partitions of a topology's internal topics, and the check that all of its topics are usable. This
module has no state and does no I/O.

repartition topic   has the number of partitions that the application sets, or as many as the largest input of the
                    subtopology that writes to it; topics of a copartition group get equal numbers
changelog topic     has as many partitions as the largest input of its subtopology, one for each task
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import IntEnum

from kafkapy.coordinator.group.streams.topology import Subtopology, TopicInfo, Topology
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple

# The number of topics that a message names.
_MAX_TOPICS_NAMED = 3
# Returns the number of partitions of a topic, or None if the topic does not exist.
PartitionCount = Callable[[str], "int | None"]


class Status(IntEnum):
    """The status codes in StreamsGroupHeartbeat responses (KIP-1071)."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class TopicProblem(NamedTuple):
    """A problem of the topology, of its topics or of the assignment, which the response reports to the member."""

    status: Status
    detail: str


class InternalTopic(NamedTuple):
    """A repartition or changelog topic with its number of partitions. The replication factor 0 means the default."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


class ConfiguredSubtopology(NamedTuple):
    """A subtopology with its number of tasks, and its internal topics by name with their final numbers of partitions.

    There are as many tasks as partitions of the largest input topic; other source topics may have fewer partitions.
    """

    tasks: int
    source_topics: AbstractSet[str]
    sink_topics: AbstractSet[str]
    repartition_topics: Mapping[str, InternalTopic]
    changelog_topics: Mapping[str, InternalTopic]

    @property
    def is_stateful(self) -> bool:
        return bool(self.changelog_topics)


class ConfiguredTopology(NamedTuple):
    """The result of the configuration of a topology.

    `subtopologies` are sorted by id; None if a source topic is missing or if a topic has a wrong number of partitions.
    `missing_topics` are the internal topics that have to be created, by name. `problem` says why the topology cannot be
    used; None if all of its topics exist and are usable.
    """

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    missing_topics: Mapping[str, InternalTopic]
    problem: TopicProblem | None

    @property
    def is_ready(self) -> bool:
        return self.problem is None


class _Unusable(Exception):
    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.problem = TopicProblem(status, detail)


def configure(topology: Topology, partition_count: PartitionCount) -> ConfiguredTopology:
    """Returns the topology with the numbers of partitions of its internal topics, and with the problem if its topics
    cannot be used yet.

    `partition_count(topic)` returns the number of partitions of an existing topic, and None for any other. Raises
    ApiError STREAMS_INVALID_TOPOLOGY if the topology itself is invalid, independently of the topics that exist.
    """
    try:
        _check_sources(topology, partition_count)
        counts = _PartitionCounts(topology, partition_count)
        subtopologies = {
            each.subtopology_id: counts.subtopology(each)
            for each in sorted(topology.subtopologies.values(), key=lambda each: each.subtopology_id)
        }
        missing = _missing(topology, subtopologies, partition_count)
    except _Unusable as unusable:
        return ConfiguredTopology(topology.epoch, None, {}, unusable.problem)
    problem = None
    if missing:
        detail = f"Internal topics are missing: {_summary(missing)}"
        problem = TopicProblem(Status.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(topology.epoch, subtopologies, missing, problem)


def _check_sources(topology: Topology, partition_count: PartitionCount) -> None:
    sources = {topic for each in topology.subtopologies.values() for topic in each.source_topics}
    missing = sorted(topic for topic in sources if partition_count(topic) is None)
    if missing:
        raise _Unusable(Status.MISSING_SOURCE_TOPICS, f"Source topics {_summary(missing)} are missing.")


class _PartitionCounts:
    """Computes the numbers of partitions of the internal topics: of repartition topics first, then of changelogs."""

    def __init__(self, topology: Topology, partition_count: PartitionCount) -> None:
        self._subtopologies = list(topology.subtopologies.values())
        self._existing = partition_count
        self._counts: dict[str, int] = {}
        self._count_repartition_topics()
        self._copartition()
        self._count_changelog_topics()

    def _count(self, topic: str) -> int:
        """Returns the number of partitions of an existing topic, or the number that was computed for a topic to be
        created.

        Raises ApiError UNKNOWN_SERVER_ERROR if no number has been computed.
        """
        existing = self._existing(topic)
        if existing is not None:
            return existing
        if topic not in self._counts:
            raise ApiError(Error.UNKNOWN_SERVER_ERROR, f"Number of partitions is not set for topic: {topic}")
        return self._counts[topic]

    def subtopology(self, subtopology: Subtopology) -> ConfiguredSubtopology:
        return ConfiguredSubtopology(
            max(self._count(topic) for topic in subtopology.input_topics()),
            frozenset(subtopology.source_topics),
            frozenset(subtopology.sink_topics),
            {topic.name: self._sized(topic) for topic in subtopology.repartition_topics},
            {topic.name: self._sized(topic) for topic in subtopology.changelog_topics},
        )

    def _sized(self, topic: TopicInfo) -> InternalTopic:
        partitions = topic.partitions or self._counts[topic.name]
        if partitions < 1:
            raise ApiError(Error.UNKNOWN_SERVER_ERROR, "Number of partitions must be at least 1.")
        return InternalTopic(topic.name, partitions, topic.replication_factor, dict(topic.configs))

    # -- repartition topics

    def _count_repartition_topics(self) -> None:
        """Sets the number of partitions of each repartition topic: the number that the application sets or, if it sets
        none, the largest number among the input topics of the subtopology that writes to the topic."""
        counts = self._counts
        repartition_topics = [topic for each in self._subtopologies for topic in each.repartition_topics]
        counts.update((topic.name, topic.partitions) for topic in repartition_topics if topic.partitions)
        is_complete = False
        while not is_complete:  # A repartition topic may be the input of a subtopology that writes to another one.
            is_complete = True
            has_progressed = False
            for subtopology in self._subtopologies:
                for topic in subtopology.sink_topics:
                    if topic in counts:
                        continue
                    largest = self._largest_known_input(subtopology)
                    if largest is None:
                        is_complete = False
                    else:
                        counts[topic] = largest
                        has_progressed = True
            if not is_complete and not has_progressed:
                message = (
                    "Failed to compute number of partitions for all repartition topics. There may be loops in the "
                    "topology that cannot be resolved."
                )
                raise ApiError(Error.STREAMS_INVALID_TOPOLOGY, message)
        if any(topic.name not in counts for topic in repartition_topics):
            message = (
                "Failed to compute number of partitions for all repartition topics, because a repartition source topic "
                "is never used as a sink topic."
            )
            raise ApiError(Error.STREAMS_INVALID_TOPOLOGY, message)

    def _largest_known_input(self, subtopology: Subtopology) -> int | None:
        known = [self._counts[each.name] for each in subtopology.repartition_topics if each.name in self._counts]
        known += [count for topic in subtopology.source_topics if (count := self._source_count(topic)) is not None]
        return max(known, default=None)

    def _source_count(self, topic: str) -> int | None:
        existing = self._existing(topic)
        return self._counts.get(topic) if existing is None else existing

    # -- copartitioned topics

    def _copartition(self) -> None:
        repartition_topics = [topic for each in self._subtopologies for topic in each.repartition_topics]
        fixed = {topic.name for topic in repartition_topics if topic.partitions}
        flexible = {topic.name for topic in repartition_topics if not topic.partitions}
        for subtopology in self._subtopologies:
            for topics in subtopology.copartitioned():
                if topics:
                    self._copartition_group(topics, fixed, flexible)

    def _copartition_group(self, topics: set[str], fixed: set[str], flexible: set[str]) -> None:
        """Gives the repartition topics of one copartition group the same number of partitions.

        `topics` are all topics of the group; `fixed` are its repartition topics whose number the application sets,
        `flexible` the other repartition topics. Raises _Unusable if the topics cannot have equal numbers.
        """
        repartition = {topic: self._count(topic) for topic in sorted(topics & (fixed | flexible))}
        external = {topic: self._count(topic) for topic in sorted(topics - repartition.keys())}
        if external:
            count = _equal_count(external, external.values())
        elif fixed:
            # As in Apache Kafka, all fixed topics of the topology must have equal numbers, even those of other groups.
            count = _equal_count(repartition, (self._count(topic) for topic in fixed))
        else:
            count = max(repartition.values())
        for topic, current in repartition.items():
            if topic in fixed and current != count:
                detail = (
                    f"Number of partitions [{current}] of repartition topic [{topic}] doesn't match number of "
                    f"partitions [{count}] of the source topic."
                )
                raise _Unusable(Status.INCORRECTLY_PARTITIONED_TOPICS, detail)
            self._counts[topic] = count

    # -- changelog topics

    def _count_changelog_topics(self) -> None:
        for subtopology in self._subtopologies:
            counts = [self._count(topic) for topic in subtopology.input_topics()]
            if not counts:
                message = f"No source topics found for subtopology {subtopology.subtopology_id}"
                raise ApiError(Error.STREAMS_INVALID_TOPOLOGY, message)
            self._counts.update((topic.name, max(counts)) for topic in subtopology.changelog_topics)


def _equal_count(shown: Mapping[str, int], counts: Iterable[int]) -> int:
    """Returns the value that all `counts` have. If they differ, raises _Unusable; the message lists `shown`, the
    numbers of partitions by topic."""
    different = set(counts)
    if len(different) != 1:
        listed = ", ".join(f"{topic}={count}" for topic, count in shown.items())
        detail = f"Following topics do not have the same number of partitions: [{{{listed}}}]"
        raise _Unusable(Status.INCORRECTLY_PARTITIONED_TOPICS, detail)
    return different.pop()


def _missing(
    topology: Topology, subtopologies: Mapping[str, ConfiguredSubtopology], partition_count: PartitionCount
) -> dict[str, InternalTopic]:
    """Returns the internal topics that do not exist, by name.

    `partition_count(topic)` returns the number of partitions of an existing topic, and None for any other. Raises
    _Unusable if an internal topic exists with a wrong number of partitions.
    """
    wanted = {
        topic.name: topic
        for each in subtopologies.values()
        for topics in (each.repartition_topics, each.changelog_topics)
        for topic in topics.values()
    }
    for name in sorted(topology.required_topics() & wanted.keys()):
        found = partition_count(name)
        if found is None:
            continue
        expected = wanted.pop(name).partitions
        if found != expected:
            detail = f"Existing topic {name} has different number of partitions: expected {expected}, found {found}"
            raise _Unusable(Status.INCORRECTLY_PARTITIONED_TOPICS, detail)
    return wanted


def _summary(topics: Iterable[str]) -> str:
    names = list(topics)
    summary = ", ".join(names[:_MAX_TOPICS_NAMED])
    if len(names) > _MAX_TOPICS_NAMED:
        summary += f" and {len(names) - _MAX_TOPICS_NAMED} additional topics"
    return summary
