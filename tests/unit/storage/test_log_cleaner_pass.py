"""Single passes of the log cleaner: which records are kept, which are removed and when, and what ends a pass early."""

import errno
import os
import shutil

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder, iterate_batches
from kafkapy.storage.cleaned_segment import CleanedSegment, swap_in
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log_cleaner_manager import CleaningAborted, CleaningState
from tests.harness.cleaner import CleanerHarness, batches_of
from tests.harness.log import NOW_MS

RETENTION_MS = 1000  # delete.retention.ms of CleanerHarness


@pytest.fixture
def harness(tmp_path):
    return CleanerHarness(tmp_path)


def clean(harness):
    """Rolls the log, so that all present records can be cleaned, and runs one pass."""
    harness.log_.roll()
    assert harness.clean()


def kept(harness):
    return [(offset, key, value) for offset, key, value, _ in harness.records()]


def mark(harness):
    """Appends a record with a key of its own, which makes the log dirty."""
    harness.put([(b"mark-%d" % harness.log_.log_end_offset, b"")])


def data(harness):
    return [record for record in kept(harness) if not record[1].startswith(b"mark-")]


def test_the_newest_value_of_each_key_stays_where_it_was(harness):
    harness.put([(b"a", b"1"), (b"b", b"1")])
    harness.clock.advance(5)
    harness.put([(b"a", b"2"), (b"c", b"1")])
    harness.log_.roll()
    harness.put([(b"b", b"2")])
    assert harness.clean()
    assert harness.records() == [
        (1, b"b", b"1", NOW_MS),
        (2, b"a", b"2", NOW_MS + 5),
        (3, b"c", b"1", NOW_MS + 5),
        (4, b"b", b"2", NOW_MS + 5),
    ], "the active segment is not looked at"
    assert harness.manager.checkpoint_of(harness.log_) == 4
    assert not harness.clean()


def test_the_batch_keeps_its_ends_and_its_producer(harness):
    harness.put([(b"a", b"1"), (b"b", b"1"), (b"a", b"2")], producer_id=7, producer_epoch=0, base_sequence=0)
    harness.put([(b"b", b"2"), (b"a", b"3")], producer_id=7, producer_epoch=0, base_sequence=3)
    harness.put([(b"b", b"3"), (b"a", b"4")])
    clean(harness)
    last, plain = harness.batches()
    assert (last.base_offset, last.last_offset, last.record_count) == (3, 4, 0)
    assert (last.producer_id, last.base_sequence, last.last_sequence) == (7, 3, 4)
    assert (last.base_timestamp, last.max_timestamp, last.compression) == (-1, NOW_MS, 0)
    assert [record.offset for record in plain] == [5, 6]
    harness.log_.close_after_failure()
    harness.reopen()
    assert harness.log_.producers.entries[7].last_sequence == 4


def test_the_last_batch_of_a_round_stays_without_records(harness):
    harness.put([(b"a", b"1")])
    harness.put([(b"a", None)])
    clean(harness)
    harness.clock.advance(RETENTION_MS)
    mark(harness)
    clean(harness)
    assert [batch.base_offset for batch in harness.batches()] == [2]
    harness.put([(b"mark-2", None)])
    clean(harness)
    harness.clock.advance(RETENTION_MS)
    harness.manager.advance_checkpoint(harness.log_, 2)
    assert harness.clean()
    assert [(batch.base_offset, batch.record_count) for batch in harness.batches()] == [(3, 0)]


def test_a_tombstone_waits_for_its_horizon(harness):
    harness.put([(b"a", b"1"), (b"b", b"1")])
    harness.put([(b"a", None), (b"c", b"1")])
    clean(harness)
    assert data(harness) == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    batch = harness.batches()[1]
    assert batch.has_delete_horizon and batch.base_timestamp == NOW_MS + RETENTION_MS
    assert [record.timestamp for record in batch] == [NOW_MS, NOW_MS]
    harness.clock.advance(RETENTION_MS - 1)
    mark(harness)
    clean(harness)
    assert (2, b"a", None) in data(harness)
    assert harness.batches()[1].base_timestamp == NOW_MS + RETENTION_MS, "set once"
    harness.clock.advance(1)
    mark(harness)
    clean(harness)
    assert data(harness) == [(1, b"b", b"1"), (3, b"c", b"1")]


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_goes_after_its_records_and_its_horizon(harness, commit):
    harness.put([(b"a", b"1")], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    harness.end_transaction(7, commit=commit)
    harness.put([(b"a", b"2")])
    harness.log_.producers.entries.remove_all([7])  # as if producer.id.expiration.ms had passed
    clean(harness)
    assert [batch.base_offset for batch in harness.batches() if batch.is_control] == [1], "it has just lost its records"
    assert data(harness)[-1] == (2, b"a", b"2")
    aborted = harness.log_.collect_aborted_transactions(0, 10)
    assert [transaction.first_offset for transaction in aborted] == ([] if commit else [0])
    mark(harness)
    clean(harness)
    marker = next(batch for batch in harness.batches() if batch.is_control)
    assert marker.base_timestamp == NOW_MS + RETENTION_MS and marker.has_delete_horizon
    assert harness.log_.collect_aborted_transactions(0, 10) == []
    harness.clock.advance(RETENTION_MS)
    mark(harness)
    clean(harness)
    assert not [batch for batch in harness.batches() if batch.is_control]


def test_only_the_marker_of_the_newest_epoch_is_kept_for_the_producer(harness):
    """The log knows this producer only from markers."""
    for epoch in (0, 1):
        harness.append(harness.marker(7, epoch, commit=True), from_client=False)
    for _ in range(2):  # the first pass sets the delete horizon
        mark(harness)
        clean(harness)
        harness.clock.advance(RETENTION_MS)
    mark(harness)
    clean(harness)
    (kept_marker,) = [batch for batch in harness.batches() if batch.producer_id == 7]
    assert (kept_marker.base_offset, kept_marker.producer_epoch, kept_marker.record_count) == (1, 1, 0)


def test_a_pass_ends_without_a_failure_when_a_follower_restarts_its_log(harness, monkeypatch):
    """The files are renamed before the segments leave the log, and the directory was taken offline."""
    harness.put([(b"a", b"1"), (b"a", b"2")])
    harness.log_.roll()
    delete_files = type(harness.log_)._delete_files
    outcomes = []

    def delete_and_clean(log, doomed):
        delete_files(log, doomed)
        monkeypatch.setattr(type(log), "_delete_files", delete_files)
        outcomes.append(harness.clean())

    monkeypatch.setattr(type(harness.log_), "_delete_files", delete_and_clean)
    harness.log_.truncate_fully_and_start_at(9)
    assert outcomes and not harness.failures


def test_a_topic_created_again_under_its_name_is_cleaned_from_its_first_offset(harness):
    harness.put([(b"a", b"1"), (b"a", b"2")])
    clean(harness)
    assert harness.manager.checkpoint_of(harness.log_) == 2
    harness.logs.remove(harness.log_.topic_partition)
    harness.log_.close()
    shutil.rmtree(harness.path)
    successor = harness.log_ = harness.log(harness.overrides, topic_id=bytes([7]) * 16)
    harness.logs.add(successor)
    harness.put([(b"b", b"1"), (b"b", b"2"), (b"c", b"1")])
    clean(harness)
    assert data(harness) == [(1, b"b", b"2"), (2, b"c", b"1")]
    assert harness.manager.checkpoint_of(successor) == 3


def test_an_aborted_record_does_not_hide_a_value(harness):
    harness.put([(b"a", b"1")])
    harness.put([(b"a", b"2")], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    harness.end_transaction(7, commit=False)
    mark(harness)
    clean(harness)
    assert (0, b"a", b"1") in data(harness)
    assert [(batch.base_offset, batch.record_count) for batch in harness.batches()][1] == (1, 0), "the last sequence"


def test_an_open_transaction_holds_the_cleaner_back(harness):
    harness.put([(b"a", b"1")])
    harness.put([(b"a", b"2")], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    harness.put([(b"a", b"3")])
    clean(harness)
    assert len(data(harness)) == 3
    assert harness.manager.checkpoint_of(harness.log_) == 1
    assert not harness.clean()
    harness.end_transaction(7, commit=True)
    clean(harness)
    assert (2, b"a", b"3") in data(harness) and len(data(harness)) <= 3


def test_records_without_a_key_are_dropped(tmp_path):
    harness = CleanerHarness(tmp_path, overrides={"cleanup.policy": "delete"})
    harness.put([(None, b"1"), (b"a", b"2"), (None, b"3")])
    harness.log_.close()
    harness.overrides["cleanup.policy"] = "compact"
    harness.reopen()
    clean(harness)
    assert kept(harness) == [(1, b"a", b"2")]


@pytest.mark.parametrize("compression", range(5))
@pytest.mark.parametrize("timestamp_type", [0, 1])
def test_codec_and_timestamp_type_are_kept(tmp_path, compression, timestamp_type):
    harness = CleanerHarness(tmp_path)
    builder = RecordBatchBuilder(compression=compression, timestamp_type=timestamp_type)
    for number, key in enumerate((b"a", b"b", b"a")):
        builder.append(NOW_MS + number, key, b"value" * 20, [("header", b"of it")])
    harness.log_.append_as_follower(builder.build())
    clean(harness)
    batch = harness.batches()[0]
    assert (batch.compression, batch.timestamp_type) == (compression, timestamp_type)
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (0, 2, 2)
    expected = [(1, NOW_MS + 1), (2, NOW_MS + 2)] if timestamp_type == 0 else [(1, NOW_MS + 2), (2, NOW_MS + 2)]
    assert [(record.offset, record.timestamp) for record in batch] == expected
    assert all(record.headers == (("header", b"of it"),) for record in batch)


def test_an_untouched_batch_is_copied_byte_for_byte(harness):
    harness.put([(b"a", b"1"), (b"b", b"1")], compression=4)
    before = harness.path.joinpath("00000000000000000000.log").read_bytes()
    clean(harness)
    assert harness.path.joinpath("00000000000000000000.log").read_bytes() == before


def test_segments_merge_and_their_indexes_are_made_anew(harness):
    for number in range(40):
        harness.put([(b"k%d" % (number % 10), b"v" * 100)])
        if number % 4 == 3:
            harness.log_.roll()
    harness.clean()
    assert harness.log_.segments.base_offsets == [0, 40]
    merged = harness.log_.segments.first
    assert merged.offset_index.entries > 2
    assert merged.time_index.last_entry[0] == NOW_MS
    for slot in range(merged.offset_index.entries):
        offset, position = merged.offset_index.entry(slot)
        assert merged.find(offset)[0] == position
    assert [record[0] for record in kept(harness)] == list(range(30, 40))
    found = harness.log_.read(3, 1 << 20).records.read()
    assert next(iter(iterate_batches(found))).base_offset == 30
    harness.run_scheduled()
    assert not [name for name in os.listdir(harness.path) if name.endswith((".deleted", ".cleaned", ".swap"))]


def test_the_files_are_as_old_as_what_they_were_made_from(harness):
    harness.put([(b"a", b"1")])
    harness.log_.roll()
    harness.put([(b"a", b"2")])
    harness.log_.roll()
    for name, age in (("0", 1000), ("1", 2000)):
        os.utime(harness.path / f"{int(name):020d}.log", (age, age))
    harness.clean()
    for suffix in (".log", ".index", ".timeindex"):
        assert os.stat(harness.path / f"{0:020d}{suffix}").st_mtime == 2000


def test_a_map_that_is_too_small_takes_several_passes(tmp_path):
    harness = CleanerHarness(tmp_path, map_bytes=24 * 4)
    for number in range(30):
        harness.put([(b"%d" % (number % 10), b"%d" % number)])
    harness.log_.roll()
    passes = 0
    while harness.clean():
        passes += 1
    assert passes > 3
    assert [record[0] for record in kept(harness)] == list(range(20, 30))


def test_records_younger_than_the_lag_are_not_cleaned(tmp_path):
    harness = CleanerHarness(tmp_path, overrides={"min.compaction.lag.ms": "500"})
    harness.put([(b"a", b"1"), (b"a", b"2")])
    harness.log_.roll()
    assert not harness.clean()
    harness.clock.advance(500)
    assert harness.clean()
    assert len(kept(harness)) == 1


def test_compact_and_delete(tmp_path):
    harness = CleanerHarness(tmp_path, overrides={"cleanup.policy": "compact,delete", "retention.ms": "10000"})
    harness.put([(b"a", b"1"), (b"a", b"2")])
    clean(harness)
    assert len(kept(harness)) == 1
    harness.clock.advance(10001)
    assert harness.log_.delete_old_segments() == 1
    assert kept(harness) == []
    assert not harness.clean()


def test_files_of_an_interrupted_pass_are_not_continued(harness):
    harness.put([(b"a", b"1")], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    harness.end_transaction(7, commit=False)
    harness.put([(b"a", b"2"), (b"a", b"3")])
    harness.log_.roll()
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        content = harness.path / f"{0:020d}{suffix}"
        (harness.path / f"{0:020d}{suffix}.cleaned").write_bytes(content.read_bytes()[:34] + bytes(200))
    assert harness.clean()
    assert not harness.manager.uncleanable_partitions
    assert data(harness)[-1] == (3, b"a", b"3")
    assert [each.first_offset for each in harness.log_.collect_aborted_transactions(0, 4)] == [0]
    assert not list(harness.path.glob("*.cleaned"))


# -- what ends a pass early


def test_segments_deleted_during_the_pass_end_it(harness):
    harness.put([(b"a", b"1"), (b"a", b"2")])
    harness.log_.roll()
    asked = []

    def truncate_before_the_swap():
        asked.append(1)
        if len(asked) == 3:  # described, snapshot, swap
            harness.log_.truncate_fully_and_start_at(50)

    harness.before_swap = truncate_before_the_swap
    assert harness.clean()
    assert harness.log_.segments.base_offsets == [50]
    assert harness.manager.checkpoint_of(harness.log_) is None
    assert not harness.failures


def test_a_damaged_batch_makes_the_log_uncleanable(harness):
    harness.put([(b"a", b"1"), (b"a", b"2")])
    harness.log_.roll()
    with open(harness.path / "00000000000000000000.log", "r+b") as file:
        file.seek(70)
        file.write(b"\xff")
    assert harness.clean()
    assert harness.manager.uncleanable_partitions == [harness.log_.topic_partition]
    assert harness.manager.uncleanable_bytes == harness.log_.size
    assert not harness.clean()
    assert not harness.failures


def test_a_bug_in_a_pass_makes_the_log_uncleanable(harness, monkeypatch, caplog):
    def fail(*arguments, **keywords):
        raise AssertionError("a bug")

    harness.put([(b"a", b"1"), (b"a", b"2")])
    harness.log_.roll()
    monkeypatch.setattr("kafkapy.storage.log_cleaner_pass.group_segments", fail)
    assert harness.clean()
    assert harness.manager.uncleanable_partitions == [harness.log_.topic_partition]
    assert "a bug" in caplog.text
    assert not harness.failures


def test_a_cleaned_segment_that_reaches_into_the_next_is_not_swapped_in(harness):
    harness.put([(b"a", b"1"), (b"a", b"2")])
    harness.log_.roll()
    harness.put([(b"b", b"1")])
    first = harness.log_.segments.first
    cleaned = CleanedSegment.create(harness.log_.path, 0, harness.log_.config, harness.filesystem, 0)
    cleaned.end_offset = 3
    with pytest.raises(AssertionError):
        swap_in(harness.log_, cleaned, [first], harness.filesystem, harness.log_.truncations)
    assert harness.log_.segments.first is first


def test_a_log_that_was_truncated_and_grew_again_is_not_swapped(harness):
    """The truncated segment is inactive again when the pass ends, with other records than the pass has read."""
    harness.put([(b"a", b"1"), (b"a", b"2")])
    harness.put([(b"b", b"1")])
    harness.log_.roll()
    harness.put([(b"c", b"1")])

    def truncate():
        harness.before_swap = lambda: None
        harness.log_.truncate_to(2)
        harness.put([(b"d", b"1")])
        harness.log_.roll()
        harness.put([(b"e", b"1")])

    calls = iter(range(100))
    harness.before_swap = lambda: truncate() if next(calls) == 2 else None  # 0 describes the log, 1 begins the pass
    assert harness.clean()
    assert [record[1] for record in harness.records()] == [b"a", b"a", b"d", b"e"]
    assert not harness.failures
    assert harness.clean()
    assert [record[1] for record in harness.records()] == [b"a", b"d", b"e"]


class FullDisk(Filesystem):
    __slots__ = ("is_full",)

    def __init__(self):
        self.is_full = False

    def sync_file(self, fd):
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().sync_file(fd)


def test_a_disk_that_fails_goes_offline(tmp_path):
    filesystem = FullDisk()
    harness = CleanerHarness(tmp_path, filesystem=filesystem)
    harness.put([(b"a", b"1"), (b"a", b"2")])
    harness.log_.roll()
    filesystem.is_full = True
    assert harness.clean()
    assert [error.errno for _, error in harness.failures] == [errno.ENOSPC]
    assert len(batches_of(harness.log_.segments.first)) == 1


def test_a_log_deleted_during_the_pass_ends_it(harness):
    harness.put([(b"a", b"1"), (b"a", b"2")])
    harness.log_.roll()
    asked = []

    def delete_after_the_snapshot():
        asked.append(1)
        if len(asked) == 3:
            harness.log_.mark_deleted()
            os.rename(harness.path, harness.root / "gone")

    harness.before_swap = delete_after_the_snapshot
    assert harness.clean()
    assert not harness.failures
    assert not harness.manager.uncleanable_partitions


def test_paused_and_resumed(harness):
    partition = harness.log_.topic_partition
    harness.put([(b"a", b"1"), (b"a", b"2")])
    harness.log_.roll()
    harness.manager.pause(partition)
    harness.manager.pause(partition)
    assert harness.manager.state_of(partition) is CleaningState.PAUSED
    assert not harness.clean()
    harness.manager.resume(partition)
    assert not harness.clean()
    harness.manager.resume(partition)
    with pytest.raises(ValueError, match="not paused"):
        harness.manager.resume(partition)
    assert harness.clean()


def test_the_checkpoint_is_kafkas(harness):
    harness.put([(b"a", b"1"), (b"a", b"2")])
    clean(harness)
    assert (harness.root / "cleaner-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"
    harness.log_.close_after_failure()
    harness.reopen()
    assert not harness.clean(), "another process goes on where this one stopped"


def test_bytes_are_counted_for_the_throttle(harness):
    harness.put([(b"a", b"1" * 1000), (b"a", b"2" * 1000)])
    harness.log_.roll()
    size = harness.log_.size
    harness.clean()
    assert harness.counted == 2 * size + harness.log_.size


class Killed(BaseException):
    """The moment at which the process is killed."""


class FilesystemThatDies(Filesystem):
    """Raises Killed instead of giving the file `dies_at` its final name."""

    __slots__ = ("dies_at",)

    def __init__(self):
        self.dies_at = ""

    def rename(self, source, target):
        if os.path.basename(target) == self.dies_at:
            raise Killed
        super().rename(source, target)


def test_the_leftovers_of_an_aborted_pass_do_not_make_a_later_swap_incomplete(tmp_path):
    """A start deleted both the complete `.swap` file and the segments that it replaced."""
    harness = CleanerHarness(tmp_path, filesystem=FilesystemThatDies())
    large = bytes(600_000)
    for pairs in ([(b"a", large)], [(b"b", large)], [(b"a", b"1"), (b"c", large)]):
        harness.put(pairs)
        harness.log_.roll()

    def abort():
        if os.path.exists(harness.path / f"{1:020d}.log.cleaned"):
            raise CleaningAborted

    harness.before_swap = abort
    assert harness.clean()
    harness.before_swap = lambda: None
    harness.filesystem.dies_at = f"{2:020d}.log"
    with pytest.raises(Killed):
        harness.clean()
    harness.filesystem.dies_at = ""
    harness.reopen()
    assert [(key, len(value)) for _, key, value in kept(harness)] == [(b"b", 600_000), (b"a", 1), (b"c", 600_000)]
