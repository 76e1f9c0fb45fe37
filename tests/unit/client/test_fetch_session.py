"""A consumer's side of fetch sessions."""

from __future__ import annotations

import pytest

from kafkapy.client.fetch_session import FetchPosition, FetchSession
from kafkapy.types import TopicPartition

ID = bytes(range(16))
MANY = 100


def at(**offsets):
    return {TopicPartition("t", int(name[1:])): FetchPosition(ID, offset, 0) for name, offset in offsets.items()}


@pytest.fixture
def session():
    made = FetchSession()
    plan = made.plan(at(p0=0, p1=0), partition_count=MANY)
    assert (plan.session_id, plan.epoch, set(plan.wanted)) == (0, 0, set(at(p0=0, p1=0)))
    made.confirm(plan, 55)
    return made


def test_few_partitions_need_no_session():
    made = FetchSession()
    for _ in range(2):
        plan = made.plan(at(p0=0), partition_count=8)
        assert (plan.session_id, plan.epoch, plan.wanted) == (0, -1, at(p0=0))
        made.confirm(plan, 0)


def test_only_what_has_changed_is_named(session):
    plan = session.plan(at(p0=9, p1=0), partition_count=MANY)
    assert plan == (55, 1, at(p0=9), {})
    session.confirm(plan, 55)
    assert session.plan(at(p0=9, p1=0, p2=3), partition_count=MANY) == (55, 2, at(p2=3), {})


def test_what_is_not_wanted_now_is_forgotten(session):
    assert session.plan(at(p1=0), partition_count=MANY).forgotten == {TopicPartition("t", 0): ID}


def test_a_topic_made_anew_is_forgotten_by_its_old_id(session):
    positions = {TopicPartition("t", 0): FetchPosition(bytes(16), 0, 0), **at(p1=0)}
    plan = session.plan(positions, partition_count=MANY)
    assert plan.forgotten == {TopicPartition("t", 0): ID}
    assert set(plan.wanted) == {TopicPartition("t", 0)}


def test_a_session_that_is_refused_begins_anew(session):
    session.refuse()
    assert session.plan(at(p0=1), partition_count=MANY)[:3] == (0, 0, at(p0=1))


def test_a_session_that_may_be_out_of_step_is_ended_and_begun(session):
    session.lose()
    assert session.plan(at(p0=1), partition_count=MANY)[:3] == (55, 0, at(p0=1))


def test_a_broker_without_room_gives_no_session():
    made = FetchSession()
    made.confirm(made.plan(at(p0=0), partition_count=MANY), 0)
    assert made.plan(at(p0=4), partition_count=MANY)[:3] == (0, 0, at(p0=4))


def test_the_epoch_wraps_to_one(session):
    plan = session.plan(at(p0=1), partition_count=MANY)._replace(epoch=2**31 - 1)
    session.confirm(plan, 55)
    assert session.plan(at(p0=2), partition_count=MANY).epoch == 1
