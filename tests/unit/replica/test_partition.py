"""In-sync replicas and the high watermark, with a scripted controller and scripted followers."""

from __future__ import annotations

import pytest

from kafkapy.errors import Error
from tests.replica_world import NODE_ID, ReplicaWorld, broker, partition_image

REPLICAS = (NODE_ID, 2, 3)
LAG_MAX_MS = 30_000  # replica.lag.time.max.ms


@pytest.fixture
def world(tmp_path):
    made = ReplicaWorld(tmp_path, brokers=REPLICAS)
    made.put_topic("t", [partition_image(replicas=REPLICAS)])
    return made


def follow(world, replica_id, offset, **fields):
    return world.fetch(offset, replica_id=replica_id, replica_epoch=100 + replica_id, **fields)


def test_the_high_watermark_is_the_smallest_end_of_the_isr(world):
    partition = world.partition()
    world.append(b"a", b"b")
    world.append(b"c")
    follow(world, 2, 3)
    assert partition.log.high_watermark == 0
    follow(world, 3, 2)
    assert partition.log.high_watermark == 2
    follow(world, 3, 3)
    assert partition.log.high_watermark == 3


def test_a_follower_that_falls_behind_leaves_when_the_controller_says_so(world):
    partition = world.partition()
    world.append(b"a")
    answers = world.append(b"b", acks=-1, timeout_ms=10 * LAG_MAX_MS)
    for _ in range(4):
        follow(world, 2, 2)
        world.scheduler.advance(LAG_MAX_MS // 2)
    (change, _) = world.controller.asked[0]
    assert change.new_isr == (NODE_ID, 2)
    assert (change.leader_epoch, change.partition_epoch) == (0, 0)
    # Until it is confirmed, the high watermark still waits for the one that is to leave.
    assert partition.log.high_watermark == 0
    assert partition.isr_state.is_in_flight
    world.controller.confirm()
    assert partition.isr_state.isr == {NODE_ID, 2}
    assert partition.partition_epoch == 1
    assert partition.log.high_watermark == 2
    assert [answer.error for answer in answers] == [Error.NONE]
    assert world.controller.asked == []


def test_a_follower_that_keeps_pace_without_reaching_the_end_stays(world):
    for offset in range(10):
        world.append(b"x")
        for replica_id in (2, 3):
            follow(world, replica_id, offset)  # always one behind: the end at its previous fetch
        world.scheduler.advance(LAG_MAX_MS // 2)
    assert world.controller.asked == []


def shrink_to_leader(world):
    world.append(b"a")
    world.scheduler.advance(2 * LAG_MAX_MS)
    world.controller.confirm()
    assert world.partition().isr_state.isr == {NODE_ID}
    assert world.partition().log.high_watermark == 1


def test_a_follower_comes_back_when_it_reaches_the_high_watermark(world):
    shrink_to_leader(world)
    partition = world.partition()
    follow(world, 2, 0)
    assert world.controller.asked == []
    follow(world, 2, 1)
    change, _ = world.controller.asked[0]
    assert change.new_isr == (NODE_ID, 2)
    # While the controller thinks, the high watermark must not pass the newcomer.
    world.append(b"b")
    assert partition.log.high_watermark == 1
    assert partition.isr_state.maximal_isr == {NODE_ID, 2}
    world.controller.confirm()
    assert partition.isr_state.isr == {NODE_ID, 2}
    follow(world, 2, 2)
    assert partition.log.high_watermark == 2


def test_a_follower_about_to_enter_is_waited_for(world):
    shrink_to_leader(world)
    partition = world.partition()
    follow(world, 2, 1)
    world.controller.refuse(Error.INELIGIBLE_REPLICA)
    assert not partition.isr_state.is_in_flight
    world.append(b"b")
    assert partition.log.high_watermark == 1  # caught up a moment ago, and alive
    world.clock.advance(LAG_MAX_MS + 1)
    world.append(b"c")
    assert partition.log.high_watermark == 3


def test_a_fenced_broker_does_not_enter(world):
    shrink_to_leader(world)
    brokers = {**world.metadata.image.brokers, 2: broker(2, fenced=True)}
    world.metadata.image = world.metadata.image._replace(brokers=brokers)
    follow(world, 2, 1)
    assert world.controller.asked == []


def test_an_unclear_answer_is_asked_again(world):
    shrink_to_leader(world)
    follow(world, 2, 1)
    first = world.controller.refuse(Error.REQUEST_TIMED_OUT)
    assert world.partition().isr_state.is_in_flight
    world.scheduler.advance(500)
    second, _ = world.controller.asked[0]
    assert second == first
    world.controller.confirm()
    assert world.partition().isr_state.isr == {NODE_ID, 2}


def test_an_outdated_question_waits_for_newer_metadata(world):
    shrink_to_leader(world)
    follow(world, 2, 1)
    world.controller.refuse(Error.INVALID_UPDATE_VERSION)
    world.scheduler.advance(10_000)
    assert world.controller.asked == []
    world.put_topic("t", [partition_image(replicas=REPLICAS, isr=(NODE_ID, 2), partition_epoch=9)])
    assert world.partition().isr_state.isr == {NODE_ID, 2}
    assert not world.partition().isr_state.is_in_flight


def test_old_metadata_does_not_undo_a_pending_change(world):
    shrink_to_leader(world)
    follow(world, 2, 1)
    pending = world.partition().isr_state
    epoch = world.partition().partition_epoch
    world.put_topic("t", [partition_image(replicas=REPLICAS, isr=(NODE_ID,), partition_epoch=epoch)])
    assert world.partition().isr_state is pending


def test_an_answer_to_an_older_leader_epoch_is_ignored(world):
    shrink_to_leader(world)
    follow(world, 2, 1)
    world.put_topic("t", [partition_image(replicas=REPLICAS, isr=(NODE_ID,), leader_epoch=1, partition_epoch=5)])
    world.controller.confirm()
    assert world.partition().isr_state.isr == {NODE_ID}
    assert world.partition().partition_epoch == 5


def test_a_new_leader_knows_nothing_of_its_followers(world):
    world.append(b"a")
    follow(world, 2, 1)
    follow(world, 3, 1)
    world.put_topic("t", [partition_image(replicas=REPLICAS, leader=2, leader_epoch=1, partition_epoch=1)])
    assert world.partition().remote_replicas == {}
    world.put_topic("t", [partition_image(replicas=REPLICAS, leader_epoch=2, partition_epoch=2)])
    assert {each.log_end_offset for each in world.partition().remote_replicas.values()} == {-1}
    world.append(b"b")
    assert world.partition().log.high_watermark == 1
    assert world.partition().log.end_offset_for_epoch(0) == (1, 0)


def test_after_append_the_isr_must_still_be_large_enough(world):
    world.append(b"a")
    for replica_id in (2, 3):
        follow(world, replica_id, 1)
    partition = world.partition()
    assert partition.check_enough_replicas_reach_offset(1) == (True, Error.NONE)
    assert partition.check_enough_replicas_reach_offset(2) == (False, Error.NONE)
    world.put_topic("t", [partition_image(replicas=REPLICAS, isr=(NODE_ID,), partition_epoch=1)])
    partition.min_insync_replicas = 2
    assert partition.check_enough_replicas_reach_offset(1) == (True, Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND)


def test_a_lone_replica_needs_no_timer(tmp_path):
    world = ReplicaWorld(tmp_path)
    world.put_topic("t", [partition_image()])
    assert world.scheduler.pending() == 0
