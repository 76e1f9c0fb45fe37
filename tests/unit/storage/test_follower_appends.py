"""Appends of a leader's batches to a follower's log."""

from types import SimpleNamespace

import pytest

from kafkapy._core.bytes.message_set import build_message_set
from kafkapy.errors import ApiError, Error
from kafkapy.storage.follower_appends import split_runs
from tests.harness.log import NOW_MS, LogHarness, batch, values_of, with_base_offset

# Only a leader whose log was compacted has batches so far apart.
FAR_APART = {"index.interval.bytes": 0, "cleanup.policy": "compact"}


@pytest.fixture
def harness(tmp_path):
    return LogHarness(tmp_path)


def append(log, count=1, *, epoch=0, **keywords):
    return log.append_as_leader(batch(count, **keywords), epoch)


def test_a_follower_takes_the_epochs_of_the_batches_and_no_time_of_its_own(harness):
    leader, follower = harness.log(), harness.log({"message.timestamp.type": "LogAppendTime"}, name="u")
    append(leader, 2, epoch=3)
    append(leader, 2, epoch=3)
    info = follower.append_as_follower(leader.read(0, 1 << 20).records.read())
    assert (info.log_append_time, info.record_count, info.log_start_offset) == (-1, 4, 0)
    assert follower.leader_epochs.entries == ((3, 0),)
    assert follower.append_as_follower(b"torn") is None


def test_follower_appends_keep_offsets_and_epochs(harness):
    leader, follower = harness.log(), harness.log(name="u")
    append(leader, 2, epoch=1)
    append(leader, 3, epoch=5, producer_id=4, producer_epoch=0, base_sequence=0)
    data = leader.read(0, 1 << 20).records.read()
    info = follower.append_as_follower(data + b"torn")
    assert (info.first_offset, info.last_offset) == (0, 4)
    assert follower.leader_epochs.entries == ((1, 0), (5, 2))
    assert follower.producers.entries[4].last_sequence == 2
    assert follower.read(0, 1 << 20).records.read() == data
    with pytest.raises(ApiError) as raised:
        follower.append_as_follower(data)
    assert raised.value.error == Error.OFFSET_OUT_OF_RANGE
    damaged = bytearray(data)
    damaged[70] ^= 1
    with pytest.raises(ApiError) as raised:
        follower.append_as_follower(bytes(damaged))
    assert raised.value.error == Error.CORRUPT_MESSAGE


@pytest.mark.parametrize(("gap", "bases"), [(2**31 - 1, [0]), (2**31, [0, 2**31])])
def test_an_offset_too_far_from_the_base_offset_begins_a_new_segment(harness, gap, bases):
    """An index entry has 32 bits for an offset."""
    log = harness.log(FAR_APART)
    log.append_as_follower(with_base_offset(batch(), 0))
    log.append_as_follower(with_base_offset(batch(value=b"far"), gap))
    assert list(log.segments.base_offsets) == bases
    assert log.log_end_offset == gap + 1
    assert values_of(log.read(1, 1000)) == [(gap, b"far")]
    again = harness.log(FAR_APART)
    assert again.log_end_offset == gap + 1
    assert values_of(again.read(gap, 1000)) == [(gap, b"far")]


def test_a_new_segment_begins_with_the_first_batch_that_is_appended_to_it(harness):
    """Apache Kafka rolls at the same offset."""
    log = harness.log()
    log.append_as_follower(with_base_offset(batch(), 0))
    log.append_as_follower(with_base_offset(batch(3), 2**32))
    assert list(log.segments.base_offsets) == [0, 2**32]
    assert log.log_end_offset == 2**32 + 3


def test_batches_of_one_fetch_may_be_further_apart_than_a_segment_can_index(harness):
    """A compacted log of a leader has such gaps, also when its topic is no longer compacted."""
    log = harness.log({"index.interval.bytes": 0})
    offsets = [0, 5, 2**31 + 4, 2**31 + 5, 2**33]
    fetched = b"".join(with_base_offset(batch(value=b"%d" % offset), offset) for offset in offsets)
    info = log.append_as_follower(fetched)
    assert (info.first_offset, info.last_offset) == (0, 2**33)
    assert list(log.segments.base_offsets) == [0, 2**31 + 4, 2**33]
    again = harness.log({"index.interval.bytes": 0})
    assert again.log_end_offset == 2**33 + 1
    for offset in offsets:
        assert values_of(again.read(offset, 1000))[0] == (offset, b"%d" % offset)


def test_a_fetch_larger_than_a_segment_is_divided(harness):
    log = harness.log({"segment.bytes": 1 << 20, "max.message.bytes": 4 << 20})
    large = with_base_offset(batch(value=bytes(3 << 19)), 3)  # alone larger than a segment
    fetched = b"".join(with_base_offset(batch(value=bytes(400_000)), offset) for offset in range(3)) + large
    log.append_as_follower(fetched + with_base_offset(batch(value=b"last"), 4))
    assert list(log.segments.base_offsets) == [0, 2, 3, 4]
    assert harness.log({"segment.bytes": 1 << 20}).log_end_offset == 5


def runs_of(sizes, segment_bytes):
    """Divides batches of these sizes into runs, each of which fits into one segment, and returns the batches in each
    run."""
    batches = [SimpleNamespace(size=size, base_offset=index, last_offset=index) for index, size in enumerate(sizes)]
    return [run.next_offset - run.base_offset for run in split_runs(b"", batches, segment_bytes)]


def test_batches_are_divided_into_as_few_runs_as_possible():
    assert runs_of([10, 10, 10], 30) == [3]
    assert runs_of([10, 10, 11], 30) == [2, 1]
    assert runs_of([31, 10, 10, 31], 30) == [1, 2, 1]
    assert runs_of([], 30) == []


def test_a_follower_stops_before_a_batch_of_a_higher_epoch(harness):
    """KAFKA-18723: the leader appended that batch after it had served the fetch."""
    leader, follower = harness.log(), harness.log(name="u")
    append(leader, 2, epoch=3)
    append(leader, 2, epoch=4)
    data = leader.read(0, 1 << 20).records.read()
    assert follower.append_as_follower(data, 3).last_offset == 1
    assert follower.leader_epochs.entries == ((3, 0),)
    assert follower.append_as_follower(data[len(data) // 2 :], 3) is None
    damaged = bytearray(data)
    damaged[-1] ^= 1
    assert harness.log(name="v").append_as_follower(bytes(damaged), 3).last_offset == 1
    with pytest.raises(ApiError) as raised:
        harness.log(name="w").append_as_follower(bytes(damaged), 4)
    assert raised.value.error == Error.CORRUPT_MESSAGE


@pytest.mark.parametrize("position", [8, 16, 21, 70])
def test_a_damaged_batch_behind_a_valid_one_refuses_the_whole_fetch(harness, position):
    leader, follower = harness.log(), harness.log(name="u")
    append(leader, 2)
    size = leader.segments.active.size
    append(leader, 2)
    damaged = bytearray(leader.read(0, 1 << 20).records.read())
    damaged[size + position] = 0xFF
    with pytest.raises(ApiError) as raised:
        follower.append_as_follower(bytes(damaged))
    assert raised.value.error == Error.CORRUPT_MESSAGE
    assert follower.log_end_offset == 0


def test_fetched_offsets_have_to_ascend(harness):
    follower = harness.log()
    with pytest.raises(ApiError) as raised:
        follower.append_as_follower(with_base_offset(batch(2), 5) + with_base_offset(batch(), 6))
    assert raised.value.error == Error.OFFSET_OUT_OF_RANGE
    assert follower.log_end_offset == 0


def test_an_empty_log_may_start_within_the_first_fetched_batch(harness):
    """DeleteRecords on the leader may have moved its log start offset there."""
    follower = harness.log()
    follower.truncate_fully_and_start_at(7)
    follower.append_as_follower(with_base_offset(batch(5), 5))
    assert (follower.log_start_offset, follower.log_end_offset) == (7, 10)
    assert list(follower.segments.base_offsets) == [5]
    with pytest.raises(ApiError):
        follower.append_as_follower(with_base_offset(batch(5), 8))


def test_message_sets_of_an_old_leader_are_appended(harness):
    follower = harness.log()
    old = build_message_set([(0, NOW_MS, None, b"a"), (1, NOW_MS + 1, None, b"b")], magic=1)
    info = follower.append_as_follower(old + with_base_offset(batch(), 2))
    assert (info.first_offset, info.last_offset) == (0, 2)
    assert follower.read(0, 1 << 20).records.read()[: len(old)] == old


def test_a_follower_takes_over_the_leaders_offsets_within_its_log(harness):
    log = harness.log()
    log.append_as_follower(with_base_offset(batch(4), 0))
    assert log.follow_high_watermark(9)
    assert log.high_watermark == 4
    assert not log.follow_high_watermark(4)
    assert log.follow_high_watermark(3)
    assert not log.follow_log_start_offset(4)  # above the high watermark
    assert log.follow_log_start_offset(2)
    assert not log.follow_log_start_offset(1)
    assert (log.log_start_offset, log.high_watermark) == (2, 3)
    assert log.follow_high_watermark(1)
    assert log.high_watermark == 2
