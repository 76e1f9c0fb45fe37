"""The sizes of internal topics, as Apache Kafka 4.3 decides them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafkapy.coordinator.group.streams.topic_configuration import ConfiguredTopology, Status, configure
from kafkapy.coordinator.group.streams.topology import CopartitionGroup, Subtopology, TopicInfo, Topology
from kafkapy.errors import ApiError, Error


def internal(name: str, partitions: int = 0) -> TopicInfo:
    return TopicInfo(name, partitions, 0, (("cleanup.policy", "compact"),))


def subtopology(name: str, **fields: object) -> Subtopology:
    empty = dict.fromkeys(Subtopology._fields, ())
    return Subtopology(**{**empty, **fields, "subtopology_id": name})  # type: ignore[arg-type]


def configured(existing: Mapping[str, int], *subtopologies: Subtopology) -> ConfiguredTopology:
    return configure(Topology(3, {each.subtopology_id: each for each in subtopologies}), existing.get)


def copartitioned(sources: tuple[int, ...] = (), repartition: tuple[int, ...] = ()) -> tuple[CopartitionGroup, ...]:
    return (CopartitionGroup(sources, (), repartition),)


WORD_COUNT = (
    subtopology("0", source_topics=("lines",), sink_topics=("words",)),
    subtopology("1", repartition_topics=(internal("words"),), changelog_topics=(internal("counts"),)),
)


def test_internal_topics_are_as_large_as_the_largest_input() -> None:
    found = configured({"lines": 5}, *WORD_COUNT)
    assert found.problem == (Status.MISSING_INTERNAL_TOPICS, "Internal topics are missing: words, counts")
    assert {name: topic.partitions for name, topic in found.missing_topics.items()} == {"words": 5, "counts": 5}
    assert found.subtopologies is not None
    assert [(each.tasks, each.is_stateful) for each in found.subtopologies.values()] == [(5, False), (5, True)]
    assert not found.is_ready


def test_a_topology_is_ready_when_all_its_topics_exist() -> None:
    found = configured({"lines": 5, "words": 5, "counts": 5}, *WORD_COUNT)
    assert (found.epoch, found.is_ready, found.missing_topics) == (3, True, {})


def test_missing_source_topics() -> None:
    names = ("d", "b", "a", "c", "e")
    found = configured({}, subtopology("0", source_topics=names))
    detail = "Source topics a, b, c and 2 additional topics are missing."
    assert (found.problem, found.subtopologies) == ((Status.MISSING_SOURCE_TOPICS, detail), None)


def test_an_internal_topic_of_another_size() -> None:
    found = configured({"lines": 5, "words": 4}, *WORD_COUNT)
    assert found.problem is not None
    # The tasks of the existing topic decide on the size of the changelog, and the topic keeps its number.
    assert found.problem == (
        Status.INCORRECTLY_PARTITIONED_TOPICS,
        "Existing topic words has different number of partitions: expected 5, found 4",
    )


def test_the_application_sets_the_size_of_a_repartition_topic() -> None:
    second = subtopology("1", repartition_topics=(internal("words", 7),), changelog_topics=(internal("counts"),))
    found = configured({"lines": 5}, WORD_COUNT[0], second)
    assert {name: topic.partitions for name, topic in found.missing_topics.items()} == {"words": 7, "counts": 7}


def test_sizes_follow_through_several_subtopologies() -> None:
    found = configured(
        {"a": 2, "b": 6},
        subtopology("2", repartition_topics=(internal("y"),), changelog_topics=(internal("z"),)),
        subtopology("1", repartition_topics=(internal("x"),), sink_topics=("y",)),
        subtopology("0", source_topics=("a", "b"), sink_topics=("x",)),
    )
    assert {name: topic.partitions for name, topic in found.missing_topics.items()} == {"x": 6, "y": 6, "z": 6}


def test_a_flexible_topic_follows_its_copartitioned_source() -> None:
    join = subtopology(
        "1",
        source_topics=("right",),
        repartition_topics=(internal("left"),),
        copartition_groups=copartitioned((0,), (0,)),
    )
    found = configured(
        {"lines": 5, "right": 3}, subtopology("0", source_topics=("lines",), sink_topics=("left",)), join
    )
    assert found.missing_topics["left"].partitions == 3


def test_copartitioned_repartition_topics_are_as_large_as_the_largest() -> None:
    found = configured(
        {"a": 2, "b": 6},
        subtopology("0", source_topics=("a",), sink_topics=("x",)),
        subtopology("1", source_topics=("b",), sink_topics=("y",)),
        subtopology(
            "2", repartition_topics=(internal("x"), internal("y")), copartition_groups=copartitioned((), (0, 1))
        ),
    )
    assert {name: topic.partitions for name, topic in found.missing_topics.items()} == {"x": 6, "y": 6}


def test_copartitioned_sources_differ() -> None:
    join = subtopology("0", source_topics=("b", "a"), copartition_groups=copartitioned((0, 1)))
    detail = "Following topics do not have the same number of partitions: [{a=2, b=6}]"
    assert configured({"a": 2, "b": 6}, join).problem == (Status.INCORRECTLY_PARTITIONED_TOPICS, detail)


def test_a_fixed_repartition_topic_differs_from_its_copartitioned_source() -> None:
    first = subtopology("0", source_topics=("a",), sink_topics=("x",))
    join = subtopology(
        "1",
        source_topics=("b",),
        repartition_topics=(internal("x", 4),),
        copartition_groups=copartitioned((0,), (0,)),
    )
    detail = (
        "Number of partitions [4] of repartition topic [x] doesn't match number of partitions [6] of the source topic."
    )
    assert configured({"a": 2, "b": 6}, first, join).problem == (Status.INCORRECTLY_PARTITIONED_TOPICS, detail)


@pytest.mark.parametrize(
    ("subtopologies", "error", "message"),
    [
        (
            (
                subtopology("0", repartition_topics=(internal("a"),), sink_topics=("b",)),
                subtopology("1", repartition_topics=(internal("b"),), sink_topics=("a",)),
            ),
            Error.STREAMS_INVALID_TOPOLOGY,
            "loops",
        ),
        (
            (subtopology("0", repartition_topics=(internal("a"),)),),
            Error.STREAMS_INVALID_TOPOLOGY,
            "never used as a sink topic",
        ),
        ((subtopology("0"),), Error.STREAMS_INVALID_TOPOLOGY, "No source topics found for subtopology 0"),
        (
            (subtopology("0", source_topics=("a",), copartition_groups=copartitioned((1,))),),
            Error.UNKNOWN_SERVER_ERROR,
            "",
        ),
        (
            (subtopology("0", source_topics=("a",), copartition_groups=copartitioned((-1,))),),
            Error.UNKNOWN_SERVER_ERROR,
            "",
        ),
    ],
)
def test_a_topology_that_no_topics_make_usable(
    subtopologies: tuple[Subtopology, ...], error: Error, message: str
) -> None:
    with pytest.raises(ApiError) as refused:
        configured({"a": 1}, *subtopologies)
    assert refused.value.error is error
    assert message in (refused.value.message or "")
