"""A cleaning pass is killed at each call that reaches the disk in turn: no record may be lost.

Each test covers both a kill -9 (all calls before it took effect) and a power failure (only synced data survive).
"""

import random
import shutil

import pytest

from kafkapy.storage.filesystem import Filesystem
from tests.harness.cleaner import CleanerHarness, Workload, check_cleaned, check_kept, check_reads, clean_all
from tests.lossy_filesystem import LossyFilesystem, PowerFailure


class Killed(BaseException):
    """Raised at the moment of kill -9; no `except Exception` catches it."""


class KillingFilesystem(Filesystem):
    """A filesystem that raises Killed instead of executing the n-th call that changes something."""

    __slots__ = ("calls", "kill_at")

    def __init__(self, kill_at=None):
        self.calls = 0
        self.kill_at = kill_at


def killing(name):
    def call(self, *arguments, **keywords):
        if self.calls == self.kill_at:
            raise Killed(name)
        self.calls += 1
        return getattr(Filesystem, name)(self, *arguments, **keywords)

    return call


for each in ("sync_file", "sync_directory", "rename", "write_file", "append_file", "unlink", "open_segment"):
    setattr(KillingFilesystem, each, killing(each))


def dirty_log(root, seed):
    """Writes a log in several segments that was never cleaned, and closes it. Returns its workload."""
    workload = Workload(CleanerHarness(root), random.Random(seed), cleaning=False, old_formats=False)
    for _ in range(25):
        workload.step()
    workload.finish()
    workload.write()
    workload.finish()
    workload.harness.log_.close()
    return workload


def reopened(workload, root, filesystem, *, is_flushed):
    """Returns the workload's log as another process finds it after an unclean stop."""
    harness = CleanerHarness(root, filesystem=filesystem)
    harness.log_.close_after_failure()
    end_offset = workload.harness.log_.log_end_offset
    harness.reopen(recovery_point=end_offset if is_flushed else 0)
    other = Workload(harness, workload.chance)
    other.latest, other.markers, other.stamped = workload.latest, workload.markers, workload.stamped
    return other


def check_recovered(workload, root, *, is_flushed):
    found = reopened(workload, root, Filesystem(), is_flushed=is_flushed)
    harness = found.harness
    assert harness.log_.log_end_offset == workload.harness.log_.log_end_offset
    assert not [path for path in harness.path.iterdir() if path.suffix in (".cleaned", ".swap", ".deleted")]
    check_kept(found)
    check_reads(harness.log_)
    for segment in harness.log_.segments:
        segment.offset_index.sanity_check()
        segment.time_index.sanity_check()
    clean_all(harness)
    check_cleaned(found)
    harness.log_.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_flushed", [True, False], ids=["below the recovery point", "above it"])
@pytest.mark.parametrize("seed", [1])
def test_kill_at_every_call(tmp_path, seed, is_flushed):
    template = tmp_path / "template"
    template.mkdir()
    workload = dirty_log(template, seed)
    kill_at, killed = 0, True
    while killed:
        root = tmp_path / f"{kill_at}"
        shutil.copytree(template, root)
        filesystem = KillingFilesystem()
        found = reopened(workload, root, filesystem, is_flushed=is_flushed)
        filesystem.calls, filesystem.kill_at = 0, kill_at
        try:
            clean_all(found.harness)
            found.harness.run_scheduled()
            killed = False
        except Killed:
            killed = True
        found.harness.log_.close_after_failure()
        check_recovered(workload, root, is_flushed=is_flushed)
        shutil.rmtree(root)
        kill_at += 1
    assert kill_at > 20


@pytest.mark.timeout(300)
def test_kill_at_every_call_of_the_recovery(tmp_path):
    """Kills the recovery of a pass that was killed."""
    template = tmp_path / "template"
    template.mkdir()
    workload = dirty_log(template, 2)
    killed_passes, killed_recoveries = 0, 0
    for kill_at in range(0, 46, 2):
        interrupted = tmp_path / f"{kill_at}"
        shutil.copytree(template, interrupted)
        filesystem = KillingFilesystem()
        found = reopened(workload, interrupted, filesystem, is_flushed=True)
        filesystem.calls, filesystem.kill_at = 0, kill_at
        try:
            clean_all(found.harness)
            found.harness.run_scheduled()
        except Killed:
            killed_passes += 1
        found.harness.log_.close_after_failure()
        again, killed = 0, True
        while killed:
            root = tmp_path / f"{kill_at}-{again}"
            shutil.copytree(interrupted, root)
            try:
                CleanerHarness(root, filesystem=KillingFilesystem(again)).log_.close_after_failure()
                killed = False
            except Killed:
                again += 1
                killed_recoveries += 1
            check_recovered(workload, root, is_flushed=True)
            shutil.rmtree(root)
    assert killed_passes > 15 and killed_recoveries > 60


@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_flushed", [True, False], ids=["below the recovery point", "above it"])
def test_power_failure_at_every_sync(tmp_path, is_flushed):
    template = tmp_path / "template"
    template.mkdir()
    workload = dirty_log(template, 3)
    fail_at, failed = 0, True
    while failed:
        root = tmp_path / f"{fail_at}"
        shutil.copytree(template, root)
        filesystem = LossyFilesystem(str(root))
        filesystem.sync_filesystem(str(root))
        found = reopened(workload, root, filesystem, is_flushed=is_flushed)
        filesystem.fail_at = filesystem.syncs + fail_at
        try:
            clean_all(found.harness)
            found.harness.run_scheduled()
            failed = False
        except PowerFailure:
            failed = True
        survived = tmp_path / f"survived-{fail_at}"
        filesystem.pull_the_plug(str(survived))
        filesystem.close()
        found.harness.log_.close_after_failure()
        check_recovered(workload, survived, is_flushed=is_flushed)
        shutil.rmtree(root)
        shutil.rmtree(survived)
        fail_at += 1
    assert fail_at > 5
