"""Members of share groups that are consumers of Java or of librdkafka, several in one process that can be killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from kafkapy.client import Producer
from kafkapy.client.admin import Admin, ConfigChange, ConfigResource, NewTopic, ResourceType

ROOT = Path(__file__).parents[2]
SOURCE = Path(__file__).with_name("ShareDriver.java")
JAVA_OPTIONS = (
    "-Xmx384M",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)
WAIT_S = 60
# The properties of a broker whose share groups react quickly.
PROPERTIES = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.assignment.interval.ms": "0",
    "group.share.min.record.lock.duration.ms": "1000",
}


class Record(NamedTuple):
    """A record that was delivered."""

    partition: int
    offset: int
    delivery_count: int
    value: str


def java_command(kafka: Path, classes: Path) -> list[str]:
    """Compiles the driver into `classes`; returns the words that run it."""
    classes.mkdir(parents=True, exist_ok=True)
    compiler = ["javac", "-nowarn", "-proc:none", "-cp", f"{kafka}/libs/*", "-d", str(classes), str(SOURCE)]
    subprocess.run(compiler, check=True, capture_output=True, timeout=120)
    return ["java", *JAVA_OPTIONS, "-cp", f"{classes}:{kafka}/libs/*", "ShareDriver"]


def librdkafka_command() -> list[str]:
    return [sys.executable, "-m", "tests.clients.share_driver"]


class Driver:
    """A process with members of share groups; a context manager that kills it."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = list(command)
        self._log = log

    def __enter__(self) -> Self:
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """Ends the process by SIGKILL, so that its members do not leave the group."""
        self._process.kill()
        self._process.communicate()

    def ask(self, *words: object) -> Any:
        """Sends a command and returns its answer. Raises AssertionError, with the process's output, if the process has
        ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, self._log.read_text()[-4000:]
        return json.loads(line)


class Member:
    """A share consumer with explicit acknowledgements, which runs in the process of `driver`."""

    def __init__(self, driver: Driver, queue: Queue, *, topics: Iterable[str] | None = None, **settings: str) -> None:
        self._driver = driver
        self._topic = queue.topic
        self._name = f"member-{uuid.uuid4()}"
        own = {
            "bootstrap.servers": queue.bootstrap,
            "group.id": queue.group,
            "share.acknowledgement.mode": "explicit",
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
        driver.ask("open", self._name, *(f"{key}={value}" for key, value in own.items()))
        self.subscribe(*([queue.topic] if topics is None else topics))

    def subscribe(self, *topics: str) -> None:
        self._driver.ask("subscribe", self._name, *topics)

    def poll(self, seconds: float) -> list[Record]:
        return [Record(*each) for each in self._driver.ask("poll", self._name, int(seconds * 1000))]

    def read(self, count: int) -> list[Record]:
        """Polls until one poll returns records, which must be `count`."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            if records := self.poll(1):
                assert len(records) == count, records
                return records
        raise AssertionError(f"no record within {WAIT_S} s")

    def acknowledge(self, record: Record, kind: str = "ACCEPT") -> None:
        self._driver.ask("ack", self._name, self._topic, record.partition, record.offset, kind)

    def commit(self) -> dict[int, str]:
        """Sends the acknowledgements; returns the name of the error of each partition, or an empty text."""
        return {int(partition): error for partition, error in self._driver.ask("commit", self._name).items()}

    def finish(self, records: Iterable[Record], kind: str = "ACCEPT") -> None:
        """Acknowledges the records and commits, without an error."""
        for record in records:
            self.acknowledge(record, kind)
        assert not any(self.commit().values())

    def close(self) -> None:
        self._driver.ask("close", self._name)


class Queue:
    """A topic of its own and the share group that reads it from its beginning, with a short acquisition lock."""

    def __init__(self, bootstrap: str, partitions: int = 1, replicas: int = 1, **group: str) -> None:
        self.bootstrap = bootstrap
        self.topic = f"topic-{uuid.uuid4()}"
        self.group = f"group-{self.topic}"
        keys = {key.replace("_", "."): value for key, value in group.items()}
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_topics([NewTopic(self.topic, partitions, replicas)]).check()
            changes = [
                ConfigChange(key, value) for key, value in {"share.auto.offset.reset": "earliest", **keys}.items()
            ]
            admin.incremental_alter_configs({ConfigResource(ResourceType.GROUP, self.group): changes}).check()

    def send(self, *values: str, partitions: int = 1) -> None:
        """Appends the records, each as a batch of its own."""
        with Producer(bootstrap_servers=self.bootstrap, batch_size=1) as producer:
            for number, value in enumerate(values):
                producer.send(self.topic, value, partition=number % partitions)
