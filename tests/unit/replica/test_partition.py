"""In-sync replicas and the high watermark, with a scripted controller and scripted followers."""

from __future__ import annotations

import pytest

from kafkapy.errors import Error
from kafkapy.metadata.topics_image import RECOVERED, RECOVERING
from tests.harness.replica import NODE_ID, ReplicaHarness, broker, partition_image

REPLICAS = (NODE_ID, 2, 3)
LAG_MAX_MS = 30_000  # replica.lag.time.max.ms


@pytest.fixture
def harness(tmp_path):
    made = ReplicaHarness(tmp_path, brokers=REPLICAS)
    made.put_topic("t", [partition_image(replicas=REPLICAS)])
    return made


def follow(harness, replica_id, offset, **fields):
    return harness.fetch(offset, **{"replica_id": replica_id, "replica_epoch": 100 + replica_id, **fields})


def test_the_high_watermark_is_the_smallest_end_of_the_isr(harness):
    partition = harness.partition()
    harness.append(b"a", b"b")
    harness.append(b"c")
    follow(harness, 2, 3)
    assert partition.log.high_watermark == 0
    follow(harness, 3, 2)
    assert partition.log.high_watermark == 2
    follow(harness, 3, 3)
    assert partition.log.high_watermark == 3


def test_a_follower_that_falls_behind_leaves_when_the_controller_says_so(harness):
    partition = harness.partition()
    harness.append(b"a")
    answers = harness.append(b"b", acks=-1, timeout_ms=10 * LAG_MAX_MS)
    for _ in range(4):
        follow(harness, 2, 2)
        harness.scheduler.advance(LAG_MAX_MS // 2)
    (change, _) = harness.controller.asked[0]
    assert change.new_isr == (NODE_ID, 2)
    assert (change.leader_epoch, change.partition_epoch) == (0, 0)
    # Until it is confirmed, the high watermark still waits for the one that is to leave.
    assert partition.log.high_watermark == 0
    assert partition.isr_state.is_in_flight
    harness.controller.confirm()
    assert partition.isr_state.isr == {NODE_ID, 2}
    assert partition.partition_epoch == 1
    assert partition.log.high_watermark == 2
    assert [answer.error for answer in answers] == [Error.NONE]
    assert harness.controller.asked == []


def test_a_follower_that_keeps_pace_without_reaching_the_end_stays(harness):
    for offset in range(10):
        harness.append(b"x")
        for replica_id in (2, 3):
            follow(harness, replica_id, offset)  # always one behind: the end at its previous fetch
        harness.scheduler.advance(LAG_MAX_MS // 2)
    assert harness.controller.asked == []


def shrink_to_leader(harness):
    harness.append(b"a")
    harness.scheduler.advance(2 * LAG_MAX_MS)
    harness.controller.confirm()
    assert harness.partition().isr_state.isr == {NODE_ID}
    assert harness.partition().log.high_watermark == 1


def test_a_follower_comes_back_when_it_reaches_the_high_watermark(harness):
    shrink_to_leader(harness)
    partition = harness.partition()
    follow(harness, 2, 0)
    assert harness.controller.asked == []
    follow(harness, 2, 1)
    change, _ = harness.controller.asked[0]
    assert change.new_isr == (NODE_ID, 2)
    # While the controller thinks, the high watermark must not pass the newcomer.
    harness.append(b"b")
    assert partition.log.high_watermark == 1
    assert partition.isr_state.maximal_isr == {NODE_ID, 2}
    harness.controller.confirm()
    assert partition.isr_state.isr == {NODE_ID, 2}
    follow(harness, 2, 2)
    assert partition.log.high_watermark == 2


def test_a_follower_about_to_enter_is_waited_for(harness):
    shrink_to_leader(harness)
    partition = harness.partition()
    follow(harness, 2, 1)
    harness.controller.refuse(Error.INELIGIBLE_REPLICA)
    assert not partition.isr_state.is_in_flight
    harness.append(b"b")
    assert partition.log.high_watermark == 1  # caught up a moment ago, and alive
    harness.clock.advance(LAG_MAX_MS + 1)
    harness.append(b"c")
    assert partition.log.high_watermark == 3


def test_a_fenced_broker_does_not_enter(harness):
    shrink_to_leader(harness)
    harness.put_brokers(broker(2, fenced=True))
    follow(harness, 2, 1)
    assert harness.controller.asked == []


def test_a_follower_enters_the_isr_only_with_the_epoch_of_its_registration(harness):
    shrink_to_leader(harness)
    follow(harness, 2, 1, replica_epoch=103)  # a registration that this broker does not know yet
    assert harness.controller.asked == []
    harness.put_brokers(broker(2)._replace(epoch=103))
    follow(harness, 2, 1, replica_epoch=103)
    change, _ = harness.controller.asked[0]
    assert (change.new_isr, change.broker_epochs) == ((NODE_ID, 2), (-1, 103))


def test_a_follower_without_a_broker_epoch_enters_the_isr(harness):
    shrink_to_leader(harness)
    follow(harness, 2, 1, replica_epoch=-1)
    change, _ = harness.controller.asked[0]
    assert (change.new_isr, change.broker_epochs) == ((NODE_ID, 2), (-1, -1))


def test_a_fetch_of_an_earlier_registration_is_refused_and_changes_nothing(harness):
    harness.append(b"a", b"b")
    follow(harness, 2, 1)
    harness.put_brokers(broker(2)._replace(epoch=200))
    replica = harness.partition().remote_replicas[2]
    (refused,) = follow(harness, 2, 2)
    assert refused.error == Error.NOT_LEADER_OR_FOLLOWER
    assert (replica.log_end_offset, replica.broker_epoch) == (1, 102)
    (accepted,) = follow(harness, 2, 2, replica_epoch=200)
    assert accepted.error == Error.NONE
    assert (replica.log_end_offset, replica.broker_epoch) == (2, 200)


def test_the_record_of_a_confirmed_isr_may_change_the_replicas_too(harness):
    shrink_to_leader(harness)
    follow(harness, 2, 1)
    harness.controller.confirm()
    partition = harness.partition()
    epoch = partition.partition_epoch
    # The record that completes a reassignment has the partition epoch that the response has announced.
    harness.put_topic("t", [partition_image(replicas=(NODE_ID, 2), partition_epoch=epoch)])
    assert partition.replicas == (NODE_ID, 2)
    assert set(partition.remote_replicas) == {2}
    harness.put_topic("t", [partition_image(replicas=REPLICAS, partition_epoch=epoch - 1)])
    assert partition.replicas == (NODE_ID, 2)


def test_a_proposal_after_the_response_survives_the_record_of_the_one_before(harness):
    shrink_to_leader(harness)
    follow(harness, 2, 1)
    harness.controller.confirm()
    follow(harness, 3, 1)
    partition = harness.partition()
    pending = partition.isr_state
    assert pending.maximal_isr == set(REPLICAS)
    record = partition_image(replicas=REPLICAS, isr=(NODE_ID, 2), partition_epoch=partition.partition_epoch)
    harness.put_topic("t", [record])
    assert partition.isr_state is pending
    harness.controller.confirm()
    assert partition.isr_state.isr == set(REPLICAS)


def test_a_leader_that_was_elected_uncleanly_reports_that_it_has_recovered(harness):
    image = partition_image(replicas=REPLICAS, isr=(NODE_ID,), leader_epoch=1, partition_epoch=1)
    harness.put_topic("t", [image._replace(leader_recovery_state=RECOVERING)])
    follow(harness, 2, 0)
    change, _ = harness.controller.asked[0]
    assert change.leader_recovery_state == RECOVERED


def test_an_unclear_answer_is_asked_again(harness):
    shrink_to_leader(harness)
    follow(harness, 2, 1)
    first = harness.controller.refuse(Error.REQUEST_TIMED_OUT)
    assert harness.partition().isr_state.is_in_flight
    harness.scheduler.advance(500)
    second, _ = harness.controller.asked[0]
    assert second == first
    harness.controller.confirm()
    assert harness.partition().isr_state.isr == {NODE_ID, 2}


def test_an_outdated_question_waits_for_newer_metadata(harness):
    shrink_to_leader(harness)
    follow(harness, 2, 1)
    harness.controller.refuse(Error.INVALID_UPDATE_VERSION)
    harness.scheduler.advance(10_000)
    assert harness.controller.asked == []
    harness.put_topic("t", [partition_image(replicas=REPLICAS, isr=(NODE_ID, 2), partition_epoch=9)])
    assert harness.partition().isr_state.isr == {NODE_ID, 2}
    assert not harness.partition().isr_state.is_in_flight


def test_old_metadata_does_not_undo_a_pending_change(harness):
    shrink_to_leader(harness)
    follow(harness, 2, 1)
    pending = harness.partition().isr_state
    epoch = harness.partition().partition_epoch
    harness.put_topic("t", [partition_image(replicas=REPLICAS, isr=(NODE_ID,), partition_epoch=epoch)])
    assert harness.partition().isr_state is pending


def test_an_answer_to_an_older_leader_epoch_is_ignored(harness):
    shrink_to_leader(harness)
    follow(harness, 2, 1)
    harness.put_topic("t", [partition_image(replicas=REPLICAS, isr=(NODE_ID,), leader_epoch=1, partition_epoch=5)])
    harness.controller.confirm()
    assert harness.partition().isr_state.isr == {NODE_ID}
    assert harness.partition().partition_epoch == 5


def test_a_new_leader_knows_nothing_of_its_followers(harness):
    harness.append(b"a")
    follow(harness, 2, 1)
    follow(harness, 3, 1)
    harness.put_topic("t", [partition_image(replicas=REPLICAS, leader=2, leader_epoch=1, partition_epoch=1)])
    assert harness.partition().remote_replicas == {}
    harness.put_topic("t", [partition_image(replicas=REPLICAS, leader_epoch=2, partition_epoch=2)])
    assert {each.log_end_offset for each in harness.partition().remote_replicas.values()} == {-1}
    harness.append(b"b")
    assert harness.partition().log.high_watermark == 1
    assert harness.partition().log.end_offset_for_epoch(0) == (1, 0)


def test_a_new_leader_epoch_is_known_before_its_first_append(harness):
    harness.append(b"a", b"b")
    harness.put_topic("t", [partition_image(replicas=REPLICAS, leader_epoch=3, partition_epoch=1)])
    partition = harness.partition()
    assert partition.last_offset_for_leader_epoch(3, 0, only_leader=True) == (2, 0)
    assert partition.last_offset_for_leader_epoch(3, 1, only_leader=True) == (2, 0)
    assert partition.last_offset_for_leader_epoch(3, 3, only_leader=True) == (2, 3)


def test_a_follower_below_the_start_of_the_leader_epoch_does_not_enter_the_isr(harness):
    harness.append(b"a", b"b")
    harness.put_topic("t", [partition_image(replicas=REPLICAS, isr=(NODE_ID, 3), leader_epoch=1, partition_epoch=1)])
    assert harness.partition().leader_epoch_start_offset == 2
    for offset in (0, 1):
        follow(harness, 2, offset)
        assert harness.partition().log.high_watermark <= offset
        assert harness.controller.asked == []
    follow(harness, 2, 2)
    change, _ = harness.controller.asked[0]
    assert change.new_isr == REPLICAS


def test_after_append_the_isr_must_still_be_large_enough(harness):
    harness.append(b"a")
    for replica_id in (2, 3):
        follow(harness, replica_id, 1)
    partition = harness.partition()
    assert partition.check_enough_replicas_reach_offset(1) == (True, Error.NONE)
    assert partition.check_enough_replicas_reach_offset(2) == (False, Error.NONE)
    harness.put_topic("t", [partition_image(replicas=REPLICAS, isr=(NODE_ID,), partition_epoch=1)])
    partition.min_insync_replicas = 2
    assert partition.check_enough_replicas_reach_offset(1) == (True, Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND)


def test_a_lone_replica_needs_no_timer(tmp_path):
    harness = ReplicaHarness(tmp_path)
    harness.put_topic("t", [partition_image()])
    assert harness.scheduler.pending() == 0
