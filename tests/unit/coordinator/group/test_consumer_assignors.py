"""The assignors: every partition has one owner, which subscribes to its topic, and few partitions move."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.coordinator.group.consumer_assignors import (
    ASSIGNORS,
    AssignedMember,
    AssignedTopic,
    Result,
    assign_range,
    assign_uniform,
)

A, B, C = b"a" * 16, b"b" * 16, b"c" * 16


def topic(topic_id: bytes, partitions: int, racks: dict[int, frozenset[str]] | None = None) -> AssignedTopic:
    return AssignedTopic(topic_id, range(partitions), racks or {})


def member(name: str, *topics: bytes, rack: str | None = None, instance: str | None = None) -> AssignedMember:
    return AssignedMember(name, instance, rack, frozenset(topics), {})


def with_previous(members: list[AssignedMember], result: Result) -> list[AssignedMember]:
    return [each._replace(previous=result.get(each.member_id, {})) for each in members]


def sizes(result: Result) -> list[int]:
    return sorted(sum(map(len, owned.values())) for owned in result.values())


@st.composite
def groups(draw: st.DrawFn) -> tuple[list[AssignedMember], dict[bytes, AssignedTopic]]:
    topics = {topic_id: topic(topic_id, draw(st.integers(0, 7))) for topic_id in (A, B, C)}
    subscriptions = draw(st.lists(st.sets(st.sampled_from((A, B, C))), min_size=1, max_size=6))
    return [member(f"m{number}", *each) for number, each in enumerate(subscriptions)], topics


@pytest.mark.parametrize("name", ASSIGNORS)
@given(groups())
def test_every_partition_has_one_owner_that_wants_it(
    name: str, group: tuple[list[AssignedMember], dict[bytes, AssignedTopic]]
) -> None:
    members, topics = group
    result = ASSIGNORS[name](members, topics)
    subscribed = {member.member_id: member.topic_ids for member in members}
    owned = [
        (topic_id, partition) for each in result.values() for topic_id, numbers in each.items() for partition in numbers
    ]
    wanted = set().union(*subscribed.values())
    assert sorted(owned) == sorted((t, p) for t in wanted for p in topics[t].partitions)
    assert all(topic_id in subscribed[member_id] for member_id, each in result.items() for topic_id in each)
    assert ASSIGNORS[name](with_previous(members, result), topics) == result


@given(groups(), st.integers(0, 5))
def test_uniform_moves_no_more_than_it_must(
    group: tuple[list[AssignedMember], dict[bytes, AssignedTopic]], gone: int
) -> None:
    """Checks that with equal subscriptions the numbers of partitions differ by at most one, and that members keep the
    partitions that they may keep."""
    members, topics = group
    members = [each._replace(topic_ids=frozenset((A, B, C))) for each in members]
    before = assign_uniform(members, topics)
    left = with_previous([each for number, each in enumerate(members) if number != gone], before)
    if not left:
        return
    after = assign_uniform(left, topics)
    assert sizes(after)[-1] - sizes(after)[0] <= 1
    for each in left:
        for topic_id, partitions in each.previous.items():
            assert partitions <= after[each.member_id].get(topic_id, frozenset())


def test_uniform_levels_unequal_subscriptions() -> None:
    topics = {A: topic(A, 2), B: topic(B, 6)}
    result = assign_uniform([member("m1", A, B), member("m2", A)], topics)
    assert result == {"m1": {B: frozenset(range(6))}, "m2": {A: frozenset((0, 1))}}


def test_uniform_prefers_the_rack() -> None:
    racks = {0: frozenset({"r2"}), 1: frozenset({"r1"}), 2: frozenset({"r2"}), 3: frozenset({"r1"})}
    result = assign_uniform([member("m1", A, rack="r1"), member("m2", A, rack="r2")], {A: topic(A, 4, racks)})
    assert result == {"m1": {A: frozenset((1, 3))}, "m2": {A: frozenset((0, 2))}}


def test_range_gives_the_same_range_of_every_topic() -> None:
    result = assign_range([member("m2", A, B), member("m1", A, B)], {A: topic(A, 3), B: topic(B, 3)})
    assert result == {
        "m1": {A: frozenset((0, 1)), B: frozenset((0, 1))},
        "m2": {A: frozenset((2,)), B: frozenset((2,))},
    }


def test_range_knows_static_members_by_their_instance() -> None:
    topics = {A: topic(A, 2)}
    first = assign_range([member("x", A, instance="one"), member("y", A, instance="two")], topics)
    again = assign_range([member("z", A, instance="one"), member("y", A, instance="two")], topics)
    assert first["x"] == again["z"]
    assert first["y"] == again["y"]
