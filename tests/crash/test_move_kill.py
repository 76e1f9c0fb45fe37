"""A move between log directories is killed at each call that reaches the disk in turn: no record may be missing.

Each test covers both a kill -9 (all calls before it took effect) and a power failure (only synced data survive; every
record of the topic is synced).
"""

import random
import shutil
from contextlib import suppress

import pytest

from kafkapy.errors import Error
from kafkapy.storage.filesystem import Filesystem
from tests.harness.move import T0, MoveHarness
from tests.harness.replica import partition_image
from tests.lossy_filesystem import LossyFilesystem, PowerFailure


class Killed(BaseException):
    """Raised at the moment of kill -9; no `except Exception` catches it."""


class KillingFilesystem(Filesystem):
    """A filesystem that raises Killed instead of executing the n-th call that changes something."""

    __slots__ = ("calls", "kill_at")

    def __init__(self):
        self.calls = 0
        self.kill_at = None


def killing(name):
    def call(self, *arguments, **keywords):
        if self.calls == self.kill_at:
            raise Killed(name)
        self.calls += 1
        return getattr(Filesystem, name)(self, *arguments, **keywords)

    return call


CHANGES = (
    *("sync_file", "sync_directory", "rename", "write_file", "append_file"),
    *("unlink", "open_segment", "make_directory"),
)
for each in CHANGES:
    setattr(KillingFilesystem, each, killing(each))


def build(root, filesystem, assigned, *, synced=False):
    """Creates a partition of three segments in the first directory. Returns the harness and the acknowledged values."""
    harness = MoveHarness(root, filesystem=filesystem, assigned=assigned)
    log = harness.create({"flush.messages": "1"} if synced else None)
    written = []

    def write():
        value = b"%d" % len(written)
        (answer,) = harness.append(value)
        if answer.error is Error.NONE:
            written.append(value)

    for _ in range(3):
        for _ in range(4):
            write()
        log.roll()
    harness.meanwhile = write
    return harness, written


def check(root, assigned, written):
    """Checks a start after the kill: one log has all records, and the move can be repeated and completes."""
    again = MoveHarness(root, assigned=assigned)
    again.put_topic("t", [partition_image()])
    assert again.values() == written
    again.append(b"after")
    again.moves.resume()
    if again.log_manager.get_log(T0).directory is again.first:
        assert again.move(again.second) is Error.NONE
    assert again.log_manager.get_log(T0).directory is again.second
    assert again.values() == [*written, b"after"]
    assert not again.failures and not again.log_manager.futures.logs()
    names = [name for found in again.names() for name in found if name[1] != "delete"]
    assert names == [("t-0", "")]
    again.log_manager.unlock()


def test_kill_at_every_call(tmp_path):
    kill_at, killed = 0, True
    while killed:
        root = tmp_path / f"{kill_at}"
        root.mkdir()
        filesystem, assigned = KillingFilesystem(), {}
        harness, written = build(root, filesystem, assigned)
        filesystem.calls, filesystem.kill_at = 0, kill_at
        try:
            harness.move(harness.second)
            killed = False
        except Killed:
            killed = True
        filesystem.kill_at = None
        harness.log_manager.unlock()
        check(root, assigned, written)
        shutil.rmtree(root)
        kill_at += 1
    assert kill_at > 20


@pytest.mark.parametrize("seed", [0, 1])
def test_power_failure_at_every_sync(tmp_path, seed):
    fail_at, failed = 0, True
    while failed:
        root, after = tmp_path / f"{fail_at}", tmp_path / f"{fail_at}-after"
        root.mkdir()
        MoveHarness(root).log_manager.unlock()
        filesystem, assigned = LossyFilesystem(str(root)), {}
        harness, written = build(root, filesystem, assigned, synced=True)
        filesystem.fail_at = filesystem.syncs + fail_at
        with suppress(PowerFailure):
            harness.move(harness.second)
        failed = filesystem.syncs >= filesystem.fail_at
        filesystem.pull_the_plug(str(after), random.Random(seed) if seed else None)
        harness.log_manager.unlock()
        check(after, assigned, written)
        shutil.rmtree(root)
        shutil.rmtree(after)
        fail_at += 1
    assert fail_at > 5
