"""The count of the connections that the leader of the quorum refuses."""

from __future__ import annotations

from kafkapy.quorum.leader_refusals import LeaderRefusals
from kafkapy.quorum.raft.messages import Destination

LEADER = Destination(2, "host2", 9093)
SAME_PROCESS = Destination(-3, "host2", 9093)
OTHER = Destination(-2, "host3", 9093)


def refusals() -> LeaderRefusals:
    counted = LeaderRefusals()
    counted.follow(LEADER)
    return counted


def test_the_second_refusal_in_a_row_shows_that_the_leader_is_dead():
    counted = refusals()
    assert [counted.note(LEADER, is_refused=True) for _ in range(3)] == [False, True, True]


def test_refusals_at_the_leaders_address_count_and_other_nodes_change_nothing():
    counted = refusals()
    assert not counted.note(LEADER, is_refused=True)
    assert not counted.note(OTHER, is_refused=True)
    assert not counted.note(OTHER, is_refused=False)
    assert counted.note(SAME_PROCESS, is_refused=True)


def test_a_request_that_was_not_refused_begins_a_new_count():
    counted = refusals()
    counted.note(LEADER, is_refused=True)
    counted.note(LEADER, is_refused=False)
    assert not counted.note(LEADER, is_refused=True)


def test_a_new_leader_begins_a_new_count():
    counted = refusals()
    counted.note(LEADER, is_refused=True)
    counted.follow(OTHER)
    assert not counted.note(OTHER, is_refused=True)
    counted.follow(None)
    assert not any(counted.note(OTHER, is_refused=True) for _ in range(3))
