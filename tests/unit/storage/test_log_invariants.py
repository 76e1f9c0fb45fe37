"""The invariants of logs and segments: a violation is a bug and is detected before anything is written."""

import pytest

from kafkapy._core.bytes.record_batch import scan_batches
from kafkapy.storage.log_segment import LogSegment
from tests.harness.log import LogHarness, batch


@pytest.fixture
def harness(tmp_path):
    return LogHarness(tmp_path)


def append(log, count=1, *, epoch=0, **keywords):
    return log.append_as_leader(batch(count, **keywords), epoch)


def with_base_offset(records, base_offset):
    """Returns the batch with another base offset, as a leader sends it; the checksum does not cover the offset."""
    return base_offset.to_bytes(8, "big") + bytes(records)[8:]


@pytest.mark.parametrize(
    "change",
    [
        {"log_start_offset": 11},
        {"log_start_offset": -1},
        {"high_watermark": 11},
        {"high_watermark": 4, "log_start_offset": 5},
        {"recovery_point": 11},
    ],
)
def test_offsets_that_contradict_each_other_are_a_bug(harness, change):
    log = harness.log()
    append(log, 10)
    log._check_offsets()
    for name, value in change.items():
        setattr(log, name, value)
    with pytest.raises(AssertionError):
        log._check_offsets()


def test_an_append_below_the_end_is_a_bug(harness):
    log = harness.log()
    append(log, 10)
    size = log.size
    records = with_base_offset(batch(), 9)
    batches, _ = scan_batches(records)
    with pytest.raises(AssertionError):
        log.append_copy(memoryview(records), batches)
    with pytest.raises(AssertionError):
        log._append(records, batches, 10, 0)
    assert (log.log_end_offset, log.segments.active.file.size) == (10, size)


@pytest.mark.parametrize("base_offset", [4, 5 + 2**31])
def test_a_batch_outside_the_offsets_of_a_segment_is_a_bug(harness, base_offset):
    log = harness.log(log_start_offset=5)
    segment = log.segments.active
    segment.open_for_append()
    records = with_base_offset(batch(), base_offset)
    batches, _ = scan_batches(records)
    with pytest.raises(AssertionError):
        segment.append(records, batches)
    assert segment.file.size == 0


def test_two_segments_with_one_base_offset_are_a_bug(harness):
    log = harness.log()
    with pytest.raises(AssertionError):
        log.segments.add(LogSegment(log.path, 0, log.config, harness.filesystem))
    assert len(log.segments) == 1


def test_the_recovery_point_never_passes_the_end(harness):
    log = harness.log()
    append(log, 10)
    log.flush(11)
    assert log.recovery_point == log.log_end_offset == 10, "the flush of a rolled segment may follow a truncation"
    log.roll_at(20)
    assert log.recovery_point == 10, "offsets without records are not flushed"
