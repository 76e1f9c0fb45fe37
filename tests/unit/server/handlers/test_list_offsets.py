"""ListOffsets in its versions: special timestamps, timestamps, isolation, epochs."""

from __future__ import annotations

import os

import pytest

from kafkapy.errors import Error
from kafkapy.protocol.messages.list_offsets import ListOffsetsRequest
from kafkapy.server.handlers.list_offsets import handle_list_offsets
from tests.harness.handler import HandlerHarness
from tests.harness.replica import NODE_ID, NOW_MS, break_reads, partition_image

FOLLOWER_ID = 2
LATEST, EARLIEST, NEWEST, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = -1, -2, -3, -4, -5, -6


@pytest.fixture
def harness(tmp_path):
    made = HandlerHarness(tmp_path, brokers=(NODE_ID, FOLLOWER_ID))
    made.put_topic("t", [partition_image(), partition_image()])
    return made


def ask(harness, timestamp, version, *, name="t", partitions=(0,), epoch=-1, replica_id=-1, isolation=0, **fields):
    topic = ListOffsetsRequest.ListOffsetsTopic(
        name=name,
        partitions=[
            ListOffsetsRequest.ListOffsetsPartition(
                partition_index=index, timestamp=timestamp, current_leader_epoch=epoch, **fields
            )
            for index in partitions
        ],
    )
    request = ListOffsetsRequest(replica_id=replica_id, isolation_level=isolation, topics=[topic])
    return harness.send(handle_list_offsets, request, version).response.topics[0].partitions


def answer(harness, timestamp, version=11, **fields):
    (found,) = ask(harness, timestamp, version, **fields)
    return found.error_code, found.timestamp, found.offset, found.leader_epoch


@pytest.mark.parametrize("version", range(1, 12))
def test_earliest_and_latest(harness, version):
    epoch = 0 if version >= 4 else -1
    harness.append(b"a", b"b", b"c")
    harness.manager.delete_records(0, {harness.partition().topic_partition: 1}, lambda results: None)
    assert answer(harness, LATEST, version) == (0, -1, 3, epoch)
    assert answer(harness, EARLIEST, version) == (0, -1, 1, epoch)


def test_special_timestamps_and_the_versions_that_know_them(harness):
    harness.append(b"a")
    harness.clock.advance(1000)
    assert answer(harness, NEWEST, 7) == (0, NOW_MS, 0, 0)
    assert answer(harness, EARLIEST_LOCAL, 8) == (0, -1, 0, 0)
    assert answer(harness, LATEST_TIERED, 9) == (0, -1, -1, -1)
    assert answer(harness, PENDING_UPLOAD, 11) == (0, -1, -1, -1)
    for timestamp, version in ((NEWEST, 6), (EARLIEST_LOCAL, 7), (LATEST_TIERED, 8), (PENDING_UPLOAD, 10), (-7, 11)):
        assert answer(harness, timestamp, version)[0] == Error.UNSUPPORTED_VERSION


def test_an_empty_log(harness):
    assert answer(harness, LATEST) == (0, -1, 0, 0)
    assert answer(harness, EARLIEST)[:3] == (0, -1, 0)
    assert answer(harness, NEWEST) == (0, -1, -1, -1)
    assert answer(harness, NOW_MS) == (0, -1, -1, -1)


def test_by_timestamp(harness):
    harness.append(b"a")
    assert answer(harness, NOW_MS - 1) == (0, NOW_MS, 0, 0)
    assert answer(harness, NOW_MS) == (0, NOW_MS, 0, 0)
    assert answer(harness, NOW_MS + 1) == (0, -1, -1, -1)


def test_a_log_that_cannot_be_read_fails_its_partition_only(tmp_path):
    harness = HandlerHarness(tmp_path, directories=2)
    harness.put_topic("t", [partition_image(), partition_image()])
    for number in range(2):
        harness.append(b"a", number=number)
    log = harness.partition(number=0).log
    break_reads(log)
    found = ask(harness, NOW_MS, 11, partitions=(0, 1))
    assert [each.error_code for each in found] == [Error.KAFKA_STORAGE_ERROR, 0]
    assert harness.failures == [log.directory.path]


def test_segments_without_files_fail_their_partition_only(tmp_path):
    harness = HandlerHarness(tmp_path, directories=2)
    harness.put_topic("t", [partition_image(), partition_image()])
    log = harness.partition(number=0).log
    os.unlink(log.segments.active.path(".log"))
    found = ask(harness, LATEST, 0, partitions=(0, 1), max_num_offsets=1)
    assert [each.error_code for each in found] == [Error.KAFKA_STORAGE_ERROR, 0]
    assert harness.failures == [log.directory.path]


def test_clients_do_not_see_what_is_not_replicated(tmp_path):
    harness = HandlerHarness(tmp_path, brokers=(NODE_ID, FOLLOWER_ID))
    harness.put_topic("t", [partition_image(replicas=(NODE_ID, FOLLOWER_ID))])
    harness.append(b"a")
    assert answer(harness, LATEST) == (0, -1, 0, 0)
    assert answer(harness, NOW_MS) == (0, -1, -1, -1)
    assert answer(harness, LATEST, replica_id=FOLLOWER_ID) == (0, -1, 1, 0)


def test_read_committed_ends_at_the_last_stable_offset(harness):
    harness.append(b"a")
    harness.append(b"b", producer_id=4, producer_epoch=0, base_sequence=0, is_transactional=True)
    assert answer(harness, LATEST) == (0, -1, 2, 0)
    assert answer(harness, LATEST, isolation=1) == (0, -1, 1, 0)


def test_a_new_leader_below_its_start_is_not_asked(tmp_path):
    harness = HandlerHarness(tmp_path, brokers=(NODE_ID, FOLLOWER_ID))
    replicas = (NODE_ID, FOLLOWER_ID)
    harness.put_topic("t", [partition_image(replicas=replicas)])
    harness.append(b"a")
    harness.put_topic("t", [partition_image(replicas=replicas, leader_epoch=1, partition_epoch=1)])
    assert answer(harness, LATEST, 5)[0] == Error.OFFSET_NOT_AVAILABLE
    assert answer(harness, LATEST, 4)[0] == Error.LEADER_NOT_AVAILABLE
    assert answer(harness, EARLIEST, 5)[0] == 0
    harness.fetch(1, replica_id=FOLLOWER_ID)
    assert answer(harness, LATEST, 5) == (0, -1, 1, 1)


def test_each_error_has_its_code(harness):
    assert answer(harness, LATEST, name="x")[0] == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert answer(harness, LATEST, epoch=3)[0] == Error.UNKNOWN_LEADER_EPOCH
    harness.put_topic("t", [partition_image(leader_epoch=4, partition_epoch=1)])
    assert answer(harness, LATEST, epoch=3)[0] == Error.FENCED_LEADER_EPOCH
    assert answer(harness, LATEST, epoch=4)[0] == 0
    twice = ask(harness, LATEST, 11, partitions=(0, 0))
    assert [found.error_code for found in twice] == [Error.INVALID_REQUEST]


def test_version_0_lists_segment_starts(harness):
    harness.append(b"a")
    harness.partition().log.roll()
    harness.append(b"b", b"c")

    def offsets(timestamp, most):
        (found,) = ask(harness, timestamp, 0, max_num_offsets=most)
        return found.error_code, found.old_style_offsets

    assert offsets(LATEST, 10) == (0, [3, 1, 0])
    assert offsets(LATEST, 1) == (0, [3])
    assert offsets(EARLIEST, 10) == (0, [0])
    assert offsets(0, 10) == (0, [])
    assert offsets(1 << 62, 10) == (0, [3, 1, 0])
    (unknown,) = ask(harness, LATEST, 0, name="x")
    assert unknown.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
