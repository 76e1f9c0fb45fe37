"""A chain of consume, transform and produce in transactions whose application and broker are killed at random."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from tests.clients.conftest import create_topic
from tests.server_process import ServerProcess

SOURCE, TARGET, GROUP, TRANSACTIONAL_ID = "source", "target", "chain", "chain"
PARTITIONS = 2
INPUTS_BETWEEN_KILLS = 100
DEADLINE_SECONDS = 120
FENCED = 3
FOLDER = Path(__file__).parent
# Settings with which the broker soon removes a dead member and aborts the transaction of a dead producer.
PROPERTIES = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
}


def librdkafka_command() -> list[str]:
    return [sys.executable, str(FOLDER / "chain_application.py")]


def java_command(jars: Path, classes: Path) -> list[str]:
    """Compiles the application into the empty directory `classes`; returns the command that runs it."""
    compiler = ["javac", "-nowarn", "-proc:none", "-cp", f"{jars}/*", "-d", str(classes), str(FOLDER / "Chain.java")]
    subprocess.run(compiler, check=True, capture_output=True, timeout=DEADLINE_SECONDS)
    options = ["-Xmx128M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    return ["java", *options, "-cp", f"{classes}:{jars}/*", "Chain"]


class Application:
    """A process that runs the application until it ends or is killed."""

    def __init__(self, command: list[str], bootstrap: str, log: Path) -> None:
        self._log = log
        with log.open("wb") as output:
            arguments = [bootstrap, SOURCE, TARGET, GROUP, TRANSACTIONAL_ID]
            self.process = subprocess.Popen([*command, *arguments], stdout=output, stderr=subprocess.STDOUT)

    @property
    def committed(self) -> int:
        """The number of transactions that the process has committed."""
        return self._log.read_bytes().count(b"committed ")

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def end(self, number: signal.Signals = signal.SIGKILL) -> int:
        self.process.send_signal(number)
        return self.process.wait(DEADLINE_SECONDS)

    def last_words(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]


class Chain:
    """Owns the input records, the current application and, at times, a zombie (see `_make_zombie`).

    In the end a read_committed reader must find every input exactly once in the target, in its partition's order.
    """

    def __init__(self, broker: ServerProcess, command: list[str], directory: Path, seed: int) -> None:
        self.broker = broker
        self.fenced = 0
        self._command = command
        self._directory = directory
        self._chance = random.Random(seed)
        self._lives = 0
        self._inputs = 0
        create_topic(broker.bootstrap, SOURCE, PARTITIONS)
        create_topic(broker.bootstrap, TARGET, PARTITIONS)
        self._application = self._new_life()

    def run(self, kills: int) -> None:
        """Kills the broker, kills the application, and makes a zombie, in turn, each at a random moment."""
        turns = [self._kill_broker, self._kill_application, self._make_zombie]
        try:
            for number in range(kills):
                self._feed()
                self._work_until_progress()
                time.sleep(self._chance.uniform(0, 0.2))  # kills at a random moment
                turns[number % len(turns)]()
            self._finish()
        finally:
            self._application.end()

    def _new_life(self) -> Application:
        self._lives += 1
        log = self._directory / f"application-{self._lives}.log"
        return Application(self._command, self.broker.bootstrap, log)

    def _feed(self) -> None:
        writer = Producer({"bootstrap.servers": self.broker.bootstrap, "enable.idempotence": True})
        for number in range(self._inputs, self._inputs + INPUTS_BETWEEN_KILLS):
            writer.produce(SOURCE, b"%d" % number, partition=number % PARTITIONS)
        assert writer.flush(DEADLINE_SECONDS) == 0
        self._inputs += INPUTS_BETWEEN_KILLS

    def _work_until_progress(self) -> None:
        before = self._application.committed

        def has_progress() -> bool:
            nonlocal before
            if self._application.has_ended:  # after an error, such as an expired session
                self._application = self._new_life()
                before = 0
            return self._application.committed > before

        self._wait(has_progress, "nothing was committed")

    def _kill_broker(self) -> None:
        self.broker.kill()
        self.broker.start()

    def _kill_application(self) -> None:
        self._application.end()
        self._application = self._new_life()

    def _make_zombie(self) -> None:
        """Freezes the application until a second one has taken over; the broker must then refuse its requests."""
        zombie = self._application
        zombie.process.send_signal(signal.SIGSTOP)
        try:
            self._application = self._new_life()
            self._feed()
            self._work_until_progress()
            zombie.process.send_signal(signal.SIGCONT)

            def is_gone() -> bool:
                if not zombie.has_ended:
                    self._feed()  # the zombie may own a partition again and needs records to fail on
                return zombie.has_ended

            self._wait(is_gone, "a zombie lives")
            self.fenced += zombie.process.returncode == FENCED
        finally:
            if not zombie.has_ended:
                zombie.end()

    def _finish(self) -> None:
        expected = [
            [b"done %d" % number for number in range(partition, self._inputs, PARTITIONS)]
            for partition in range(PARTITIONS)
        ]
        count = 0

        def is_done() -> bool:
            nonlocal count
            if self._application.has_ended:
                self._application = self._new_life()
            count = sum(len(read_committed(self.broker.bootstrap, TARGET, number)) for number in range(PARTITIONS))
            return count >= self._inputs

        self._wait(is_done, "inputs are missing")
        for partition, values in enumerate(expected):
            assert read_committed(self.broker.bootstrap, TARGET, partition) == values, partition

    def _wait(self, is_true: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not is_true():
            log = self.broker.log()[-2000:]
            assert time.monotonic() < deadline, f"{what}:\n{self._application.last_words()}\n{log}"
            time.sleep(0.05)


def read_committed(bootstrap: str, topic: str, partition: int) -> list[bytes]:
    """Returns all values before the last stable offset."""
    settings = {"isolation.level": "read_committed", "enable.partition.eof": True, "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", **settings})
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    values: list[bytes] = []
    try:
        while True:
            for message in consumer.consume(500, 0.05):
                error = message.error()
                if error is None:
                    values.append(message.value())
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    return values
    finally:
        consumer.close()
