"""The life of a broker in which the power fails: afterwards everything that was acknowledged to a client must exist.

The broker works on a filesystem that remembers what was synced (tests/lossy_filesystem.py), with
`log.flush.interval.messages=1`: an acknowledged record must then be as durable as a created topic.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterable
from pathlib import Path

from kafkapy.errors import Error
from tests.crash.broker_thread import BrokerThread, threads_may_lose_power
from tests.crash.index_check import check_log_directory
from tests.crash.witness import NoAnswer, Witness
from tests.lossy_filesystem import LossyFilesystem, PowerFailure

LARGE = 350_000  # three of them fill a segment
Step = Callable[[Witness, BrokerThread, random.Random], None]


def create(witness: Witness, broker: BrokerThread, chance: random.Random) -> None:
    name = f"topic-{chance.randrange(6)}"
    if name in witness.topics:
        expect(witness.delete(name))
    expect(witness.create(name, chance.randint(1, 3), retention_ms=str(chance.randrange(1 << 40))))


def delete(witness: Witness, broker: BrokerThread, chance: random.Random) -> None:
    if witness.topics:
        expect(witness.delete(chance.choice(sorted(witness.topics))))


def alter(witness: Witness, broker: BrokerThread, chance: random.Random) -> None:
    if witness.topics:
        name = chance.choice(sorted(witness.topics))
        expect(witness.alter(name, "retention.ms", str(chance.randrange(1 << 40))))


def grow(witness: Witness, broker: BrokerThread, chance: random.Random) -> None:
    if witness.topics:
        name = chance.choice(sorted(witness.topics))
        expect(witness.grow(name, len(witness.topics[name].partitions) + 1))


def produce(witness: Witness, broker: BrokerThread, chance: random.Random) -> None:
    """Sends some requests to each partition of a topic; the large ones roll segments."""
    if not witness.topics:
        return
    name = chance.choice(sorted(witness.topics))
    size = chance.choice((10, 10, 3000, LARGE))
    for number in range(chance.randint(1, 4)):
        for index in witness.topics[name].partitions:
            value = f"{name}-{index}-{number}:".encode().ljust(size, b"v")
            expect(witness.produce(name, index, value, 1 if size == LARGE else chance.randint(1, 5)))


def checkpoint(witness: Witness, broker: BrokerThread, chance: random.Random) -> None:
    """Writes the checkpoints, as the background work does periodically."""
    try:
        broker.broker.log_manager.checkpoints.write_recovery_points()
        broker.broker.log_manager.checkpoints.write_log_start_offsets()
        broker.broker.parts.replica_manager.checkpoint_high_watermarks()
    except PowerFailure as error:
        raise NoAnswer from error


def roll(witness: Witness, broker: BrokerThread, chance: random.Random) -> None:
    """Writes two full segments and the beginning of a third one."""
    name = sorted(witness.topics)[0]
    for number in range(7):
        expect(witness.produce(name, 0, f"{name}-{number}:".encode().ljust(LARGE, b"v")))


def expect(error: Error) -> None:
    if error is not Error.NONE:
        raise NoAnswer(error)


STEPS: tuple[Step, ...] = (create, create, produce, produce, produce, produce, checkpoint, alter, grow, delete)
# All steps that sync, in a fixed order, for the series that ends at each sync in turn.
WHOLE_LIFE: tuple[Step, ...] = (create, produce, create, roll, checkpoint, alter, grow, produce, delete, roll, create)


class Harness:
    """A directory that passes through several power failures, and what its brokers have acknowledged to clients.

    Owns the filesystem; `close` closes it.
    """

    def __init__(self, folder: Path, seed: int, *, log_dirs: int = 1) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.witness = Witness()
        self.lives = 0
        self._names = [f"log-dir-{number}" for number in range(log_dirs)]
        self.directory = folder / "life-0"
        self.directory.mkdir(parents=True)
        self._filesystem = LossyFilesystem(str(self.directory), on_failure=self.witness.hang_up)

    @property
    def log_dirs(self) -> list[Path]:
        return [self.directory / name for name in self._names]

    def any_steps(self, count: int) -> list[Step]:
        return [create, *(self.chance.choice(STEPS) for _ in range(count))]

    def live(self, end_at: int | None, steps: Iterable[Step], *, killed: bool = False, by_chance: bool = False) -> int:
        """Runs a broker from its start to its clean stop, unless the power fails at its sync number `end_at`.

        Afterwards the harness has the directory that survived, which may contain more than was synced with `by_chance`.
        With `killed` only the process ends: its writes are neither lost nor durable. Returns the number of syncs.
        """
        filesystem, before = self._filesystem, self._filesystem.syncs
        filesystem.fail_at = None if end_at is None else before + end_at
        print(f"life {self.lives}: ends at sync {end_at}{', killed' if killed else ''}")
        with threads_may_lose_power():
            status = self._live(steps)
        failed = filesystem.fail_at is not None and filesystem.syncs >= filesystem.fail_at
        assert failed or status == 0
        if not killed:
            self._survive(by_chance)
        return filesystem.syncs - before

    def _live(self, steps: Iterable[Step]) -> int | None:
        """Runs the broker. Returns its exit status, or None if it was interrupted."""
        broker = BrokerThread(self.log_dirs, self._filesystem)
        try:
            if broker.start():
                self.witness.connect(broker.port)
                self._work(broker, steps)
            else:
                assert isinstance(broker.failure, PowerFailure), f"refused to start: {broker.failure!r}"
        finally:
            status = broker.stop()
        return status

    def _survive(self, by_chance: bool) -> None:
        self.lives += 1
        survived = self.folder / f"life-{self.lives}"
        self._filesystem.pull_the_plug(str(survived), self.chance if by_chance else None)
        self._filesystem.close()
        self.directory = survived
        self._filesystem = LossyFilesystem(str(survived), on_failure=self.witness.hang_up)

    def _work(self, broker: BrokerThread, steps: Iterable[Step]) -> None:
        try:
            self.witness.check()
            self.witness.become_producer()
            for step in steps:
                step(self.witness, broker, self.chance)
        except NoAnswer:
            return

    def check(self) -> None:
        """Opens the surviving directory twice on a healthy disk, and checks that everything acknowledged exists."""
        self._filesystem.fail_at = None
        for _ in range(2):
            broker = BrokerThread(self.log_dirs, self._filesystem)
            try:
                assert broker.start(), f"refused to start: {broker.failure!r}"
                self.witness.connect(broker.port)
                self.witness.check()
            finally:
                status = broker.stop()
            assert status == 0
            for log_dir in self.log_dirs:
                check_log_directory(log_dir)
                check_strays(log_dir)

    def close(self) -> None:
        self._filesystem.close()
        gc.collect()


def check_strays(log_dir: Path) -> None:
    """Checks that each stray is left by an unfinished deletion, so that no partition has the same topic id."""
    for path in log_dir.glob("*-stray"):
        topic_id = (path / "partition.metadata").read_text()
        name = path.name.partition(".")[0]
        twin = log_dir / name / "partition.metadata"
        assert not twin.exists() or twin.read_text() != topic_id, path
