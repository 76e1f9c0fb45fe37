"""The durability of a log when the power fails: producer snapshots, transaction indexes, the recovery point."""

import pytest

from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.producer_snapshot import read_snapshot
from tests.harness.log import LogHarness, batch
from tests.lossy_filesystem import LossyFilesystem

SEQUENCES = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}


@pytest.fixture
def lossy(tmp_path):
    root = tmp_path / "before"
    root.mkdir()
    filesystem = LossyFilesystem(str(root))
    yield LogHarness(root, filesystem=filesystem)
    filesystem.close()


def after_power_failure(harness, tmp_path):
    """Returns a harness over the files that survive a power failure at this moment."""
    harness.filesystem.pull_the_plug(str(tmp_path / "after"))
    return LogHarness(tmp_path / "after")


def test_a_roll_makes_the_producer_snapshot_durable(lossy, tmp_path):
    log = lossy.log()
    log.append_as_leader(batch(3, producer_id=7, producer_epoch=0, base_sequence=0), 0)
    log.roll()
    (entry,) = read_snapshot(str(after_power_failure(lossy, tmp_path).path), 3)
    assert (entry.producer_id, entry.last_sequence) == (7, 2)


def test_a_flush_makes_a_snapshot_of_the_recovery_durable(lossy, tmp_path):
    log = lossy.log()
    log.append_as_leader(batch(3, producer_id=7, producer_epoch=0, base_sequence=0), 0)
    log.roll()
    (lossy.path / "00000000000000000003.snapshot").unlink()
    log.append_as_leader(batch(1, producer_id=7, producer_epoch=0, base_sequence=3), 0)
    again = lossy.log()
    again.flush()
    (entry,) = read_snapshot(str(after_power_failure(lossy, tmp_path).path), 3)
    assert entry.last_sequence == 2


def test_a_roll_makes_the_aborted_transactions_durable(lossy, tmp_path):
    log = lossy.log()
    log.append_as_leader(batch(3, base_sequence=0, **SEQUENCES), 0)
    log.append_as_leader(lossy.marker(7, 0, commit=False), 0, from_client=False)
    log.roll()
    assert log.recovery_point == 4
    log = after_power_failure(lossy, tmp_path).log(recovery_point=4)
    assert log.collect_aborted_transactions(0, 4) == [(7, 0, 3, 4)]


def test_a_flush_makes_the_aborted_transactions_of_a_recovery_durable(lossy, tmp_path):
    log = lossy.log()
    log.append_as_leader(batch(3, base_sequence=0, **SEQUENCES), 0)
    log.append_as_leader(lossy.marker(7, 0, commit=False), 0, from_client=False)
    log.roll()
    log = lossy.log()  # reads all batches again and writes the transaction index again
    log.flush()
    log = after_power_failure(lossy, tmp_path).log(recovery_point=4)
    assert log.collect_aborted_transactions(0, 4) == [(7, 0, 3, 4)]


def test_a_flush_after_a_rename_makes_the_snapshot_of_a_roll_durable(lossy, tmp_path):
    """The log of a move is renamed at its end."""
    for_background = []
    lossy.ports.run_in_background = for_background.append
    log = lossy.log()
    log.append_as_leader(batch(3, producer_id=7, producer_epoch=0, base_sequence=0), 0)
    log.roll()
    lossy.path = lossy.path.with_name("t-1")
    log.rename_to(str(lossy.path))
    lossy.filesystem.sync_directory(str(lossy.root))
    for work in for_background:
        work()
    lossy.filesystem.pull_the_plug(str(tmp_path / "after"))
    (entry,) = read_snapshot(str(tmp_path / "after" / "t-1"), 3)
    assert (entry.producer_id, entry.last_sequence) == (7, 2)


class FilesystemWithHook(Filesystem):
    """Calls `before_sync` once, before the next sync of a file."""

    __slots__ = ("before_sync",)

    def __init__(self):
        self.before_sync = None

    def sync_file(self, fd):
        hook, self.before_sync = self.before_sync, None
        if hook is not None:
            hook()
        super().sync_file(fd)


def test_a_flush_that_a_truncation_overtakes_does_not_raise_the_recovery_point(tmp_path):
    """The owner truncates while another thread flushes: batches that are appended afterwards have not been synced."""
    filesystem = FilesystemWithHook()
    log = LogHarness(tmp_path, filesystem=filesystem).log()
    for _ in range(5):
        log.append_as_leader(batch(2), 0)

    def truncate():
        log.truncate_to(4)
        for _ in range(5):
            log.append_as_leader(batch(2), 0)

    filesystem.before_sync = truncate
    log.flush(10)
    assert (log.recovery_point, log.log_end_offset) == (0, 14)
    log.flush()
    assert log.recovery_point == 14


def test_a_truncation_lowers_the_recovery_point(tmp_path):
    log = LogHarness(tmp_path).log()
    for _ in range(5):
        log.append_as_leader(batch(2), 0)
    log.flush()
    log.truncate_to(4)
    assert log.recovery_point == 4


def test_nothing_is_synced_when_nothing_has_changed(lossy):
    log = lossy.log()
    log.append_as_leader(batch(3), 0)
    log.flush()
    syncs = lossy.filesystem.syncs
    log.flush()
    assert lossy.filesystem.syncs == syncs


class FilesystemWithOpenHook(FilesystemWithHook):
    """Calls `before_sync` once, also after the opening of a segment file, before the caller gets the file."""

    __slots__ = ()

    def open_segment(self, path, **keywords):
        file = super().open_segment(path, **keywords)
        hook, self.before_sync = self.before_sync, None
        if hook is not None:
            hook()
        return file


def test_a_flush_leaves_the_file_alone_that_the_owner_opens_at_the_same_time(tmp_path):
    """The flush replaced the open file by one with an older end, so that the next append overwrote the last one."""
    filesystem = FilesystemWithOpenHook()
    harness = LogHarness(tmp_path, filesystem=filesystem)
    harness.log().append_as_leader(batch(2), 0)
    log = harness.log()  # after a kill; its file is closed
    filesystem.before_sync = lambda: log.append_as_leader(batch(2), 0)
    log.flush(2)
    log.append_as_leader(batch(2), 0)
    again = harness.log()
    assert again.log_end_offset == log.log_end_offset == 6
