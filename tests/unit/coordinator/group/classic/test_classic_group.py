"""A classic group's tables: transitions, votes, leader, subscriptions."""

from __future__ import annotations

import itertools

import pytest

from kafkapy.coordinator.group.classic.classic_group import VALID_PREVIOUS_STATES, ClassicGroup, GroupState
from kafkapy.coordinator.group.classic.classic_member import ClassicMember
from kafkapy.coordinator.group.committed_offset import CommittedOffset
from kafkapy.errors import ApiError, Error


def member(name: str, *protocols: str, instance: str | None = None) -> ClassicMember:
    return ClassicMember(name, instance, "c", "/h", 1000, 2000, "consumer", [(p, p.encode()) for p in protocols])


def group_of(*members: ClassicMember) -> ClassicGroup:
    group = ClassicGroup("g", 0)
    for one in members:
        group.add(one)
    return group


@pytest.mark.parametrize(("before", "after"), list(itertools.product(GroupState, GroupState)))
def test_only_the_transitions_of_the_table(before: GroupState, after: GroupState) -> None:
    group = ClassicGroup("g", 0, before)
    if before in VALID_PREVIOUS_STATES[after]:
        group.transition_to(after, 5)
        assert (group.previous_state, group.state, group.state_timestamp_ms) == (before, after, 5)
    else:
        with pytest.raises(AssertionError, match="cannot go from"):
            group.transition_to(after, 5)


def test_vote_is_among_what_all_speak() -> None:
    group = group_of(
        member("a", "new", "range", "sticky"), member("b", "sticky", "range"), member("c", "range", "sticky")
    )
    assert group.candidate_protocols() == {"range", "sticky"}
    assert group.select_protocol() == "range"


def test_newcomer_must_speak_what_all_speak() -> None:
    group = group_of(member("a", "x", "range"), member("b", "y", "range"))
    group.transition_to(GroupState.PREPARING_REBALANCE, 0)
    assert group.supports("consumer", [("range", b"")])
    assert not group.supports("consumer", [("x", b"")])
    assert not group.supports("connect", [("range", b"")])


def test_who_comes_when_all_others_have_left_may_speak_anything() -> None:
    group = group_of(member("a", "range"))
    group.transition_to(GroupState.PREPARING_REBALANCE, 0)
    group.remove("a")
    assert group.supports("consumer", [("x", b"")])
    assert not group.supports("connect", [("range", b"")])


def test_leader_is_the_first_and_then_the_oldest() -> None:
    group = group_of(member("a", "r"), member("b", "r"), member("c", "r"))
    assert group.leader_id == "a"
    group.remove("a")
    assert group.leader_id == "b"
    group.members["c"].join_responder = lambda response: None
    assert group.elect_joined_leader()
    assert group.leader_id == "c"


def test_a_generation_whose_leader_is_no_member_is_refused() -> None:
    group = group_of(member("a", "r"))
    group.transition_to(GroupState.PREPARING_REBALANCE, 0)
    group.leader_id = "b"
    with pytest.raises(AssertionError, match="the leader b is not a member"):
        group.init_next_generation(1)


def test_fencing_of_static_members() -> None:
    group = group_of(member("a", "r", instance="one"))
    group.replace_static_member("one", "a", "a2")
    assert group.leader_id == "a2"
    assert group.validate_member("a2", "one").member_id == "a2"
    for member_id, instance, error in [
        ("a", "one", Error.FENCED_INSTANCE_ID),
        ("a", None, Error.UNKNOWN_MEMBER_ID),
        ("a2", "two", Error.UNKNOWN_MEMBER_ID),
    ]:
        with pytest.raises(ApiError) as caught:
            group.validate_member(member_id, instance)
        assert caught.value.error is error


def subscription(*topics: str) -> bytes:
    packed = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\x00\x01" + len(topics).to_bytes(4, "big") + packed + b"\xff\xff\xff\xff"


def test_subscribed_topics_are_read_from_the_members() -> None:
    one = member("a", "range")
    one.protocols = [("range", subscription("t", "u"))]
    group = group_of(one)
    group.transition_to(GroupState.PREPARING_REBALANCE, 0)
    group.init_next_generation(1)
    assert group.subscribed_topics == {"t", "u"}
    assert not group.is_subscribed_to("v")
    one.protocols = [("range", subscription("t")[:-6])]
    group.compute_subscribed_topics()
    assert group.subscribed_topics is None
    assert group.is_subscribed_to("v")  # The subscriptions are unknown.


def test_retention_does_not_begin_within_a_rebalance() -> None:
    """A member that joins now may subscribe to the topic."""
    one = member("a", "range")
    one.protocols = [("range", subscription("t"))]
    group = group_of(one)
    committed = CommittedOffset(1, commit_timestamp_ms=7)
    group.transition_to(GroupState.PREPARING_REBALANCE, 0)
    group.init_next_generation(1)
    group.transition_to(GroupState.STABLE, 2)
    assert group.retention_start_ms("u", committed) == 7
    assert group.retention_start_ms("t", committed) is None
    group.transition_to(GroupState.PREPARING_REBALANCE, 3)
    assert group.retention_start_ms("u", committed) is None
