"""Retries after a start: a producer snapshot has one batch of each producer, and the log has the batches before it."""

from __future__ import annotations

import pytest

from kafkapy.errors import ApiError, Error
from kafkapy.storage import producer_replay
from kafkapy.storage.log_segment import LogSegment
from tests.harness.log import LogHarness, batch, with_base_offset


class Reads:
    """Counts what is read from the ends of segments."""

    def __init__(self, monkeypatch):
        self.lengths = []
        self._read_end = LogSegment.read_end
        monkeypatch.setattr(LogSegment, "read_end", lambda segment, length: self._read(segment, length))

    def _read(self, segment, length):
        chunk, position = self._read_end(segment, length)
        assert len(chunk) <= length
        self.lengths.append(len(chunk))
        return chunk, position


@pytest.fixture
def reads(monkeypatch):
    return Reads(monkeypatch)


def open_files(log):
    """Returns the segments whose log or index is open."""
    return [each for each in log.segments if each._file is not None or each._offset_index is not None]


def restarted(harness, log, overrides=None):
    log.close()
    harness.is_clean = True
    return harness.log(overrides)


def produce(log, sequence, *, producer_id=5, epoch=0, value=b"value"):
    records = batch(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, value=value)
    return log.append_as_leader(records, 0)


def test_each_of_five_requests_may_be_retried_after_a_clean_stop(tmp_path):
    harness = LogHarness(tmp_path)
    log = harness.log()
    offsets = {}
    for sequence in range(8):
        for producer_id in (5, 6):
            offsets[producer_id, sequence] = produce(log, sequence, producer_id=producer_id).first_offset
    before = {entry.producer_id: (entry.batches, entry.last_timestamp) for entry in log.producers.entries.values()}
    log = restarted(harness, log)
    after = {entry.producer_id: (entry.batches, entry.last_timestamp) for entry in log.producers.entries.values()}
    assert after == before
    for sequence in range(3, 8):
        again = produce(log, sequence)
        assert (again.duplicate, again.first_offset) == (True, offsets[5, sequence])
    with pytest.raises(ApiError) as refused:
        produce(log, 2)
    assert refused.value.error in (Error.OUT_OF_ORDER_SEQUENCE_NUMBER, Error.DUPLICATE_SEQUENCE_NUMBER)
    assert not produce(log, 8).duplicate
    log.close()


def test_a_retry_is_recognized_across_the_beginning_of_a_segment(tmp_path):
    harness = LogHarness(tmp_path)
    log = harness.log({"segment.bytes": 1 << 20})
    for sequence in range(7):
        produce(log, sequence, value=b"x" * 200_000)
    assert len(log.segments) == 2
    log = restarted(harness, log, {"segment.bytes": 1 << 20})
    for sequence in range(2, 7):
        assert produce(log, sequence, value=b"x" * 200_000).duplicate
    log.close()


def test_batches_of_an_earlier_epoch_are_not_restored(tmp_path):
    harness = LogHarness(tmp_path)
    log = harness.log()
    produce(log, 0)
    produce(log, 1)
    produce(log, 0, epoch=1)
    log = restarted(harness, log)
    (entry,) = log.producers.entries.values()
    assert [each.first_sequence for each in entry.batches] == [0]
    log.close()


def test_a_truncated_log_still_recognizes_retries(tmp_path):
    harness = LogHarness(tmp_path)
    log = harness.log()
    for sequence in range(4):
        produce(log, sequence)
    log = restarted(harness, log)
    produce(log, 4)
    log.truncate_to(4)
    assert produce(log, 1).duplicate
    log.close()


def test_a_start_reads_once_and_opens_nothing_if_the_end_of_the_log_has_five_batches(tmp_path, reads):
    harness = LogHarness(tmp_path)
    log = harness.log({"segment.bytes": 1 << 20})
    for sequence in range(60):
        produce(log, sequence, value=b"x" * 20_000)
    assert len(log.segments) == 2
    log = restarted(harness, log, {"segment.bytes": 1 << 20})
    assert len(reads.lengths) == 1 and reads.lengths[0] <= producer_replay.TAIL_LENGTHS[0]
    assert not open_files(log)
    assert len(log.producers.entries[5].batches) == 5
    log.close()


def test_a_start_reads_a_bounded_part_of_the_log_for_a_producer_that_wrote_long_ago(tmp_path, reads):
    harness = LogHarness(tmp_path)
    overrides = {"segment.bytes": 4 << 20}
    log = harness.log(overrides)
    produce(log, 3, producer_id=6)
    for sequence in range(30):
        produce(log, sequence, value=b"x" * 200_000)
    log = restarted(harness, log, overrides)
    assert len(reads.lengths) <= 3 and sum(reads.lengths) <= sum(producer_replay.TAIL_LENGTHS)
    assert not open_files(log)
    assert [len(entry.batches) for entry in log.producers.entries.values()] == [1, 5]
    log.close()


def test_a_start_without_a_snapshot_reads_no_end(tmp_path, reads):
    harness = LogHarness(tmp_path)
    log = harness.log()
    for sequence in range(3):
        produce(log, sequence)
    log.close()
    for snapshot in harness.path.glob("*.snapshot"):
        snapshot.unlink()
    harness.is_clean = True
    log = harness.log()
    assert reads.lengths == [] and produce(log, 1).duplicate
    log.close()


def test_an_index_without_entries_at_the_end_of_a_long_segment_costs_no_read(tmp_path, reads):
    harness = LogHarness(tmp_path)
    overrides = {"index.interval.bytes": 1 << 30}
    log = harness.log(overrides)
    for sequence in range(6):
        produce(log, sequence, value=b"x" * 300_000)
    log = restarted(harness, log, overrides)
    assert sum(reads.lengths) == 0
    (entry,) = log.producers.entries.values()
    assert [each.first_sequence for each in entry.batches] == [5]
    log.close()


def test_markers_between_batches_of_one_epoch_are_passed_over(tmp_path):
    harness = LogHarness(tmp_path)
    log = harness.log()
    for sequence in range(4):
        records = batch(producer_id=5, producer_epoch=0, base_sequence=sequence, is_transactional=True)
        log.append_as_leader(records, 0)
        log.append_as_leader(harness.marker(5, 0, commit=sequence % 2 == 0), 0, from_client=False)
    before = log.producers.entries[5]
    log = restarted(harness, log)
    after = log.producers.entries[5]
    assert (after.batches, after.last_timestamp) == (before.batches, before.last_timestamp)
    assert after.coordinator_epoch == before.coordinator_epoch and after.transaction_first_offset == -1
    log.close()


def test_a_marker_that_raises_the_epoch_leaves_no_batches_to_restore(tmp_path, reads):
    harness = LogHarness(tmp_path)
    log = harness.log()
    log.append_as_leader(batch(producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True), 0)
    log.append_as_leader(harness.marker(5, 1, commit=True), 0, from_client=False)
    before = log.producers.entries[5].batches
    log = restarted(harness, log)
    assert log.producers.entries[5].batches == before
    log.close()


def test_batches_that_compaction_has_removed_end_the_run(tmp_path):
    """The batch with sequence number 1 is missing, which a pass of the log cleaner has removed."""
    harness = LogHarness(tmp_path)
    log = harness.log()
    for sequence in (0, 2, 3):
        records = batch(producer_id=5, producer_epoch=0, base_sequence=sequence)
        log.append_as_follower(with_base_offset(records, sequence), 0)
    log = restarted(harness, log)
    (entry,) = log.producers.entries.values()
    assert [each.first_sequence for each in entry.batches] == [2, 3]
    log.close()


def test_a_producer_that_was_silent_for_long_costs_no_read(tmp_path, reads):
    harness = LogHarness(tmp_path)
    log = harness.log()
    produce(log, 0)
    produce(log, 1)
    harness.clock.advance(producer_replay.RETRY_PERIOD_MS)
    log = restarted(harness, log)
    assert reads.lengths == []
    (entry,) = log.producers.entries.values()
    assert [each.first_sequence for each in entry.batches] == [1]
    log.close()
