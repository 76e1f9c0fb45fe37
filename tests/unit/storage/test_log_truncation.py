"""Truncation of a log: its ends, epochs, producers and aborted transactions."""

import pytest

from kafkapy.storage.filesystem import Filesystem
from tests.harness.log import LogHarness, batch, values_of
from tests.lossy_filesystem import LossyFilesystem, PowerFailure


@pytest.fixture
def harness(tmp_path):
    return LogHarness(tmp_path)


def append(log, count=1, *, epoch=0, **keywords):
    return log.append_as_leader(batch(count, **keywords), epoch)


def test_a_truncation_at_or_above_the_end_only_drops_later_epochs(harness):
    log = harness.log()
    append(log, 5)
    log.assign_epoch_start_offset(3, 5)
    assert not log.truncate_to(6)
    assert log.leader_epochs.entries == ((0, 0), (3, 5))
    assert not log.truncate_to(5)
    assert log.leader_epochs.entries == ((0, 0),), "epoch 3 has no batch"
    assert log.truncations == 0
    assert log.truncate_to(0)
    assert (log.log_end_offset, log.size) == (0, 0)
    assert log.truncations > 0


def test_a_truncation_below_the_first_segment_empties_the_log(harness):
    log = harness.log(log_start_offset=10)
    append(log, 5)
    log.high_watermark = 15
    assert log.truncate_to(4)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (4, 4, 4)
    assert list(log.segments.base_offsets) == [4]


def test_a_full_truncation_may_keep_a_later_start(harness):
    log = harness.log()
    append(log, 5)
    with pytest.raises(AssertionError):
        log.truncate_fully_and_start_at(3, 4)
    log.truncate_fully_and_start_at(8, 6)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (6, 6, 8)


def test_a_truncation_lowers_ends_epochs_and_producers(harness):
    log = harness.log({"segment.bytes": 1024 * 1024, "index.interval.bytes": 0})
    for number in range(40):
        sequence = {"producer_id": 1, "producer_epoch": 0, "base_sequence": number * 10}
        append(log, 10, value=bytes(6000), epoch=number // 10, **sequence)
    log.high_watermark = 390
    assert log.truncate_to(185)
    assert (log.log_end_offset, log.high_watermark, log.recovery_point) == (180, 180, 180)
    assert list(log.segments.base_offsets) == [0, 170]
    assert log.leader_epochs.entries == ((0, 0), (1, 100))
    assert log.producers.entries[1].last_sequence == 179
    assert append(log, 10, producer_id=1, producer_epoch=0, base_sequence=180).first_offset == 180
    assert not log.truncate_to(500)
    log.truncate_fully_and_start_at(1000)
    assert (log.log_start_offset, log.log_end_offset, log.size) == (1000, 1000, 0)
    assert append(log).first_offset == 1000


def test_a_full_truncation_deletes_the_producer_snapshots(harness):
    log = harness.log()
    append(log, 3, producer_id=1, producer_epoch=0, base_sequence=0)
    log.roll()
    assert (harness.path / "00000000000000000003.snapshot").exists()
    log.truncate_fully_and_start_at(2)
    assert not list(harness.path.glob("*.snapshot"))
    assert log.producers.snapshots == []
    assert not log.producers.entries
    assert log.leader_epochs.entries == ()
    append(log, 3, producer_id=2, producer_epoch=0, base_sequence=0)
    again = harness.log(log_start_offset=2)
    assert sorted(again.producers.entries) == [2], "producers from before the truncation have not returned"


def test_a_truncation_removes_the_aborted_transactions_behind_it(harness):
    log = harness.log()
    transactional = {"producer_epoch": 0, "is_transactional": True}
    for producer_id in (3, 4):
        append(log, 2, producer_id=producer_id, base_sequence=0, **transactional)
        log.append_as_leader(harness.marker(producer_id, 0, commit=False), 0, from_client=False)
    assert log.collect_aborted_transactions(0, 6) == [(3, 0, 2, 3), (4, 3, 5, 6)]
    log.truncate_to(4)  # takes the batch at 3 and 4
    assert log.log_end_offset == 3
    assert log.collect_aborted_transactions(0, 6) == [(3, 0, 2, 3)]
    append(log, 1, producer_id=4, base_sequence=0, **transactional)
    log.append_as_leader(harness.marker(4, 0, commit=False), 0, from_client=False)
    assert log.collect_aborted_transactions(0, 5) == [(3, 0, 2, 3), (4, 3, 4, 5)]


def test_a_rolled_segment_that_was_truncated_before_its_flush_is_not_flushed_past_the_end(tmp_path):
    harness = LogHarness(tmp_path)
    background = []
    harness.ports.run_in_background = background.append
    log = harness.log()
    append(log, 7)
    log.roll()
    log.truncate_to(2)
    (flush,) = background
    flush()
    assert log.recovery_point == log.log_end_offset == 0


def test_a_producer_is_known_as_long_as_a_record_of_its_batch_remains(tmp_path):
    """A retry of the batch was appended again."""
    log = LogHarness(tmp_path).log()
    sent = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    log.append_as_leader(batch(3, **sent), 0)
    log.append_as_leader(batch(1), 0)
    log.high_watermark = 4
    log.maybe_increment_log_start_offset(1)
    log.truncate_to(3)
    assert log.append_as_leader(batch(3, **sent), 0).duplicate


def test_the_checkpoints_can_be_written_while_a_log_is_emptied(tmp_path):
    """Other threads read the first segment. There was none for a moment, so that they failed."""
    harness = LogHarness(tmp_path)
    log = harness.log()
    log.append_as_leader(batch(3), 0)
    seen = []

    class Watching(Filesystem):
        def rename(self, source, target):
            seen.append(log.segments.first.base_offset)
            super().rename(source, target)

        def open_segment(self, path, **keywords):
            seen.append(log.segments.first.base_offset)
            return super().open_segment(path, **keywords)

    harness.ports.filesystem = log.segments.first._filesystem = Watching()
    for offset in (7, 7):
        log.truncate_fully_and_start_at(offset)
    assert set(seen) == {0, 7}


def test_a_truncation_is_durable_before_other_records_are(tmp_path):
    """After a power failure, a deleted segment came back and hid the records that had replaced its own."""
    root = tmp_path / "before"
    root.mkdir()
    harness = LogHarness(root, filesystem=LossyFilesystem(str(root)))
    log = harness.log()
    for offset in range(20):
        if offset == 10:
            log.roll()
        log.append_as_leader(batch(), 0)
    log.flush()
    log.truncate_to(5)
    for _ in range(10):
        log.append_as_leader(batch(value=b"new"), 1)
    harness.filesystem.fail_at = harness.filesystem.syncs + 1  # the records are synced, but not the directory
    with pytest.raises(PowerFailure):
        log.flush()
    harness.filesystem.pull_the_plug(str(tmp_path / "after"))
    harness.filesystem.close()
    log = LogHarness(tmp_path / "after").log(recovery_point=5)
    assert {value for offset in range(5, 15) for _, value in values_of(log.read(offset, 10_000))} == {b"new"}
    assert log.log_end_offset == 15
