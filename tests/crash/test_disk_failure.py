"""A disk that is full or broken: acknowledged data remain, and the rest of the broker works.

A preloaded library (failing_disk.c) makes calls of the broker's process fail. A full tmpfs causes real failures where a
tmpfs can be mounted.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kafkapy.errors import Error
from tests.broker_process import BrokerProcess
from tests.crash.failing_disk import CREATE, EVERY_CHANGE, READ, RENAME, SYNC, WRITE, FailingDisk, build
from tests.crash.witness import NoAnswer, Witness

LARGE = bytes(300_000)
SETTINGS = {
    "log.segment.bytes": "1048576",
    "log.flush.interval.messages": "1",
    "log.flush.offset.checkpoint.interval.ms": "100",
    "replica.high.watermark.checkpoint.interval.ms": "100",
    "metadata.log.max.record.bytes.between.snapshots": "4000",
}


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("failing_disk"))


class Harness:
    """A broker with two log directories on a disk that can fail; topic `t` has a partition in each directory."""

    def __init__(self, directory: Path, library: Path, settings: dict[str, str] | None = None) -> None:
        self.disk = FailingDisk(library, directory)
        self.log_dirs = [directory / "first", directory / "second"]
        properties = {"log.dirs": ",".join(map(str, self.log_dirs)), **SETTINGS, **(settings or {})}
        self.broker = BrokerProcess(directory, properties, environment=self.disk.environment)
        self.witness = Witness()

    def start(self) -> None:
        self.broker.start()
        self.witness.connect(self.broker.port)

    def begin(self) -> None:
        self.start()
        self.witness.become_producer()
        assert self.witness.create("t", 2) is Error.NONE
        for index in (0, 1):
            assert self.produce(index) is Error.NONE

    def produce(self, index: int, value: bytes = b"value") -> Error:
        return self.witness.produce("t", index, value)

    def partition_in(self, directory: Path) -> int:
        (found,) = [name for name in os.listdir(directory) if re.fullmatch(r"t-\d+", name)]
        return int(found[2:])

    def errors(self) -> list[str]:
        return [line for line in self.broker.log().splitlines() if re.search(r"\b(ERROR|CRITICAL)\b", line)]

    def stop_and_heal(self) -> None:
        if self.broker.is_running:
            self.broker.stop()
        self.disk.heal()

    def check(self) -> None:
        """Checks that everything acknowledged exists and survives a restart, and that more can be written."""
        for _ in range(2):
            self.start()
            self.witness.check()
            for topic, witnessed in self.witness.topics.items():
                for index in witnessed.partitions:
                    assert self.witness.produce(topic, index, b"more") is Error.NONE
            self.witness.check()
            assert self.broker.stop() == 0
        strays = [name for directory in self.log_dirs for name in os.listdir(directory) if name.endswith("-stray")]
        assert not [name for name in strays if name.rpartition("-")[0].rpartition("-")[0] in self.witness.topics]


@pytest.fixture
def harness(tmp_path: Path, library: Path) -> Iterator[Harness]:
    made = Harness(tmp_path, library)
    yield made
    if made.broker.is_running:
        made.broker.kill()


# -- one of two directories ----------------------------------------------------------------------------------------


class Failure(NamedTuple):
    """Calls that fail on a path (`{}` is the partition's number), and an action that makes the broker call them."""

    path: str
    operations: int
    error: int
    trigger: Callable[[Harness, int], None]


def append(harness: Harness, index: int) -> None:
    assert harness.produce(index) is Error.KAFKA_STORAGE_ERROR


def append_until_roll(harness: Harness, index: int) -> None:
    for _ in range(5):
        if harness.produce(index, LARGE) is not Error.NONE:
            return
    raise AssertionError("the segment did not roll")


def wait_for_checkpoint(harness: Harness, index: int) -> None:
    wait_until_offline(harness)


def create_and_delete(harness: Harness, index: int) -> None:
    assert harness.witness.delete("t") is Error.NONE
    wait_until_offline(harness)


def create_topic(harness: Harness, index: int) -> None:
    """Creates a topic, which is acknowledged; its partition is created in the directory that works."""
    assert harness.witness.create("new", 2) is Error.NONE


def wait_until_offline(harness: Harness) -> None:
    for _ in range(1000):
        if "Stopping serving logs in dir" in harness.broker.log():
            return
        time.sleep(0.01)
    raise AssertionError("the directory is still online")


FAILURES = {
    "append, full": Failure("/second/t-{}/000", WRITE, errno.ENOSPC, append),
    "append, broken": Failure("/second/t-{}/000", WRITE, errno.EIO, append),
    "sync of an append": Failure("/second/t-{}/000", SYNC, errno.EIO, append),
    "roll, no file": Failure("/second/t-{}/000", CREATE, errno.ENOSPC, append_until_roll),
    "roll, no snapshot": Failure("/second/t-{}/00000000000000000004.snapshot", CREATE, errno.EIO, append_until_roll),
    "checkpoint, full": Failure("/second/recovery-point-offset-checkpoint", WRITE, errno.ENOSPC, wait_for_checkpoint),
    "checkpoint, rename": Failure("/second/replication-offset-checkpoint", RENAME, errno.EIO, wait_for_checkpoint),
    "creation": Failure("/second/new-", RENAME, errno.ENOSPC, create_topic),
    "creation, partition.metadata": Failure("/second/new-", WRITE, errno.ENOSPC, create_topic),
    "deletion": Failure("/second/t-{}", RENAME, errno.EIO, create_and_delete),
}


@pytest.mark.parametrize("name", FAILURES)
def test_one_of_two_directories_fails(name: str, harness: Harness) -> None:
    path, operations, error, trigger = FAILURES[name]
    harness.begin()
    index = harness.partition_in(harness.log_dirs[1])
    harness.disk.fail(path.format(index), operations, error)
    if "checkpoint" in path:
        assert harness.produce(index) is Error.NONE  # makes sure that there is something to checkpoint
    trigger(harness, index)
    assert harness.disk.hits > 0
    harness.disk.fail("/second/", EVERY_CHANGE, error)
    assert [line for line in harness.errors() if "Stopping serving logs in dir" in line and os.strerror(error) in line]
    if "t" in harness.witness.topics:
        assert harness.produce(index) is Error.KAFKA_STORAGE_ERROR
        assert harness.produce(1 - index) is Error.NONE
        assert harness.witness.grow("t", 4) is Error.NONE
        assert harness.produce(3) is Error.NONE
    assert harness.witness.create("later", 2) is Error.NONE
    assert harness.witness.produce("later", 0, b"value") is Error.NONE
    assert harness.witness.produce("later", 1, b"value") is Error.NONE
    harness.stop_and_heal()
    harness.check()


@pytest.mark.parametrize("is_in_memory", [True, False], ids=["while it is open", "after a restart"])
def test_reading_fails(is_in_memory: bool, harness: Harness) -> None:
    """A consumer receives the error or no answer, never wrong data; the broker and its other directory continue."""
    harness.begin()
    index = harness.partition_in(harness.log_dirs[1])
    for _ in range(5):
        assert harness.produce(index, LARGE) is Error.NONE
    if not is_in_memory:
        harness.broker.stop()
        harness.start()
    (topic_id,) = harness.witness.topic_ids().values()
    harness.disk.fail("/second/t-", READ, errno.EIO)
    with pytest.raises((NoAnswer, AssertionError), match=r"KAFKA_STORAGE_ERROR|^$"):
        harness.witness.read(topic_id, index)
    assert harness.disk.hits > 0
    harness.witness.connect(harness.broker.port)
    assert len(harness.witness.read(topic_id, 1 - index)) == 1
    assert harness.produce(1 - index) is Error.NONE
    harness.stop_and_heal()
    harness.check()


# -- the directory without which there is no broker ----------------------------------------------------------------


FATAL_FAILURES = {
    "metadata append, full": ("/first/__cluster_metadata-0/000", WRITE, errno.ENOSPC, "appending to the metadata log"),
    "metadata append, sync": ("/first/__cluster_metadata-0/000", SYNC, errno.EIO, "appending to the metadata log"),
    "metadata snapshot": ("/first/__cluster_metadata-0/", CREATE, errno.ENOSPC, "writing a metadata snapshot"),
    "append beside the metadata log": ("/first/t-{}/000", WRITE, errno.ENOSPC, "the metadata log's directory"),
}


@pytest.mark.parametrize("name", FATAL_FAILURES)
def test_the_directory_of_the_metadata_log_fails(name: str, harness: Harness) -> None:
    """The process ends with status 1, as Apache Kafka does; records that it had not acknowledged may exist or not."""
    path, operations, error, reason = FATAL_FAILURES[name]
    harness.begin()
    index = harness.partition_in(harness.log_dirs[0])
    harness.disk.fail(path.format(index), operations, error)
    answer = Error.NONE
    try:
        while answer is Error.NONE:  # the metadata snapshot is written after some topics
            topic = f"new-{len(harness.witness.topics)}"
            answer = harness.produce(index) if "append beside" in name else harness.witness.create(topic)
        assert answer is Error.KAFKA_STORAGE_ERROR or harness.witness.maybe
    except NoAnswer:
        assert harness.disk.hits > 0
    assert_fatal(harness, reason, os.strerror(error))
    harness.disk.heal()
    harness.check()


def assert_fatal(harness: Harness, *reasons: str) -> None:
    """Checks that the broker ended by itself, with status 1 and one line that names the reason."""
    assert harness.broker.process is not None
    assert harness.broker.process.wait(harness.broker.stop_timeout_s) == 1
    (line,) = [line for line in harness.errors() if "Fatal error, the node stops" in line]
    assert all(reason in line for reason in reasons), line
    assert "Traceback" not in harness.broker.log()


def test_the_last_directory_fails(tmp_path: Path, library: Path) -> None:
    harness = Harness(tmp_path, library, {"log.dirs": str(tmp_path / "first")})
    harness.log_dirs.pop()
    harness.begin()
    harness.disk.fail("/first/t-1/", WRITE, errno.ENOSPC)
    try:
        harness.produce(1)
    except NoAnswer:
        assert harness.disk.hits > 0
    assert_fatal(harness, "all log directories have failed", os.strerror(errno.ENOSPC))
    harness.disk.heal()
    harness.check()


# -- while it starts, while it stops -------------------------------------------------------------------------------


@pytest.mark.parametrize("kill", [False, True], ids=["after a stop", "after a kill"])
def test_a_directory_that_cannot_be_read_at_start(kill: bool, harness: Harness) -> None:
    """The other partitions are served, no empty log replaces the unreadable one, and its records are read later."""
    harness.begin()
    index = harness.partition_in(harness.log_dirs[1])
    harness.broker.kill() if kill else harness.broker.stop()
    harness.disk.fail("/second/.lock" if kill else "/second/t-", CREATE | READ, errno.EIO)
    if not kill:
        harness.log_dirs[1].joinpath(".kafka_cleanshutdown").unlink()  # so that the log is read
    harness.start()
    assert harness.disk.hits > 0
    assert harness.produce(index) is Error.KAFKA_STORAGE_ERROR
    assert harness.produce(1 - index) is Error.NONE
    assert harness.witness.grow("t", 4) is Error.NONE
    assert harness.broker.stop() == 0
    assert f"t-{index}" not in os.listdir(harness.log_dirs[0])
    harness.disk.heal()
    harness.check()


def test_the_first_directory_cannot_be_read_at_start(harness: Harness) -> None:
    harness.begin()
    assert harness.broker.stop() == 0
    harness.disk.fail("/first/.lock", CREATE, errno.EACCES)
    with pytest.raises(AssertionError, match="exit 1"):
        harness.broker.start()
    assert "Traceback" not in harness.broker.log()
    last = harness.broker.log().splitlines()[-1]
    assert "the metadata log's directory" in last
    assert os.strerror(errno.EACCES) in last
    harness.disk.heal()
    harness.check()


@pytest.mark.parametrize("directory", ["first", "second"])
def test_a_disk_that_fails_at_a_clean_stop(directory: str, harness: Harness) -> None:
    """The broker leaves no clean-shutdown marker in a directory that it could not write: the next start recovers."""
    harness.begin()
    harness.disk.fail(f"/{directory}/t-", SYNC | WRITE | CREATE, errno.EIO)
    status = harness.broker.stop()
    assert harness.disk.hits > 0
    assert status == (1 if directory == "first" else 0)
    assert not (harness.log_dirs[directory == "second"] / ".kafka_cleanshutdown").exists()
    harness.disk.heal()
    harness.check()


# -- a disk that is really full ------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mounts a file system of 20 MB and returns its path."""
    path = tmp_path / "second"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(path)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small tmpfs can only be mounted by root; the preloaded library has stood in for it above")
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def test_a_full_disk(small_disk: Path, harness: Harness) -> None:
    """The disk fills up while segments are rolled; after it was enlarged all acknowledged records exist."""
    harness.begin()
    index = harness.partition_in(small_disk)
    filled = 0
    while harness.produce(index, os.urandom(100_000)) is Error.NONE:
        filled += 1
    assert filled > 100
    assert [line for line in harness.errors() if "Stopping serving logs in dir" in line and "No space left" in line]
    assert harness.produce(1 - index) is Error.NONE
    assert harness.broker.stop() == 0
    subprocess.run(["mount", "-o", "remount,size=100m", str(small_disk)], check=True)
    harness.check()


def test_a_disk_that_fills_up_at_every_place(small_disk: Path, harness: Harness) -> None:
    """Each round leaves slightly less space, so that a batch, an index or a snapshot is the first that does not fit."""
    harness.begin()
    index = harness.partition_in(small_disk)
    ballast = small_disk / "ballast"
    for free in (0, 1, 2, 3, 5, 9):
        room = shutil.disk_usage(small_disk).free - 1_300_000 - free * 4096
        ballast.write_bytes(bytes(room))
        while harness.produce(index, os.urandom(97_000)) is Error.NONE:
            pass
        assert harness.broker.kill() < 0
        ballast.unlink()
        harness.start()
        harness.witness.check()
    assert harness.broker.stop() == 0
    harness.check()


def fill_up(ballast: Path) -> None:
    """Fills the disk to the last page, while the broker may write too."""
    with ballast.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(bytes(1 << 16))
            except OSError as error:
                if error.errno == errno.ENOSPC:
                    return
                raise


def test_a_disk_that_is_full_at_a_checkpoint(small_disk: Path, harness: Harness) -> None:
    """A record still fits into the segment's last page; the recovery point checkpoint does not fit."""
    harness.begin()
    index = harness.partition_in(small_disk)
    fill_up(small_disk / "ballast")
    assert harness.produce(index) is Error.NONE
    wait_until_offline(harness)
    assert [line for line in harness.errors() if "Stopping serving logs in dir" in line and "No space left" in line]
    assert harness.produce(index) is Error.KAFKA_STORAGE_ERROR and harness.produce(1 - index) is Error.NONE
    assert harness.broker.stop() == 0
    (small_disk / "ballast").unlink()
    harness.check()


def test_a_disk_that_fills_up_during_cleaning(small_disk: Path, tmp_path: Path, library: Path) -> None:
    """The disk has no room for the cleaned segments, and the old segments remain."""
    settings = {"log.cleaner.backoff.ms": "100", "log.cleaner.min.cleanable.ratio": "0.01"}
    filling = Harness(tmp_path, library, {**settings, "log.cleaner.enable": "false"})
    filling.start()
    filling.witness.become_producer()
    assert filling.witness.create("t", 2, cleanup_policy="compact") is Error.NONE
    index = filling.partition_in(small_disk)
    for _ in range(80):
        assert filling.produce(index, os.urandom(100_000)) is Error.NONE
    assert filling.produce(1 - index) is Error.NONE
    assert filling.broker.stop() == 0
    (small_disk / "ballast").write_bytes(bytes(shutil.disk_usage(small_disk).free - 4_000_000))
    harness = Harness(tmp_path, library, settings)
    harness.witness = filling.witness
    harness.start()
    wait_until_offline(harness)
    assert [line for line in harness.errors() if "Stopping serving logs in dir" in line and "No space left" in line]
    assert harness.produce(1 - index) is Error.NONE
    assert harness.broker.stop() == 0
    (small_disk / "ballast").unlink()
    harness.check()
