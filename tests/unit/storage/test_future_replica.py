"""Copying a log into its future replica: segments, damage, truncation and retention while it is copied."""

import pytest

from kafkapy.errors import ApiError, Error
from kafkapy.storage.future_replica import FutureReplica
from kafkapy.storage.log_config import LogConfig
from tests.harness.log import LogHarness, batch, topic_config, values_of

CONFIG = {"segment.bytes": 1 << 20, "index.interval.bytes": 4096, "file.delete.delay.ms": 0}


class Pair:
    """A current log, its future log in another directory, and the copy between them."""

    def __init__(self, root):
        self.source, self.target = LogHarness(root / "current"), LogHarness(root / "future")
        self.current, self.future = self.source.log(CONFIG), self.target.log(CONFIG)
        self.replica = FutureReplica(self.current, self.future)

    def fill(self, count, *, size=1000, epoch=0):
        for number in range(count):
            self.current.append_as_leader(batch(10, value=bytes([number]) * size), epoch)
        self.current.high_watermark = self.current.log_end_offset

    def copy_all(self):
        copied = []
        while size := self.replica.copy_some():
            copied.append(size)
        return copied

    def check(self):
        start, end = self.current.log_start_offset, self.current.log_end_offset
        assert (self.future.log_start_offset, self.future.log_end_offset) == (start, end)
        for offset in range(start, end, 7):
            both = [values_of(log.read(offset, 100_000)) for log in (self.current, self.future)]
            assert both[0] == both[1]
        assert not self.source.failures and not self.target.failures


@pytest.fixture
def pair(tmp_path):
    pair = Pair(tmp_path)
    yield pair
    pair.replica.close()


def test_the_copy_has_the_same_segments_and_ends_with_finish(pair):
    pair.fill(30, size=8000)
    assert len(pair.current.segments) == 3
    copied = pair.copy_all()
    assert sum(copied) == pair.current.size
    assert all(size <= 1 << 20 for size in copied)
    assert list(pair.future.segments.base_offsets) == list(pair.current.segments.base_offsets)
    assert pair.future.high_watermark == 0
    assert pair.replica.finish(0)
    assert pair.future.high_watermark == pair.current.high_watermark == 300
    pair.check()


def test_a_batch_larger_than_a_piece_is_copied_whole(tmp_path):
    large = LogConfig(topic_config({**CONFIG, "segment.bytes": 8 << 20, "max.message.bytes": 4 << 20}))
    pair = Pair(tmp_path)
    for log in (pair.current, pair.future):
        log.update_config(large)
    pair.fill(1, size=300_000)
    assert pair.replica.copy_some() == pair.current.size > 1 << 20
    assert pair.replica.copy_some() == 0
    assert pair.replica.finish(0)
    pair.check()


def test_finish_gives_up_when_too_much_is_left(pair):
    pair.fill(30, size=8000)
    assert not pair.replica.finish(1 << 20)
    assert 0 < pair.future.log_end_offset < pair.current.log_end_offset
    assert pair.replica.finish(2 << 20)
    pair.check()


def test_records_appended_during_the_copy_follow(pair):
    pair.fill(3)
    pair.copy_all()
    pair.fill(2, epoch=4)
    pair.current.roll()
    pair.fill(1, epoch=4)
    assert pair.replica.finish(1 << 20)
    assert pair.future.leader_epochs.entries == ((0, 0), (4, 30))
    assert list(pair.future.segments.base_offsets) == [0, 50]
    pair.check()


def test_a_truncation_of_the_current_log_starts_the_copy_again(pair):
    pair.fill(5)
    pair.copy_all()
    pair.current.truncate_to(20)
    pair.current.append_as_leader(batch(5, value=b"other"), 1)
    assert pair.replica.finish(1 << 20)
    assert pair.future.log_end_offset == 25
    pair.check()


def test_retention_of_what_was_not_copied_starts_the_copy_again(pair):
    pair.fill(30, size=8000)
    pair.replica.copy_some()
    pair.current.maybe_increment_log_start_offset(pair.current.segments[2].base_offset)
    assert pair.current.delete_old_segments() == 2
    assert pair.replica.finish(4 << 20)
    assert pair.future.segments.first.base_offset == pair.current.segments.first.base_offset
    pair.check()


def test_a_segment_deleted_before_it_is_opened_starts_the_copy_again(pair, monkeypatch):
    pair.fill(30, size=8000)
    opened = FutureReplica._open

    def delete_first(replica, path, base_offset, end):
        monkeypatch.setattr(FutureReplica, "_open", opened)
        pair.current.maybe_increment_log_start_offset(pair.current.segments[1].base_offset)
        pair.current.delete_old_segments()
        pair.source.run_scheduled()
        opened(replica, path, base_offset, end)

    monkeypatch.setattr(FutureReplica, "_open", delete_first)
    assert pair.replica.finish(4 << 20)
    pair.check()


def test_damage_of_the_current_log_is_an_error_and_not_copied(pair):
    pair.fill(3)
    with open(pair.source.path / f"{0:020d}.log", "r+b") as file:
        file.seek(pair.current.size // 3 + 100)
        file.write(b"damage")
    assert pair.replica.copy_some() == pair.current.size // 3
    with pytest.raises(ApiError) as raised:
        pair.replica.copy_some()
    assert raised.value.error is Error.CORRUPT_MESSAGE
    assert pair.future.log_end_offset == 10


def test_what_was_durable_is_durable_in_the_copy(pair):
    pair.fill(3)
    assert pair.replica.finish(1 << 20)
    assert pair.future.recovery_point == 0
    pair.current.flush()
    assert pair.replica.finish(1 << 20)
    assert pair.future.recovery_point == 30


def test_offsets_without_records_before_an_empty_active_segment_are_skipped(pair):
    pair.fill(1)
    pair.current.roll_at(50)
    pair.current.skip_to(50)
    pair.current.high_watermark = 50
    assert pair.replica.finish(1 << 20)
    assert pair.future.log_end_offset == 50
    assert pair.future.segments.active.base_offset == 50
    assert pair.future.append_as_leader(batch(), 0).first_offset == 50


def test_a_copy_that_is_taken_up_again_continues_where_it_ended(pair):
    pair.fill(30, size=8000)
    pair.replica.copy_some()
    end = pair.future.log_end_offset
    assert 0 < end < 300
    pair.replica.close()
    pair.replica = FutureReplica(pair.current, pair.future)
    assert sum(pair.copy_all()) < pair.current.size
    assert pair.replica.finish(0)
    pair.check()


def test_a_truncation_while_the_next_piece_is_read_begins_the_copy_anew(pair):
    """The copy found a batch with offsets that it already had, and the move ended with an error."""

    class Overtaken(FutureReplica):
        def _copy_next(self):
            if self.future.log_end_offset == 20 and self.current.latest_epoch == 0:
                size = self.current.size + 10_000 - len(batch(value=bytes(10_000)))
                self.current.truncate_to(0)
                for _ in range(2):  # the second batch begins where the copy is to continue
                    self.current.append_as_leader(batch(value=bytes(size)), 1)
            return super()._copy_next()

    pair.replica = Overtaken(pair.current, pair.future)
    pair.fill(2)
    pair.copy_all()
    pair.current.high_watermark = 2
    assert pair.replica.finish(1 << 20)
    pair.check()


def test_a_truncation_that_renames_the_segments_at_this_moment_delays_the_copy(pair, monkeypatch):
    """The directory of the current log was taken offline, because its files were not found."""
    pair.fill(30, size=8000)
    delete_files = type(pair.current)._delete_files
    sizes = []

    def delete_and_copy(log, doomed):
        delete_files(log, doomed)
        if log is pair.current:
            sizes.append(pair.replica.copy_some())

    monkeypatch.setattr(type(pair.current), "_delete_files", delete_and_copy)
    pair.current.truncate_fully_and_start_at(7)
    assert sizes == [0]
    pair.current.append_as_leader(batch(10), 1)
    assert pair.replica.finish(1 << 20)
    pair.check()


def test_a_piece_that_is_read_in_the_middle_of_a_truncation_is_copied_anew(pair, monkeypatch):
    """The file is cut already, and the end of the log is not lowered yet."""
    pair.fill(3)
    sync_deletion = type(pair.current)._sync_deletion
    sizes = []

    class Overtaken(FutureReplica):
        def _copy_piece(self, end):
            if self.current.segments.active.size < end:
                raise ValueError("the piece is incomplete")
            return super()._copy_piece(end)

    replica = pair.replica = Overtaken(pair.current, pair.future)
    replica.copy_some()
    pair.fill(3)
    copy_piece = replica._copy_piece

    def truncate_first(end):
        replica._copy_piece = copy_piece
        pair.current.truncate_to(10)
        return copy_piece(end)

    def copy_at_the_sync(log, deleted):
        sync_deletion(log, deleted)
        if log is pair.current:
            sizes.append(log.truncations)

    monkeypatch.setattr(type(pair.current), "_sync_deletion", copy_at_the_sync)
    before = pair.current.truncations
    replica._copy_piece = truncate_first
    assert replica.finish(1 << 20)
    assert sizes == [before + 1], "a copy that began before knows during the truncation that it is outdated"
    pair.check()
