"""Single passes of the log cleaner: what stays, what goes and when; what ends a pass early."""

import errno
import os

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder, iterate_batches
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log_cleaner_manager import CleaningState
from tests.cleaner_world import CleanerWorld, batches_of
from tests.log_world import NOW_MS

RETENTION_MS = 1000  # delete.retention.ms of CleanerWorld


@pytest.fixture
def world(tmp_path):
    return CleanerWorld(tmp_path)


def clean(world):
    """Rolls, so that everything so far can be cleaned, and cleans once."""
    world.log_.roll()
    assert world.clean()


def kept(world):
    return [(offset, key, value) for offset, key, value, _ in world.records()]


def mark(world):
    """Something new that makes the log dirty, with a key of its own."""
    world.put([(b"mark-%d" % world.log_.log_end_offset, b"")])


def data(world):
    return [record for record in kept(world) if not record[1].startswith(b"mark-")]


def test_the_newest_value_of_each_key_stays_where_it_was(world):
    world.put([(b"a", b"1"), (b"b", b"1")])
    world.clock.advance(5)
    world.put([(b"a", b"2"), (b"c", b"1")])
    world.log_.roll()
    world.put([(b"b", b"2")])
    assert world.clean()
    assert world.records() == [
        (1, b"b", b"1", NOW_MS),
        (2, b"a", b"2", NOW_MS + 5),
        (3, b"c", b"1", NOW_MS + 5),
        (4, b"b", b"2", NOW_MS + 5),
    ], "the active segment is not looked at"
    assert world.manager.checkpoint_of(world.log_) == 4
    assert not world.clean()


def test_the_batch_keeps_its_ends_and_its_producer(world):
    world.put([(b"a", b"1"), (b"b", b"1"), (b"a", b"2")], producer_id=7, producer_epoch=0, base_sequence=0)
    world.put([(b"b", b"2"), (b"a", b"3")], producer_id=7, producer_epoch=0, base_sequence=3)
    world.put([(b"b", b"3"), (b"a", b"4")])
    clean(world)
    last, plain = world.batches()
    assert (last.base_offset, last.last_offset, last.record_count) == (3, 4, 0)
    assert (last.producer_id, last.base_sequence, last.last_sequence) == (7, 3, 4)
    assert (last.base_timestamp, last.max_timestamp, last.compression) == (-1, NOW_MS, 0)
    assert [record.offset for record in plain] == [5, 6]
    world.log_.close_after_failure()
    world.reopen()
    assert world.log_.producers.entries[7].last_sequence == 4


def test_the_last_batch_of_a_round_stays_without_records(world):
    world.put([(b"a", b"1")])
    world.put([(b"a", None)])
    clean(world)
    world.clock.advance(RETENTION_MS)
    mark(world)
    clean(world)
    assert [batch.base_offset for batch in world.batches()] == [2]
    world.put([(b"mark-2", None)])
    clean(world)
    world.clock.advance(RETENTION_MS)
    world.manager.advance_checkpoint(world.log_, 2)
    assert world.clean()
    assert [(batch.base_offset, batch.record_count) for batch in world.batches()] == [(3, 0)]


def test_a_tombstone_waits_for_its_horizon(world):
    world.put([(b"a", b"1"), (b"b", b"1")])
    world.put([(b"a", None), (b"c", b"1")])
    clean(world)
    assert data(world) == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    batch = world.batches()[1]
    assert batch.has_delete_horizon and batch.base_timestamp == NOW_MS + RETENTION_MS
    assert [record.timestamp for record in batch] == [NOW_MS, NOW_MS]
    world.clock.advance(RETENTION_MS - 1)
    mark(world)
    clean(world)
    assert (2, b"a", None) in data(world)
    assert world.batches()[1].base_timestamp == NOW_MS + RETENTION_MS, "set once"
    world.clock.advance(1)
    mark(world)
    clean(world)
    assert data(world) == [(1, b"b", b"1"), (3, b"c", b"1")]


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_goes_after_its_records_and_its_horizon(world, commit):
    world.put([(b"a", b"1")], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    world.end_transaction(7, commit=commit)
    world.put([(b"a", b"2")])
    world.log_.producers.entries.remove_all([7])  # as after producer.id.expiration.ms
    clean(world)
    assert [batch.base_offset for batch in world.batches() if batch.is_control] == [1], "it has just lost its records"
    assert data(world)[-1] == (2, b"a", b"2")
    aborted = world.log_.collect_aborted_transactions(0, 10)
    assert [transaction.first_offset for transaction in aborted] == ([] if commit else [0])
    mark(world)
    clean(world)
    marker = next(batch for batch in world.batches() if batch.is_control)
    assert marker.base_timestamp == NOW_MS + RETENTION_MS and marker.has_delete_horizon
    assert world.log_.collect_aborted_transactions(0, 10) == []
    world.clock.advance(RETENTION_MS)
    mark(world)
    clean(world)
    assert not [batch for batch in world.batches() if batch.is_control]


def test_an_aborted_record_does_not_hide_a_value(world):
    world.put([(b"a", b"1")])
    world.put([(b"a", b"2")], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    world.end_transaction(7, commit=False)
    mark(world)
    clean(world)
    assert (0, b"a", b"1") in data(world)
    assert [(batch.base_offset, batch.record_count) for batch in world.batches()][1] == (1, 0), "the last sequence"


def test_an_open_transaction_holds_the_cleaner_back(world):
    world.put([(b"a", b"1")])
    world.put([(b"a", b"2")], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    world.put([(b"a", b"3")])
    clean(world)
    assert len(data(world)) == 3
    assert world.manager.checkpoint_of(world.log_) == 1
    assert not world.clean()
    world.end_transaction(7, commit=True)
    clean(world)
    assert (2, b"a", b"3") in data(world) and len(data(world)) <= 3


def test_records_without_a_key_are_dropped(tmp_path):
    world = CleanerWorld(tmp_path, overrides={"cleanup.policy": "delete"})
    world.put([(None, b"1"), (b"a", b"2"), (None, b"3")])
    world.log_.close()
    world.overrides["cleanup.policy"] = "compact"
    world.reopen()
    clean(world)
    assert kept(world) == [(1, b"a", b"2")]


@pytest.mark.parametrize("compression", range(5))
@pytest.mark.parametrize("timestamp_type", [0, 1])
def test_codec_and_timestamp_type_are_kept(tmp_path, compression, timestamp_type):
    world = CleanerWorld(tmp_path)
    builder = RecordBatchBuilder(compression=compression, timestamp_type=timestamp_type)
    for number, key in enumerate((b"a", b"b", b"a")):
        builder.append(NOW_MS + number, key, b"value" * 20, [("header", b"of it")])
    world.log_.append_as_follower(builder.build())
    clean(world)
    batch = world.batches()[0]
    assert (batch.compression, batch.timestamp_type) == (compression, timestamp_type)
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (0, 2, 2)
    expected = [(1, NOW_MS + 1), (2, NOW_MS + 2)] if timestamp_type == 0 else [(1, NOW_MS + 2), (2, NOW_MS + 2)]
    assert [(record.offset, record.timestamp) for record in batch] == expected
    assert all(record.headers == (("header", b"of it"),) for record in batch)


def test_an_untouched_batch_is_copied_byte_for_byte(world):
    world.put([(b"a", b"1"), (b"b", b"1")], compression=4)
    before = world.path.joinpath("00000000000000000000.log").read_bytes()
    clean(world)
    assert world.path.joinpath("00000000000000000000.log").read_bytes() == before


def test_segments_merge_and_their_indexes_are_made_anew(world):
    for number in range(40):
        world.put([(b"k%d" % (number % 10), b"v" * 100)])
        if number % 4 == 3:
            world.log_.roll()
    world.clean()
    assert world.log_.segments.base_offsets == [0, 40]
    merged = world.log_.segments.first
    assert merged.offset_index.entries > 2
    assert merged.time_index.last_entry[0] == NOW_MS
    for slot in range(merged.offset_index.entries):
        offset, position = merged.offset_index.entry(slot)
        assert merged.find(offset)[0] == position
    assert [record[0] for record in kept(world)] == list(range(30, 40))
    found = world.log_.read(3, 1 << 20).records.read()
    assert next(iter(iterate_batches(found))).base_offset == 30
    world.run_scheduled()
    assert not [name for name in os.listdir(world.path) if name.endswith((".deleted", ".cleaned", ".swap"))]


def test_the_files_are_as_old_as_what_they_were_made_from(world):
    world.put([(b"a", b"1")])
    world.log_.roll()
    world.put([(b"a", b"2")])
    world.log_.roll()
    for name, age in (("0", 1000), ("1", 2000)):
        os.utime(world.path / f"{int(name):020d}.log", (age, age))
    world.clean()
    assert os.stat(world.path / "00000000000000000000.log").st_mtime == 2000


def test_a_map_that_is_too_small_takes_several_passes(tmp_path):
    world = CleanerWorld(tmp_path, map_bytes=24 * 4)
    for number in range(30):
        world.put([(b"%d" % (number % 10), b"%d" % number)])
    world.log_.roll()
    passes = 0
    while world.clean():
        passes += 1
    assert passes > 3
    assert [record[0] for record in kept(world)] == list(range(20, 30))


def test_min_compaction_lag(tmp_path):
    world = CleanerWorld(tmp_path, overrides={"min.compaction.lag.ms": "500"})
    world.put([(b"a", b"1"), (b"a", b"2")])
    world.log_.roll()
    assert not world.clean()
    world.clock.advance(500)
    assert world.clean()
    assert len(kept(world)) == 1


def test_compact_and_delete(tmp_path):
    world = CleanerWorld(tmp_path, overrides={"cleanup.policy": "compact,delete", "retention.ms": "10000"})
    world.put([(b"a", b"1"), (b"a", b"2")])
    clean(world)
    assert len(kept(world)) == 1
    world.clock.advance(10001)
    assert world.log_.delete_old_segments() == 1
    assert kept(world) == []
    assert not world.clean()


# -- what ends a pass early


def test_segments_that_went_meanwhile(world):
    world.put([(b"a", b"1"), (b"a", b"2")])
    world.log_.roll()
    asked = []

    def truncate_before_the_swap():
        asked.append(1)
        if len(asked) == 3:  # described, snapshot, swap
            world.log_.truncate_fully_and_start_at(50)

    world.before_swap = truncate_before_the_swap
    assert world.clean()
    assert world.log_.segments.base_offsets == [50]
    assert world.manager.checkpoint_of(world.log_) is None
    assert not world.failures


def test_a_damaged_batch_makes_the_log_uncleanable(world):
    world.put([(b"a", b"1"), (b"a", b"2")])
    world.log_.roll()
    with open(world.path / "00000000000000000000.log", "r+b") as file:
        file.seek(70)
        file.write(b"\xff")
    assert world.clean()
    assert world.manager.uncleanable_partitions == [world.log_.topic_partition]
    assert world.manager.uncleanable_bytes == world.log_.size
    assert not world.clean()
    assert not world.failures


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
    world = CleanerWorld(tmp_path, filesystem=filesystem)
    world.put([(b"a", b"1"), (b"a", b"2")])
    world.log_.roll()
    filesystem.is_full = True
    assert world.clean()
    assert [error.errno for _, error in world.failures] == [errno.ENOSPC]
    assert len(batches_of(world.log_.segments.first)) == 1


def test_a_log_that_was_deleted_meanwhile(world):
    world.put([(b"a", b"1"), (b"a", b"2")])
    world.log_.roll()
    asked = []

    def delete_after_the_snapshot():
        asked.append(1)
        if len(asked) == 3:
            world.log_.mark_deleted()
            os.rename(world.path, world.root / "gone")

    world.before_swap = delete_after_the_snapshot
    assert world.clean()
    assert not world.failures
    assert not world.manager.uncleanable_partitions


def test_paused_and_resumed(world):
    partition = world.log_.topic_partition
    world.put([(b"a", b"1"), (b"a", b"2")])
    world.log_.roll()
    world.manager.pause(partition)
    world.manager.pause(partition)
    assert world.manager.state_of(partition) is CleaningState.PAUSED
    assert not world.clean()
    world.manager.resume(partition)
    assert not world.clean()
    world.manager.resume(partition)
    with pytest.raises(ValueError, match="not paused"):
        world.manager.resume(partition)
    assert world.clean()


def test_the_checkpoint_is_kafkas(world):
    world.put([(b"a", b"1"), (b"a", b"2")])
    clean(world)
    assert (world.root / "cleaner-offset-checkpoint").read_text() == "0\n1\nt 0 2\n"
    world.log_.close_after_failure()
    world.reopen()
    assert not world.clean(), "another process goes on where this one stopped"


def test_bytes_are_counted_for_the_throttle(world):
    world.put([(b"a", b"1" * 1000), (b"a", b"2" * 1000)])
    world.log_.roll()
    size = world.log_.size
    world.clean()
    assert world.counted == 2 * size + world.log_.size
