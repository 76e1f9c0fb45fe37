"""The common part of both protocols' memberships: the time between polls, and the assignment that `poll` applies."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafkapy.client import TopicPartition
from kafkapy.client.group_membership import GroupMembership
from kafkapy.errors import ApiError, Error
from tests.mock_clock import MockClock

T0 = TopicPartition("t", 0)
CONFIG = {"group.instance.id": "i", "max.poll.interval.ms": 5000}


class Membership(GroupMembership):
    """A membership that records how it ends."""

    is_cooperative = is_member = must_revoke = is_rebalancing = False

    def __init__(self, coordinator):
        super().__init__(SimpleNamespace(clock=MockClock()), coordinator, None, CONFIG)
        self.ended = []

    def run(self, monotonic_ms):
        return 0

    def begin_join(self):
        pass

    def subscription_changed(self):
        pass

    def topics_changed(self):
        pass

    def assignment_applied(self, *, has_revoked):
        pass

    def send_leave(self, reason, on_done=lambda: None):
        self.ended.append(reason)

    def forget_membership(self, *, lost, keeps_id=False):
        self.ended.append((lost, keeps_id))


def made(node=lambda monotonic_ms: 7):
    return Membership(SimpleNamespace(key="g", node=node))


def test_a_new_member_has_its_instance_id_only():
    identity = made().identity
    assert (identity.generation, identity.member_id, identity.instance_id) == (-1, "", "i")


def test_an_assignment_is_taken_once():
    membership = made()
    membership.new_assignment = [T0]
    assert membership.take_assignment() == [T0]
    assert membership.new_assignment is None
    with pytest.raises(AssertionError):
        membership.take_assignment()


def test_a_member_that_does_not_poll_in_time_leaves(caplog):
    membership = made()
    membership.last_poll_ms = 1000
    assert membership._poll_deadline_ms() == 6000
    assert not membership._leave_if_poll_is_late(5999)
    assert membership.ended == [] and not caplog.records
    assert membership._leave_if_poll_is_late(6000)
    assert membership.ended == ["consumer poll timeout has expired.", (True, False)]
    assert "the member leaves group g" in caplog.text


def test_poll_raises_the_error_of_a_lookup():
    def node(monotonic_ms):
        raise ApiError(Error.GROUP_AUTHORIZATION_FAILED)

    membership = made(node)
    assert membership.coordinator_node(0) is None
    assert membership.failure.error is Error.GROUP_AUTHORIZATION_FAILED
    membership = made()
    assert membership.coordinator_node(0) == 7 and membership.failure is None
