"""A log: append, read, roll, truncate, retention, idempotence, failure of the disk."""

import errno
import os
import threading

import pytest

from kafkapy._core.bytes.record_batch import iterate_batches, scan_batches
from kafkapy._core.bytes.segment_file import SegmentFile
from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.log_segment import LogSegment
from tests.harness.log import LogHarness, batch, topic_config, values_of, with_base_offset


@pytest.fixture
def harness(tmp_path):
    return LogHarness(tmp_path)


def append(log, count=1, *, epoch=0, **keywords):
    return log.append_as_leader(batch(count, **keywords), epoch)


def code_of(action):
    with pytest.raises(ApiError) as raised:
        action()
    return raised.value.error


def test_offsets_are_dense_and_epochs_are_in_the_batches(harness):
    log = harness.log()
    assert append(log, 3).first_offset == 0
    info = append(log, 2, epoch=4)
    assert (info.first_offset, info.last_offset, info.record_count, info.duplicate) == (3, 4, 2, False)
    assert (info.log_append_time, info.log_start_offset) == (-1, 0)
    assert info.max_timestamp == harness.clock.wall_ms() + 1
    assert (log.log_end_offset, log.latest_epoch) == (5, 4)
    assert [offset for offset, _ in values_of(log.read(0, 1 << 20))] == [0, 1, 2, 3, 4]
    assert log.end_offset_for_epoch(0) == (3, 0)


def test_a_read_is_limited_by_bytes_and_by_the_greatest_offset(harness):
    log = harness.log()
    for _ in range(4):
        append(log, 2)
    size = log.size // 4
    data = log.read(3, 10)
    assert len(data.records) == size
    assert data.offset_metadata == (3, 0, size)
    assert not data.first_entry_incomplete
    data = log.read(3, 10, min_one_message=False)
    assert data.first_entry_incomplete
    assert len(log.read(0, 1 << 20, max_offset=4).records) == 2 * size
    assert log.read(4, 1 << 20, max_offset=4).records == b""
    assert log.read(8, 100).records == b""
    for offset in (-1, 9):
        with pytest.raises(ApiError) as raised:
            log.read(offset, 100)
        assert raised.value.error == Error.OFFSET_OUT_OF_RANGE


def test_segments_roll_by_size_and_are_read_across(harness):
    log = harness.log({"segment.bytes": 1024 * 1024, "index.interval.bytes": 4096})
    for number in range(40):
        append(log, 10, value=bytes([number]) * 6000)
    assert list(log.segments.base_offsets) == [0, 170, 340]
    assert log.size == sum(segment.size for segment in log.segments)
    offset, seen = 0, []
    while offset < log.log_end_offset:
        found = values_of(log.read(offset, 100_000))
        seen += [pair for pair in found if pair[0] >= offset]
        offset = seen[-1][0] + 1
    assert [number for number, _ in seen] == list(range(400))
    assert all(value[0] == number // 10 for number, value in seen)
    assert (harness.path / "00000000000000000170.snapshot").exists()
    assert log.recovery_point == 340
    start, end = log.offset_metadata(5), log.offset_metadata(345)
    assert log.position_delta(start, end) == sum(s.size for s in log.segments if s.base_offset < 340)


def test_segments_roll_by_time(harness):
    log = harness.log({"segment.ms": 1000})
    append(log, timestamp=harness.clock.wall_ms())
    harness.clock.advance(900)
    append(log, timestamp=harness.clock.wall_ms())
    assert len(log.segments) == 1
    harness.clock.advance(101)
    append(log, timestamp=harness.clock.wall_ms())
    assert list(log.segments.base_offsets) == [0, 2]


def test_the_first_record_with_a_timestamp_is_found_across_segments(harness):
    log = harness.log({"index.interval.bytes": 0, "segment.bytes": 1024 * 1024})
    now = harness.clock.wall_ms()
    for number in range(200):
        append(log, 5, timestamp=now + number * 10, value=bytes(6000), compression=number % 5)
    assert len(log.segments) > 1
    assert log.fetch_offset_by_timestamp(now)[:2] == (now, 0)
    assert log.fetch_offset_by_timestamp(now + 1)[:2] == (now + 1, 1)
    assert log.fetch_offset_by_timestamp(now + 5)[:2] == (now + 10, 5)
    assert log.fetch_offset_by_timestamp(now + 1503)[:2] == (now + 1503, 753)
    assert log.fetch_offset_by_timestamp(now + 1995) is None
    assert log.fetch_max_timestamp() == (now + 1994, 999, 0)


def test_a_jitter_brings_the_roll_forward(harness):
    """Each segment is rolled up to `segment.jitter.ms` earlier, by a random amount of its own."""
    log = harness.log({"segment.ms": 1000, "segment.jitter.ms": 900})
    lives = []
    for _ in range(30):
        start = harness.clock.wall_ms()
        first = len(log.segments)
        append(log, timestamp=start)
        while len(log.segments) == first:
            harness.clock.advance(10)
            append(log, timestamp=harness.clock.wall_ms())
        lives.append(harness.clock.wall_ms() - start)
    assert max(lives) <= 1010 and min(lives) >= 100 and len(set(lives)) > 10


def test_configuration_changes_at_once(harness):
    """The next roll and the next run of retention use a topic's new configuration."""
    log = harness.log({"segment.ms": 10**9, "retention.ms": -1, "file.delete.delay.ms": 0})
    append(log, timestamp=harness.clock.wall_ms())
    harness.clock.advance(5000)
    log.update_config(LogConfig(topic_config({"segment.ms": 1000, "retention.ms": 2000, "file.delete.delay.ms": 0})))
    append(log, timestamp=harness.clock.wall_ms())
    assert list(log.segments.base_offsets) == [0, 1]
    log.high_watermark = 2
    assert log.delete_old_segments() == 1 and log.log_start_offset == 1
    log.update_config(LogConfig(topic_config({"retention.ms": -1, "retention.bytes": 0})))
    assert log.delete_old_segments() == 1 and log.log_start_offset == 2
    assert (len(log.segments), log.size) == (1, 0)


def test_retention_without_timestamps_goes_by_the_files_age(harness):
    log = harness.log({"retention.ms": 1000})
    append(log, timestamp=-1)
    path = log.segments.active.path(".log")
    log.high_watermark = 1
    os.utime(path, ns=(0, (harness.clock.wall_ms() - 900) * 1_000_000))
    assert log.delete_old_segments() == 0
    os.utime(path, ns=(0, (harness.clock.wall_ms() - 1100) * 1_000_000))
    assert log.delete_old_segments() == 1


@pytest.mark.parametrize("cut", [1, 5, 11])
def test_a_torn_time_index_after_a_clean_stop(harness, cut):
    """The index is not verified after a clean stop, as in Kafka; its whole entries are used."""
    log = harness.log({"index.interval.bytes": 0})
    now = harness.clock.wall_ms()
    for number in range(20):
        append(log, timestamp=now + number)
    log.close()
    index = harness.path / "00000000000000000000.timeindex"
    index.write_bytes(index.read_bytes() + bytes(cut))
    harness.is_clean = True
    again = harness.log({"index.interval.bytes": 0})
    assert again.fetch_offset_by_timestamp(now + 7)[:2] == (now + 7, 7)
    assert again.fetch_offset_by_timestamp(now + 19)[:2] == (now + 19, 19)
    assert again.fetch_offset_by_timestamp(now + 20) is None
    assert again.fetch_max_timestamp() == (now + 19, 19, 0)


@pytest.mark.parametrize("content", [b"", b"\xff" * 120, b"\x00" * 120, b"\x00" * 7])
def test_a_broken_time_index_is_rebuilt_after_a_kill(harness, content):
    log = harness.log({"index.interval.bytes": 0})
    now = harness.clock.wall_ms()
    for number in range(20):
        append(log, timestamp=now + number)
    log.close_after_failure()
    (harness.path / "00000000000000000000.timeindex").write_bytes(content)
    again = harness.log({"index.interval.bytes": 0})
    for number in range(20):
        assert again.fetch_offset_by_timestamp(now + number)[:2] == (now + number, number)
    assert again.fetch_max_timestamp() == (now + 19, 19, 0)


def test_a_clock_that_goes_backwards(harness):
    """A search by timestamp finds the first record that is late enough, whatever the other timestamps are."""
    log = harness.log({"index.interval.bytes": 0, "segment.bytes": 1024 * 1024})
    now = harness.clock.wall_ms()
    stamps = [now + delta for delta in (100, 50, 200, 10, 0, 150, 300, 20)]
    for stamp in stamps:
        append(log, timestamp=stamp, value=bytes(300_000))
    assert len(log.segments) > 1
    for wanted in range(now - 1, now + 302):
        expected = next(((stamp, offset) for offset, stamp in enumerate(stamps) if stamp >= wanted), None)
        found = log.fetch_offset_by_timestamp(wanted)
        assert (found and found[:2]) == expected
    assert log.fetch_max_timestamp() == (now + 300, 6, 0)


def test_log_append_time_when_the_clock_goes_backwards(harness):
    log = harness.log({"message.timestamp.type": "LogAppendTime"})
    now = harness.clock.wall_ms()
    for delta in (100, 0, 200):
        harness.clock.set_wall_ms(now + delta)
        append(log, 3, timestamp=5)
    assert log.fetch_offset_by_timestamp(now + 1)[:2] == (now + 100, 0)
    assert log.fetch_offset_by_timestamp(now + 101)[:2] == (now + 200, 6)
    assert log.fetch_max_timestamp() == (now + 200, 6, 0)


def test_log_append_time_replaces_the_timestamps_of_the_client(harness):
    log = harness.log({"message.timestamp.type": "LogAppendTime"})
    info = append(log, 2, timestamp=5)
    assert info.log_append_time == info.max_timestamp == harness.clock.wall_ms()
    assert log.fetch_max_timestamp().timestamp == harness.clock.wall_ms()


@pytest.mark.parametrize(("name", "codec"), [("uncompressed", 0), ("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)])
def test_batches_take_the_codec_of_the_topic(harness, name, codec):
    log = harness.log({"compression.type": name})
    for sent in range(5):
        info = append(log, 7, compression=sent, producer_id=4, producer_epoch=0, base_sequence=sent * 7, key=b"k")
        assert info.first_offset == sent * 7
    found = list(iterate_batches(log.read(0, 1 << 20).records.read()))
    assert {found_batch.compression for found_batch in found} == {codec}
    assert all(found_batch.is_valid() for found_batch in found)
    records = [record for found_batch in found for record in found_batch]
    assert [record.offset for record in records] == list(range(35))
    assert {(record.key, record.value) for record in records} == {(b"k", b"value")}
    assert records[6].timestamp == records[0].timestamp + 6
    assert log.producers.entries[4].last_sequence == 34


def test_checked_records_are_not_validated_again(harness):
    log = harness.log()
    records = batch(3)
    checked = log.check_records(memoryview(records))
    assert [each.record_count for each in checked] == [3]
    assert log.log_end_offset == 0
    assert log.append_as_leader(records, 0, checked=checked).last_offset == 2
    refusal = ApiError(Error.INVALID_RECORD, "refused before")
    with pytest.raises(ApiError, match="refused before"):
        log.append_as_leader(batch(), 0, checked=refusal)
    with pytest.raises(ApiError) as raised:
        log.check_records(memoryview(batch(value=bytes(2 << 20))))
    assert raised.value.error == Error.MESSAGE_TOO_LARGE
    assert log.log_end_offset == 3


def test_nothing_to_append_is_refused(harness):
    with pytest.raises(ApiError) as raised:
        harness.log().append_as_leader(bytearray(), 0)
    assert raised.value.error == Error.INVALID_RECORD


def test_markers_and_batches_of_other_epochs_are_checked_before_the_append(harness):
    log = harness.log()
    transactional = {"producer_id": 7, "is_transactional": True, "base_sequence": 0}
    append(log, 1, producer_epoch=2, **transactional)
    assert code_of(lambda: append(log, 1, producer_id=7, producer_epoch=2, base_sequence=1)) == Error.INVALID_TXN_STATE
    old_epoch = harness.marker(7, 1, commit=True)
    assert code_of(lambda: log.append_as_leader(old_epoch, 0, from_client=False)) == Error.INVALID_PRODUCER_EPOCH
    log.append_as_leader(harness.marker(7, 2, commit=True, coordinator_epoch=5), 0, from_client=False)
    old_coordinator = harness.marker(7, 2, commit=True, coordinator_epoch=4)
    code = code_of(lambda: log.append_as_leader(old_coordinator, 0, from_client=False))
    assert code == Error.TRANSACTION_COORDINATOR_FENCED
    assert log.log_end_offset == 2


def test_a_closed_log_is_durable_and_needs_no_sync(harness):
    log = harness.log()
    append(log, 5)
    assert log.needs_sync
    log.close()
    assert not log.needs_sync
    assert log.recovery_point == 5
    assert (harness.path / f"{5:020d}.snapshot").exists()
    assert (harness.path / f"{0:020d}.index").stat().st_size == 0, "cut to its content"


def test_a_log_closed_without_sync_is_durable_once_that_is_noted(harness):
    log = harness.log()
    append(log, 5)
    log.close(sync=False)
    assert log.recovery_point == 0
    assert log.needs_sync
    assert (harness.path / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    log.mark_flushed()
    assert log.recovery_point == 5
    assert not log.needs_sync


def test_a_renamed_log_keeps_working_under_its_new_name(harness):
    log = harness.log()
    append(log, 5, producer_id=1, producer_epoch=0, base_sequence=0)
    target = harness.root / "renamed"
    log.rename_to(str(target))
    append(log, 5, epoch=2)
    log.roll()
    append(log, 1, epoch=2)
    log.flush()
    names = {path.name for path in target.iterdir()}
    assert {f"{10:020d}.log", f"{10:020d}.snapshot", "leader-epoch-checkpoint"} <= names
    assert len(values_of(log.read(0, 1 << 20))) == 10


def test_duplicates_are_answered_with_their_offsets(harness):
    log = harness.log()
    append(log, 3)
    first = append(log, 5, producer_id=9, producer_epoch=0, base_sequence=0)
    again = append(log, 5, producer_id=9, producer_epoch=0, base_sequence=0)
    assert (again.first_offset, again.last_offset, again.duplicate) == (3, 7, True)
    assert not first.duplicate
    assert log.log_end_offset == 8
    with pytest.raises(ApiError) as raised:
        append(log, 1, producer_id=9, producer_epoch=0, base_sequence=6)
    assert raised.value.error == Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.log_end_offset == 8


def test_a_client_sends_one_batch(harness):
    log = harness.log()
    with pytest.raises(ApiError) as raised:
        log.append_as_leader(bytearray(batch() + batch()), 0)
    assert raised.value.error == Error.INVALID_RECORD
    info = log.append_as_leader(bytearray(batch(2) + batch(3)), 0, from_client=False)
    assert (info.first_offset, info.last_offset) == (0, 4)


def test_batches_too_large_for_topic_or_segment_are_refused(harness):
    log = harness.log({"segment.bytes": 1024 * 1024, "max.message.bytes": 1000})
    with pytest.raises(ApiError) as raised:
        append(log, value=bytes(1000))
    assert raised.value.error == Error.MESSAGE_TOO_LARGE
    log = harness.log({"segment.bytes": 1024 * 1024, "max.message.bytes": 3 << 20}, name="u")
    with pytest.raises(ApiError) as raised:
        append(log, value=bytes(2 << 20))
    assert raised.value.error == Error.RECORD_LIST_TOO_LARGE
    assert log.log_end_offset == 0


def test_records_whose_index_entry_cannot_be_written_are_cut_off(harness, monkeypatch):
    log = harness.log()
    append(log, 3)
    segment = log.segments.active
    size = segment.size
    index_batch = LogSegment.index_batch

    def fail(segment, position, *arguments):
        if position > size:
            raise OSError(errno.ENOSPC, "No space left on device")
        index_batch(segment, position, *arguments)

    monkeypatch.setattr(LogSegment, "index_batch", fail)
    with pytest.raises(StorageError, match="No space left"):
        log.append_as_leader(bytearray(batch() + batch()), 0, from_client=False)
    assert segment.size == segment.file.size == os.path.getsize(segment.path(".log")) == size
    assert log.log_end_offset == 3
    assert harness.failures


class DiskWithoutRoomForTransactions(Filesystem):
    """Nothing can be appended to a transaction index."""

    __slots__ = ()

    def append_file(self, path, content):
        raise OSError(errno.ENOSPC, "No space left on device", path)


@pytest.mark.parametrize("method", ["append_as_leader", "append_as_follower", "append_copy"])
def test_an_aborted_transaction_that_cannot_be_written_takes_the_directory_offline(tmp_path, method):
    harness = LogHarness(tmp_path, filesystem=DiskWithoutRoomForTransactions())
    log = harness.log()
    append(log, producer_id=3, producer_epoch=0, base_sequence=0, is_transactional=True)
    marker = harness.marker(3, 0, commit=False)
    arguments = {
        "append_as_leader": lambda: log.append_as_leader(marker, 0, from_client=False),
        "append_as_follower": lambda: log.append_as_follower(with_base_offset(marker, 1)),
        "append_copy": lambda: copy_into(log, with_base_offset(marker, 1)),
    }
    with pytest.raises(StorageError, match="No space left"):
        arguments[method]()
    assert harness.failures
    assert log.log_end_offset == 1


def test_an_aborted_transaction_behind_a_damaged_index_takes_the_directory_offline(harness):
    log = harness.log()
    append(log, producer_id=3, producer_epoch=0, base_sequence=0, is_transactional=True)
    (harness.path / f"{0:020d}.txnindex").write_bytes(b"damage")
    with pytest.raises(StorageError, match="are not a number of entries"):
        log.append_as_leader(harness.marker(3, 0, commit=False), 0, from_client=False)
    assert harness.failures
    assert log.log_end_offset == 1


def copy_into(log, records):
    batches, _ = scan_batches(records)
    log.append_copy(memoryview(records), batches)


def test_retention_renames_then_unlinks(harness):
    log = harness.log({"segment.bytes": 1024 * 1024, "retention.ms": 1000, "file.delete.delay.ms": 500})
    for _ in range(40):
        append(log, 10, value=bytes(6000))
    harness.clock.advance(2000)
    log.high_watermark = 345
    assert log.delete_old_segments() == 2
    assert log.log_start_offset == 340
    deleted = sorted(path.name for path in harness.path.iterdir() if path.suffix == ".deleted")
    assert "00000000000000000170.log.deleted" in deleted
    assert not (harness.path / "00000000000000000170.snapshot").exists()
    harness.run_scheduled()
    assert not [path for path in harness.path.iterdir() if path.suffix == ".deleted"]
    log.high_watermark = 400
    assert log.delete_old_segments() == 1
    assert (log.log_start_offset, list(log.segments.base_offsets)) == (400, [400])
    assert log.delete_old_segments() == 0


def test_log_start_offset_moves_up_to_the_high_watermark(harness):
    log = harness.log()
    append(log, 10)
    log.high_watermark = 5
    with pytest.raises(ApiError) as raised:
        log.maybe_increment_log_start_offset(6)
    assert raised.value.error == Error.OFFSET_OUT_OF_RANGE
    assert log.maybe_increment_log_start_offset(5)
    assert not log.maybe_increment_log_start_offset(3)
    assert code_of(lambda: log.read(4, 100)) == Error.OFFSET_OUT_OF_RANGE


def test_readers_keep_what_they_read_when_the_segment_goes(harness):
    log = harness.log({"segment.bytes": 1024 * 1024, "retention.ms": 0})
    append(log, 10, value=bytes(6000))
    data = log.read(0, 1 << 20)
    before = data.records.read()
    harness.clock.advance(10_000)
    log.high_watermark = 10
    assert log.delete_old_segments() == 1
    harness.run_scheduled()
    assert data.records.read() == before


def test_an_open_transaction_holds_the_last_stable_offset(harness):
    log = harness.log()
    append(log, 2)
    append(log, 1, producer_id=3, producer_epoch=0, base_sequence=0, is_transactional=True)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == 2
    log.append_as_leader(harness.marker(3, 0, commit=False), 0, from_client=False)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == 4
    assert log.collect_aborted_transactions(0, 4) == [(3, 2, 3, 4)]


class FullDisk(Filesystem):
    """A filesystem whose segments fail to append with ENOSPC, and whose syncs fail, once `is_full`."""

    __slots__ = ("is_full",)

    def __init__(self):
        self.is_full = False

    def open_segment(self, path, *, create=False, preallocate=0):
        segment = FullSegment(path, create=create, preallocate=preallocate)
        segment.disk = self
        return segment

    def sync_file(self, fd):
        if self.is_full:
            raise OSError(errno.EIO, "Input/output error")
        super().sync_file(fd)


class FullSegment(SegmentFile):
    """A segment file that fails to append if its disk is full."""

    def append(self, buffers):
        if self.disk.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().append(buffers)


def test_a_full_disk_takes_the_directory_offline(tmp_path):
    disk = FullDisk()
    harness = LogHarness(tmp_path, filesystem=disk)
    log = harness.log()
    append(log, 3)
    disk.is_full = True
    with pytest.raises(StorageError, match="No space left"):
        append(log, 1)
    assert [path for path, _ in harness.failures] == [log.directory.path]
    assert log.log_end_offset == 3
    disk.is_full = False
    with pytest.raises(StorageError, match="offline"):
        append(log, 1)
    assert len(values_of(log.read(0, 1 << 20))) == 3


def test_a_failing_flush_takes_the_directory_offline(tmp_path):
    disk = FullDisk()
    harness = LogHarness(tmp_path, filesystem=disk)
    log = harness.log()
    append(log, 3)
    disk.is_full = True
    with pytest.raises(StorageError, match="flush"):
        log.flush()
    assert log.recovery_point == 0
    assert harness.failures


class DiskWithoutNames(Filesystem):
    """A filesystem whose directories cannot be synced once `is_broken`."""

    __slots__ = ("is_broken",)

    def __init__(self):
        self.is_broken = False

    def sync_directory(self, path):
        if self.is_broken:
            raise OSError(errno.EIO, "Input/output error")
        super().sync_directory(path)


def test_a_flush_that_fails_behind_a_snapshot_takes_the_directory_offline(tmp_path):
    disk = DiskWithoutNames()
    harness = LogHarness(tmp_path, filesystem=disk)
    log = harness.log()
    log.append_as_leader(batch(1, producer_id=7, producer_epoch=0, base_sequence=0), 0)
    disk.is_broken = True
    log.roll()  # takes a snapshot; the rolled segment is flushed in the background
    harness.run_scheduled()
    assert harness.failures


def test_an_append_flushes_after_flush_messages(harness):
    log = harness.log({"flush.messages": 5})
    append(log, 4)
    assert log.recovery_point == 0
    append(log, 1)
    assert log.recovery_point == 5


class HaltingFilesystem(Filesystem):
    """A filesystem that halts every thread but the test's own before the sync of a directory."""

    __slots__ = ("entered", "in_test", "released", "tester")

    def __init__(self):
        self.tester = threading.get_ident()
        self.entered, self.released = threading.Event(), threading.Event()
        self.in_test = []

    def _halt(self, what):
        if threading.get_ident() == self.tester:
            self.in_test.append(what)
        else:
            self.entered.set()
            assert self.released.wait(20)

    def sync_directory(self, path):
        self._halt(path)
        super().sync_directory(path)


def test_a_flush_does_not_rely_on_one_that_is_still_under_way(tmp_path):
    """After a flush the name of every segment is durable, even if another thread is about to sync it."""
    filesystem = HaltingFilesystem()
    harness = LogHarness(tmp_path, filesystem=filesystem)
    others = []
    harness.ports.run_in_background = lambda work: others.append(threading.Thread(target=work))
    log = harness.log()
    log.append_as_leader(batch(), 0)
    log.flush()
    log.roll()
    log.append_as_leader(batch(), 0)
    filesystem.in_test.clear()
    (other,) = others
    other.start()
    assert filesystem.entered.wait(20)
    log.flush()
    assert log.path in filesystem.in_test
    assert log.recovery_point == 2
    filesystem.released.set()
    other.join()
    filesystem.in_test.clear()
    log.flush()
    assert not filesystem.in_test, "both flushes together have made everything durable"


def test_two_threads_write_the_leader_epochs(tmp_path):
    harness = LogHarness(tmp_path)
    log = harness.log()
    writers = []
    for epoch in range(50):
        log.append_as_leader(batch(), epoch)
        writers.append(threading.Thread(target=log.flush))
        writers[-1].start()
        log.flush()
    for writer in writers:
        writer.join()
    assert not harness.failures
    assert (tmp_path / "t-0" / "leader-epoch-checkpoint").read_text().split("\n")[1] == "50"
