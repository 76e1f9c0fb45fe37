"""Appends and fetches over real logs: acks, waiting, limits, errors for one partition and not for others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkapy.errors import ApiError, Error
from kafkapy.replica.fetch import FetchParams, FetchPartition
from kafkapy.types import TopicPartition, random_uuid
from tests.harness.replica import NODE_ID, ReplicaHarness, batch, break_reads, broker, partition_image, values_of

FOLLOWER_ID = 2


@pytest.fixture
def harness(tmp_path):
    made = ReplicaHarness(tmp_path, brokers=(NODE_ID, FOLLOWER_ID))
    made.put_topic("t", [partition_image(), partition_image()])
    return made


@pytest.fixture
def replicated(tmp_path):
    made = ReplicaHarness(tmp_path, brokers=(NODE_ID, FOLLOWER_ID))
    made.put_topic("t", [partition_image(replicas=(NODE_ID, FOLLOWER_ID))])
    return made


def errors_of(answers):
    return [answer.error for answer in answers]


# -- append ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_a_sole_replica_answers_at_once(harness, acks):
    first = harness.append(b"a", b"b", acks=acks)
    second = harness.append(b"c", acks=acks)
    assert [(answer.error, answer.base_offset, answer.log_start_offset) for answer in first + second] == [
        (Error.NONE, 0, 0),
        (Error.NONE, 2, 0),
    ]
    assert harness.partition().log.high_watermark == 3
    assert second[0].log_append_time_ms == -1


def test_log_append_time_is_answered(harness):
    harness.put_topic("stamped", [partition_image()], configs={"message.timestamp.type": "LogAppendTime"})
    assert harness.append(b"a", name="stamped")[0].log_append_time_ms == harness.clock.wall_ms()


@pytest.mark.parametrize("acks", [2, -2, 32767])
def test_other_acks_are_refused_and_nothing_is_written(harness, acks):
    assert errors_of(harness.append(b"a", acks=acks)) == [Error.INVALID_REQUIRED_ACKS]
    assert harness.partition().log.log_end_offset == 0


def test_internal_topics_are_not_for_clients_and_other_partitions_go_on(harness):
    harness.put_topic("__consumer_offsets", [partition_image()])
    answers = {}
    internal, plain = TopicPartition("__consumer_offsets", 0), TopicPartition("t", 0)
    harness.manager.append_records(
        1000, 1, {internal: memoryview(batch(b"a")), plain: memoryview(batch(b"b"))}, answers.update
    )
    assert answers[internal].error is Error.INVALID_TOPIC_EXCEPTION
    assert answers[plain].error is Error.NONE
    harness.manager.append_records(
        1000, 1, {internal: memoryview(batch(b"a"))}, answers.update, internal_topics_allowed=True
    )
    assert answers[internal].error is Error.NONE


def test_errors_are_those_of_the_partition(harness):
    broken = batch(b"a")
    broken[-1] ^= 1
    unknown, corrupt, good = TopicPartition("nothing", 0), TopicPartition("t", 0), TopicPartition("t", 1)
    answers = {}
    harness.manager.append_records(
        1000,
        -1,
        {unknown: memoryview(batch(b"a")), corrupt: memoryview(broken), good: memoryview(batch(b"b"))},
        answers.update,
    )
    assert answers[unknown].error is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert (answers[corrupt].error, answers[corrupt].base_offset, answers[corrupt].log_start_offset) == (2, -1, -1)
    assert answers[good].error is Error.NONE


def test_refused_records_are_named(harness):
    builder_fields = {"producer_id": -1}
    late = batch(b"a", **builder_fields)
    harness.clock.set_wall_ms(harness.clock.wall_ms() - 2 * 3600 * 1000)
    answers = []
    topic_partition = TopicPartition("t", 0)
    harness.manager.append_records(1000, 1, {topic_partition: memoryview(late)}, lambda r: answers.extend(r.values()))
    assert answers[0].error is Error.INVALID_TIMESTAMP
    assert answers[0].error_message == "One or more records have been rejected due to invalid timestamp"
    assert answers[0].record_errors[0][0] == 0
    assert answers[0].log_start_offset == 0


def test_acks_all_waits_for_the_follower(replicated):
    answers = replicated.append(b"a", acks=-1)
    assert answers == []
    replicated.fetch(0, replica_id=FOLLOWER_ID)
    assert answers == []
    replicated.fetch(1, replica_id=FOLLOWER_ID)
    assert [(answer.error, answer.base_offset) for answer in answers] == [(Error.NONE, 0)]
    assert replicated.manager.delayed_operations.produce.watched_count() == 0


def test_a_timeout_is_reported_for_the_partitions_that_still_wait(replicated):
    replicated.put_topic("alone", [partition_image()])
    answers = {}
    waiting, settled = TopicPartition("t", 0), TopicPartition("alone", 0)
    entries = {waiting: memoryview(batch(b"a")), settled: memoryview(batch(b"b"))}
    replicated.manager.append_records(500, -1, entries, answers.update)
    replicated.scheduler.advance(499)
    assert answers == {}
    replicated.scheduler.advance(1)
    assert answers[waiting].error is Error.REQUEST_TIMED_OUT
    assert answers[settled].error is Error.NONE
    replicated.fetch(1, replica_id=FOLLOWER_ID)
    assert answers[waiting].error is Error.REQUEST_TIMED_OUT


def test_min_insync_replicas_is_checked_before_the_append(tmp_path):
    harness = ReplicaHarness(tmp_path, brokers=(NODE_ID, FOLLOWER_ID), overrides={"min.insync.replicas": "2"})
    harness.put_topic("t", [partition_image(replicas=(NODE_ID, FOLLOWER_ID), isr=(NODE_ID,))])
    assert errors_of(harness.append(b"a", acks=-1)) == [Error.NOT_ENOUGH_REPLICAS]
    assert harness.partition().log.log_end_offset == 0
    assert errors_of(harness.append(b"a", acks=1)) == [Error.NONE]
    assert harness.partition().log.high_watermark == 0  # it stands still below min.insync.replicas


def test_a_produce_waits_while_the_isr_is_below_the_minimum(tmp_path):
    harness = ReplicaHarness(tmp_path, brokers=(NODE_ID, FOLLOWER_ID), overrides={"min.insync.replicas": "2"})
    replicas = (NODE_ID, FOLLOWER_ID)
    harness.put_topic("t", [partition_image(replicas=replicas)])
    answers = harness.append(b"a", acks=-1)
    harness.put_topic("t", [partition_image(replicas=replicas, isr=(NODE_ID,), partition_epoch=1)])
    assert answers == []  # the high watermark does not move below the minimum
    harness.put_topic(
        "t", [partition_image(replicas=replicas, partition_epoch=2)], configs={"min.insync.replicas": "1"}
    )
    replicated_answers = harness.append(b"b", acks=-1)
    harness.fetch(2, replica_id=FOLLOWER_ID)
    assert errors_of(answers) == errors_of(replicated_answers) == [Error.NONE]


def test_a_partition_with_fewer_replicas_than_the_minimum_takes_records(harness):
    harness.put_topic("strict", [partition_image()], configs={"min.insync.replicas": "3"})
    assert errors_of(harness.append(b"a", name="strict", acks=-1)) == [Error.NONE]


def test_a_waiting_produce_fails_when_leadership_is_lost(replicated):
    answers = replicated.append(b"a", acks=-1)
    replicated.put_topic(
        "t", [partition_image(replicas=(NODE_ID, FOLLOWER_ID), leader=FOLLOWER_ID, leader_epoch=1, partition_epoch=1)]
    )
    assert errors_of(answers) == [Error.NOT_LEADER_OR_FOLLOWER]
    assert errors_of(replicated.append(b"a")) == [Error.NOT_LEADER_OR_FOLLOWER]


def test_a_deleted_topic_is_removed_before_its_log(harness):
    log = harness.partition().log
    topic = harness.metadata.image.topics.by_name["t"]
    harness.manager.drop_topics([topic._replace(topic_id=bytes(16))])  # an older topic of the name
    assert harness.partition().log is log
    assert not log.is_deleted
    harness.manager.drop_topics([topic])
    assert TopicPartition("t", 0) not in harness.manager.partitions
    assert log.is_deleted
    assert os.path.isdir(log.path)
    harness.delete_topic("t")
    assert not os.path.exists(os.path.join(log.directory.path, "t-0"))


def test_a_waiting_produce_fails_when_its_topic_is_deleted(replicated):
    answers = replicated.append(b"a", acks=-1)
    replicated.delete_topic("t")
    assert errors_of(answers) == [Error.UNKNOWN_TOPIC_OR_PARTITION]


# -- fetch -------------------------------------------------------------------------------------------------------


def test_a_fetch_returns_the_records_and_offsets_of_the_log(harness):
    harness.append(b"a", b"b")
    (result,) = harness.fetch(0)
    assert values_of(result) == [b"a", b"b"]
    assert (result.high_watermark, result.last_stable_offset, result.log_start_offset) == (2, 2, 0)
    assert result.aborted_transactions is None
    (committed,) = harness.fetch(0, isolation_level=1)
    assert committed.aborted_transactions == []


def test_consumers_read_below_the_high_watermark_followers_to_the_end(replicated):
    replicated.append(b"a")
    assert values_of(replicated.fetch(0)[0]) == []
    assert values_of(replicated.fetch(0, replica_id=FOLLOWER_ID)[0]) == [b"a"]


def test_fetch_waits_for_min_bytes_over_all_partitions(harness):
    size = len(batch(b"a"))
    answers = []
    params = FetchParams(max_wait_ms=1000, min_bytes=2 * size, max_bytes=1 << 20)
    asked = [FetchPartition("t", number, 0, 1 << 20) for number in (0, 1)]
    harness.manager.fetch_messages(params, asked, answers.append)
    harness.append(b"a", number=1)
    assert answers == []
    harness.append(b"b", number=0)
    assert [values_of(result) for _, result in answers[0]] == [[b"b"], [b"a"]]
    assert harness.scheduler.pending() == 0


def test_fetch_answers_at_its_deadline_with_what_there_is(harness):
    answers = harness.fetch(0, max_wait_ms=500, min_bytes=1 << 20)
    harness.append(b"a")
    harness.scheduler.advance(499)
    assert answers == []
    harness.scheduler.advance(1)
    assert values_of(answers[0]) == [b"a"]


def test_fetch_of_nothing_and_fetch_that_wants_nothing_answer_at_once(harness):
    answers = []
    harness.manager.fetch_messages(FetchParams(max_wait_ms=9, min_bytes=1, max_bytes=9), [], answers.append)
    assert answers == [[]]
    assert len(harness.fetch(0, max_wait_ms=500, min_bytes=0)) == 1


def test_one_batch_more_than_the_limits_is_returned_whole_but_only_once(harness):
    value = b"x" * 1000
    harness.append(value, number=0)
    harness.append(value, number=1)
    params = FetchParams(max_wait_ms=0, min_bytes=1, max_bytes=100)
    asked = [FetchPartition("t", number, 0, 50) for number in (0, 1)]
    answers = []
    harness.manager.fetch_messages(params, asked, answers.append)
    assert [values_of(result) for _, result in answers[0]] == [[value], []]
    assert answers[0][1][1].error is Error.NONE


def test_a_fetch_with_an_error_does_not_wait(harness):
    (result,) = harness.fetch(5, max_wait_ms=1000)
    assert (result.error, result.high_watermark, result.log_start_offset) == (Error.OFFSET_OUT_OF_RANGE, -1, -1)
    (result,) = harness.fetch(0, name="nothing", max_wait_ms=1000)
    assert result.error is Error.UNKNOWN_TOPIC_OR_PARTITION


def test_fetch_checks_epoch_and_topic_id(harness):
    harness.put_topic("t", [partition_image(leader_epoch=3, partition_epoch=1)])
    assert harness.fetch(0, current_leader_epoch=2)[0].error is Error.FENCED_LEADER_EPOCH
    assert harness.fetch(0, current_leader_epoch=4)[0].error is Error.UNKNOWN_LEADER_EPOCH
    assert harness.fetch(0, current_leader_epoch=3)[0].error is Error.NONE
    assert harness.fetch(0, topic_id=random_uuid())[0].error is Error.INCONSISTENT_TOPIC_ID
    assert harness.fetch(0, topic_id=harness.partition().topic_id)[0].error is Error.NONE


def test_a_waiting_fetch_completes_when_the_epoch_changes(harness):
    answers = harness.fetch(0, max_wait_ms=1000, current_leader_epoch=0)
    harness.put_topic("t", [partition_image(leader_epoch=1, partition_epoch=1), partition_image()])
    assert errors_of(answers) == [Error.FENCED_LEADER_EPOCH]


def test_a_waiting_fetch_completes_when_the_topic_goes(harness):
    answers = harness.fetch(0, max_wait_ms=1000)
    harness.delete_topic("t")
    assert errors_of(answers) == [Error.UNKNOWN_TOPIC_OR_PARTITION]


def test_a_waiting_fetch_completes_when_the_log_rolls(harness):
    harness.append(b"a")
    answers = harness.fetch(1, max_wait_ms=1000, min_bytes=1 << 20)
    harness.partition().log.roll()
    assert answers == []
    harness.append(b"b")
    assert [values_of(result) for result in answers] == [[b"b"]]


def test_a_waiting_fetch_completes_when_the_log_is_truncated(harness):
    harness.append(b"a")
    answers = harness.fetch(1, max_wait_ms=1000)
    harness.partition().log.truncate_to(0)
    harness.manager.delayed_operations.complete_all(harness.partition(), TopicPartition("t", 0))
    assert errors_of(answers) == [Error.OFFSET_OUT_OF_RANGE]


def test_a_fetch_from_another_branch_learns_where_it_parts(harness):
    harness.append(b"a", b"b")
    harness.put_topic("t", [partition_image(leader_epoch=4, partition_epoch=1), partition_image()])
    harness.append(b"c")
    (result,) = harness.fetch(3, last_fetched_epoch=4, max_wait_ms=0)
    assert result.diverging_epoch is None
    (result,) = harness.fetch(3, last_fetched_epoch=0, max_wait_ms=1000)
    assert (result.diverging_epoch.epoch, result.diverging_epoch.offset) == (0, 2)
    assert len(result.records) == 0
    (result,) = harness.fetch(3, last_fetched_epoch=7)
    assert result.error is Error.OFFSET_OUT_OF_RANGE


def test_a_stranger_cannot_fetch_as_a_follower(harness):
    assert harness.fetch(0, replica_id=9)[0].error is Error.NOT_LEADER_OR_FOLLOWER
    assert harness.fetch(0, replica_id=9, current_leader_epoch=0)[0].error is Error.UNKNOWN_LEADER_EPOCH


# -- delete records, epochs, directories -------------------------------------------------------------------------


def delete(harness, offset, *, name="t", timeout_ms=1000):
    answers = {}
    topic_partition = TopicPartition(name, 0)
    harness.manager.delete_records(timeout_ms, {topic_partition: offset}, answers.update)
    found = answers.get(topic_partition)
    return answers if found is None else (found.error, found.low_watermark)


def test_delete_records_moves_the_log_start_up_to_the_high_watermark(harness):
    harness.append(b"a", b"b", b"c")
    assert delete(harness, 2) == (Error.NONE, 2)
    assert delete(harness, 1) == (Error.NONE, 2)
    assert delete(harness, 4) == (Error.OFFSET_OUT_OF_RANGE, -1)
    assert delete(harness, -2) == (Error.OFFSET_OUT_OF_RANGE, -1)
    assert delete(harness, -1) == (Error.NONE, 3)
    assert harness.fetch(1)[0].error is Error.OFFSET_OUT_OF_RANGE
    assert delete(harness, 0, name="nothing") == (Error.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_delete_records_needs_a_policy_that_deletes(harness):
    harness.put_topic("compacted", [partition_image()], configs={"cleanup.policy": "compact"})
    assert delete(harness, 0, name="compacted") == (Error.POLICY_VIOLATION, -1)
    harness.put_topic("__consumer_offsets", [partition_image()])
    assert delete(harness, 0, name="__consumer_offsets") == (Error.INVALID_TOPIC_EXCEPTION, -1)


def test_delete_records_waits_for_the_followers(replicated):
    replicated.append(b"a", b"b")
    replicated.fetch(2, replica_id=FOLLOWER_ID, log_start_offset=0)
    answers = delete(replicated, 2)
    assert answers == {}
    replicated.fetch(2, replica_id=FOLLOWER_ID, log_start_offset=1)
    assert answers == {}
    replicated.fetch(2, replica_id=FOLLOWER_ID, log_start_offset=2)
    assert [(result.error, result.low_watermark) for result in answers.values()] == [(Error.NONE, 2)]


def test_delete_records_times_out(replicated):
    replicated.append(b"a")
    replicated.fetch(1, replica_id=FOLLOWER_ID, log_start_offset=0)
    answers = delete(replicated, 1, timeout_ms=200)
    replicated.scheduler.advance(200)
    assert [(result.error, result.low_watermark) for result in answers.values()] == [(Error.REQUEST_TIMED_OUT, -1)]


def test_the_end_of_a_leader_epoch_is_the_start_of_the_next(harness):
    topic_partition = TopicPartition("t", 0)
    harness.append(b"a", b"b")
    harness.put_topic("t", [partition_image(leader_epoch=2, partition_epoch=1)])
    harness.append(b"c")
    assert harness.manager.offset_for_leader_epoch(topic_partition, -1, 0) == (2, 0)
    assert harness.manager.offset_for_leader_epoch(topic_partition, 2, 1) == (2, 0)
    assert harness.manager.offset_for_leader_epoch(topic_partition, 2, 2) == (3, 2)
    assert harness.manager.offset_for_leader_epoch(topic_partition, 2, 3) == (-1, -1)
    with pytest.raises(ApiError, match="FENCED_LEADER_EPOCH"):
        harness.manager.offset_for_leader_epoch(topic_partition, 1, 0)


def test_a_failed_directory_takes_its_partitions_offline(tmp_path):
    harness = ReplicaHarness(tmp_path, directories=2)
    harness.put_topic("t", [partition_image(), partition_image()])
    parked = harness.fetch(0, max_wait_ms=1000, number=0)
    lost = harness.partition(number=0).log.directory.path
    harness.log_manager.take_offline(lost, OSError(5, "Input/output error"))
    assert errors_of(parked) == [Error.KAFKA_STORAGE_ERROR]
    assert errors_of(harness.append(b"a", number=0)) == [Error.KAFKA_STORAGE_ERROR]
    assert errors_of(harness.append(b"a", number=1)) == [Error.NONE]
    assert harness.failures == [lost]


@pytest.fixture
def two_disks(tmp_path):
    """Returns a replica manager with two partitions in different log directories.

    The high watermark of partition 0 is below its two records, because its follower has not fetched.
    """
    made = ReplicaHarness(tmp_path, brokers=(NODE_ID, FOLLOWER_ID), directories=2)
    made.put_topic("t", [partition_image(replicas=(NODE_ID, FOLLOWER_ID)), partition_image()])
    made.append(b"a")
    made.append(b"b")
    return made


def fetch_both(harness, **params):
    answers = []
    asked = [FetchPartition("t", number, 0, 1 << 20) for number in range(2)]
    harness.manager.fetch_messages(
        FetchParams(**{"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **params}),
        asked,
        lambda results: answers.extend(found for _, found in results),
    )
    return answers


def test_a_log_that_cannot_be_read_fails_its_partition_and_its_directory_only(two_disks):
    two_disks.append(b"c", number=1)
    log = two_disks.partition(number=0).log
    log.high_watermark = 2
    break_reads(log)
    found = fetch_both(two_disks)
    assert errors_of(found) == [Error.KAFKA_STORAGE_ERROR, Error.NONE]
    assert values_of(found[1]) == [b"c"]
    assert two_disks.failures == [log.directory.path]


def test_a_log_that_cannot_be_read_ends_the_wait_of_a_fetch_and_not_the_append_that_tried_it(two_disks):
    waiting = fetch_both(two_disks, max_wait_ms=1000, min_bytes=1000)
    log = two_disks.partition(number=0).log
    log.high_watermark = 1  # has to be looked up in the file
    break_reads(log)
    assert errors_of(two_disks.append(b"c", number=1)) == [Error.NONE]
    assert errors_of(waiting) == [Error.KAFKA_STORAGE_ERROR, Error.NONE]
    assert two_disks.failures == [log.directory.path]


def test_a_damaged_transaction_index_fails_its_partition_only(two_disks):
    two_disks.append(b"c", number=1)
    log = two_disks.partition(number=0).log
    log.high_watermark = 2
    log.segments.active.is_free_of_aborted = False
    Path(log.segments.active.transaction_index.path).write_bytes(b"damaged")
    found = fetch_both(two_disks, isolation_level=1)
    assert errors_of(found) == [Error.UNKNOWN_SERVER_ERROR, Error.NONE]
    assert two_disks.failures == []


def test_high_watermarks_survive_a_restart(tmp_path):
    harness = ReplicaHarness(tmp_path, brokers=(NODE_ID, FOLLOWER_ID))
    replicas = (NODE_ID, FOLLOWER_ID)
    harness.put_topic("t", [partition_image(replicas=replicas)])
    harness.append(b"a", b"b", b"c")
    harness.fetch(2, replica_id=FOLLOWER_ID)
    assert harness.partition().log.high_watermark == 2
    harness.manager.checkpoint_high_watermarks()
    image = harness.metadata.image
    harness.log_manager.shutdown(1)

    again = ReplicaHarness(tmp_path, brokers=(NODE_ID, FOLLOWER_ID))
    again.metadata.image = image
    again.manager.startup(image)
    assert again.partition().log.log_end_offset == 3
    assert again.partition().log.high_watermark == 2


def test_a_restarted_broker_leads_again_only_after_its_registration(tmp_path):
    """A kill may have taken records that the followers have: their offsets need another leader epoch."""
    replicas = (NODE_ID, FOLLOWER_ID)
    harness = ReplicaHarness(tmp_path, brokers=replicas)
    harness.put_topic("t", [partition_image(replicas=replicas)])
    image = harness.metadata.image
    harness.log_manager.shutdown(1)

    again = ReplicaHarness(tmp_path, brokers=replicas)
    again.metadata.image = image
    again.manager.startup(image, waits_for_registration=True)
    assert errors_of(again.append(b"a")) == [Error.NOT_LEADER_OR_FOLLOWER]
    again.put_topic("t", [partition_image(replicas=replicas, isr=(NODE_ID,), partition_epoch=1)])
    assert errors_of(again.append(b"a")) == [Error.NOT_LEADER_OR_FOLLOWER]
    again.put_brokers(broker(NODE_ID)._replace(epoch=200))
    assert errors_of(again.append(b"a")) == [Error.NONE]


def test_a_topic_created_again_under_its_old_name_is_another_partition(harness):
    harness.append(b"a")
    old = harness.partition()
    harness.put_topic("t", [partition_image()], topic_id=random_uuid())
    assert harness.partition() is not old
    assert harness.partition().log.log_end_offset == 0
    assert harness.fetch(0, topic_id=old.topic_id)[0].error is Error.INCONSISTENT_TOPIC_ID


def test_the_listener_gets_partitions_that_are_led_and_followed(harness):
    harness.leadership.clear()
    harness.put_topic("t", [partition_image(replicas=(NODE_ID, FOLLOWER_ID), leader_epoch=1, partition_epoch=1)])
    harness.put_topic(
        "t", [partition_image(replicas=(NODE_ID, FOLLOWER_ID), leader=FOLLOWER_ID, leader_epoch=2, partition_epoch=2)]
    )
    told = [([p.topic_partition for p in led], [p.topic_partition for p in rest]) for led, rest in harness.leadership]
    assert told == [([("t", 0)], []), ([], [("t", 0)])]


def test_shutdown_answers_what_waits(replicated):
    parked = replicated.fetch(0, max_wait_ms=1000)
    produced = replicated.append(b"a", acks=-1)
    replicated.manager.shutdown()
    assert errors_of(parked) == [Error.NONE]
    assert errors_of(produced) == [Error.REQUEST_TIMED_OUT]
