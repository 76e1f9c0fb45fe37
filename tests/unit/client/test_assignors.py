"""The assignors: known cases, and properties of any group's assignment."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkapy.client.assignors import (
    ASSIGNORS,
    GroupMember,
    assign_cooperatively,
    assign_range,
    assign_round_robin,
    assign_sticky,
)
from kafkapy.types import TopicPartition


def numbers(assigned):
    return {
        member: " ".join(f"{where.topic}{where.partition}" for where in sorted(each))
        for member, each in assigned.items()
    }


def members(topics_of, owned=None):
    had = owned or {}
    return {each: GroupMember(tuple(topics), tuple(had.get(each, ())), 1) for each, topics in topics_of.items()}


def test_range_by_topic():
    group = members({"C1": "tu", "C2": "tu", "C3": "tu"})
    assert numbers(assign_range(group, {"t": 10, "u": 4})) == {
        "C1": "t0 t1 t2 t3 u0 u1",
        "C2": "t4 t5 t6 u2",
        "C3": "t7 t8 t9 u3",
    }
    assert numbers(assign_range(group, {"t": 11})) == {"C1": "t0 t1 t2 t3", "C2": "t4 t5 t6 t7", "C3": "t8 t9 t10"}


def test_static_members_come_first_and_by_their_instance():
    group = {"z": GroupMember(("t",), instance_id="a"), "b": GroupMember(("t",)), "y": GroupMember(("t",), (), 1, "b")}
    assert numbers(assign_range(group, {"t": 4})) == {"z": "t0 t1", "y": "t2", "b": "t3"}


def test_round_robin_over_unequal_subscriptions():
    group = members({"C0": "t", "C1": "tu", "C2": "tuv"})
    assert numbers(assign_round_robin(group, {"t": 1, "u": 2, "v": 3})) == {
        "C0": "t0",
        "C1": "u0",
        "C2": "u1 v0 v1 v2",
    }


def test_sticky_moves_as_little_as_it_can():
    group = members({"C0": "t", "C1": "t"})
    first = assign_sticky(group, {"t": 6})
    left = members({"C0": "t", "C1": "t", "C2": "t"}, first)
    second = assign_sticky(left, {"t": 6})
    assert Counter(map(len, second.values())) == {2: 3}
    assert all(set(second[each]) <= set(first[each]) for each in ("C0", "C1"))
    third = assign_sticky(members({"C1": "t", "C2": "t"}, second), {"t": 6})
    assert all(set(second[each]) <= set(third[each]) for each in ("C1", "C2"))


def test_cooperative_takes_first_and_gives_in_the_next_round():
    group = members({"C0": "t", "C1": "t"}, {"C0": [TopicPartition("t", each) for each in range(4)]})
    first = assign_cooperatively(group, {"t": 4})
    assert numbers(first) == {"C0": "t0 t1", "C1": ""}
    second = assign_cooperatively(members({"C0": "t", "C1": "t"}, first), {"t": 4})
    assert numbers(second) == {"C0": "t0 t1", "C1": "t2 t3"}


def test_of_two_owners_the_later_generation_is_believed():
    owned = (TopicPartition("t", 0), TopicPartition("t", 1))
    group = {"C0": GroupMember(("t",), owned, 5), "C1": GroupMember(("t",), owned, 6)}
    assert numbers(assign_sticky(group, {"t": 2})) == {"C0": "t1", "C1": "t0"}


groups = st.dictionaries(
    st.sampled_from([f"m{each}" for each in range(6)]),
    st.sets(st.sampled_from("tuvw"), min_size=1),
    min_size=1,
)
# No limits of time, because a busy machine must not fail a test.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
counts = st.dictionaries(st.sampled_from("tuvw"), st.integers(0, 9))


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky"])
@PATIENT
@given(topics_of=groups, partitions=counts)
def test_every_partition_goes_to_one_reader(name, topics_of, partitions):
    assigned = ASSIGNORS[name].assign(members(topics_of), partitions)
    given_out = Counter(where for each in assigned.values() for where in each)
    read = {topic for topics in topics_of.values() for topic in topics}
    assert given_out == Counter(TopicPartition(t, n) for t in read for n in range(partitions.get(t, 0)))
    assert all(where.topic in topics_of[member] for member, each in assigned.items() for where in each)


@PATIENT
@given(topics_of=groups, others=groups, partitions=counts)
def test_sticky_is_even_and_stays_so(topics_of, others, partitions):
    first = assign_sticky(members(topics_of), partitions)
    again = assign_sticky(members(topics_of, first), partitions)
    assert {member: set(each) for member, each in first.items()} == {
        member: set(each) for member, each in again.items()
    }
    later = assign_sticky(members(others, first), partitions)
    for member, each in later.items():
        for where in each:
            readers = [other for other in others if where.topic in others[other]]
            assert len(later[member]) - min(len(later[other]) for other in readers) <= 1


@PATIENT
@given(topics_of=groups, others=groups, partitions=counts)
def test_cooperative_never_gives_what_another_still_has(topics_of, others, partitions):
    first = assign_sticky(members(topics_of), partitions)
    second = assign_cooperatively(members(others, first), partitions)
    for member, each in second.items():
        for where in each:
            owners = [o for o in others if where in first.get(o, ()) and where.topic in others[o]]
            assert owners in ([], [member])
    for _ in range(2):
        second = assign_cooperatively(members(others, second), partitions)
    read = {topic for topics in others.values() for topic in topics}
    assert sum(map(len, second.values())) == sum(partitions.get(topic, 0) for topic in read)


def test_sticky_looks_in_all_members_for_one_in_the_rack_of_a_replica():
    group = {each: GroupMember(("t",), rack=each) for each in "abc"}
    racks = {"t": [frozenset(each) for each in "bacacb"]}
    assigned = assign_sticky(group, {"t": 6}, racks)
    assert numbers(assigned) == {"a": "t1 t3", "b": "t0 t5", "c": "t2 t4"}
