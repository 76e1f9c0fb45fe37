"""A disk that is full or broken: what was acknowledged stays, what was not is refused, the rest of the broker goes on.

The calls of the broker's process fail by a preloaded library (failing_disk.c); a full tmpfs does the same for real
where it can be mounted.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kafkapy.errors import Error
from tests.broker_process import BrokerProcess
from tests.crash.failing_disk import CREATE, EVERY_CHANGE, RENAME, SYNC, WRITE, FailingDisk, build
from tests.crash.witness import Witness

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


class World:
    """A broker with two log directories on a disk that can fail; `t` has a partition in each."""

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
        """On a healthy disk everything is there, stays there over a restart, and more can be written."""
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
def world(tmp_path: Path, library: Path) -> Iterator[World]:
    made = World(tmp_path, library)
    yield made
    if made.broker.is_running:
        made.broker.kill()


# -- one of two directories ----------------------------------------------------------------------------------------


class Failure(NamedTuple):
    """Calls that fail on a path (`{}` is the partition's number), and what makes the broker call them."""

    path: str
    operations: int
    error: int
    trigger: Callable[[World, int], None]


def append(world: World, index: int) -> None:
    assert world.produce(index) is Error.KAFKA_STORAGE_ERROR


def append_until_roll(world: World, index: int) -> None:
    for _ in range(5):
        if world.produce(index, LARGE) is not Error.NONE:
            return
    raise AssertionError("the segment did not roll")


def wait_for_checkpoint(world: World, index: int) -> None:
    wait_until_offline(world)


def create_and_delete(world: World, index: int) -> None:
    assert world.witness.delete("t") is Error.NONE
    wait_until_offline(world)


def create_topic(world: World, index: int) -> None:
    """Acknowledged, as the metadata has it; the partition goes to the directory that works."""
    assert world.witness.create("new", 2) is Error.NONE


def wait_until_offline(world: World) -> None:
    for _ in range(1000):
        if "Stopping serving logs in dir" in world.broker.log():
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
def test_one_of_two_directories_fails(name: str, world: World) -> None:
    path, operations, error, trigger = FAILURES[name]
    world.begin()
    index = world.partition_in(world.log_dirs[1])
    world.disk.fail(path.format(index), operations, error)
    if "checkpoint" in path:
        assert world.produce(index) is Error.NONE  # there is something to checkpoint
    trigger(world, index)
    assert world.disk.hits > 0
    world.disk.fail("/second/", EVERY_CHANGE, error)
    assert [line for line in world.errors() if "Stopping serving logs in dir" in line and os.strerror(error) in line]
    if "t" in world.witness.topics:
        assert world.produce(index) is Error.KAFKA_STORAGE_ERROR
        assert world.produce(1 - index) is Error.NONE
        assert world.witness.grow("t", 4) is Error.NONE
        assert world.produce(3) is Error.NONE
    assert world.witness.create("later", 2) is Error.NONE
    assert world.witness.produce("later", 0, b"value") is Error.NONE
    assert world.witness.produce("later", 1, b"value") is Error.NONE
    world.stop_and_heal()
    world.check()
