"""Programs of other projects as processes: their jars from Maven, and what they have written to a server."""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kafkapy.client import Consumer, ConsumerRecord, TopicPartition
from kafkapy.client.admin import Admin, NewTopic
from tests.package_managers import fetch, made_once
from tests.peers import LOG4J, LOG4J2, MAVEN, peers_directory
from tests.server_process import ServerProcess

WAIT_S = 300.0
MEMORY = ("-Xmx384M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
RUNS_ANYWHERE = re.compile("")


def maven_jars(name: str, *artifacts: str) -> Path:
    """Returns the folder with the jars of `group:name:version[:classifier]` and of what they need.

    Maven fetches them once for each list of artifacts.
    """
    directory = peers_directory() / f"{name}-{zlib.crc32(' '.join(artifacts).encode()):08x}"

    def make() -> None:
        pom = directory / "pom.xml"
        pom.write_text(_pom(name, artifacts))
        command = [*MAVEN, "-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime"]
        fetch([*command, f"-DoutputDirectory={directory}"])

    return made_once(directory, make)


def _pom(name: str, artifacts: Sequence[str]) -> str:
    lines = ["<project><modelVersion>4.0.0</modelVersion><groupId>kafkapy</groupId>"]
    lines += [f"<artifactId>{name}</artifactId><version>1</version><dependencies>"]
    for artifact in artifacts:
        words = zip(("groupId", "artifactId", "version", "classifier"), artifact.split(":"), strict=False)
        lines.append(f"<dependency>{''.join(f'<{tag}>{word}</{tag}>' for tag, word in words)}</dependency>")
    return "\n".join([*lines, "</dependencies></project>"])


class JavaProgram(ServerProcess):
    """A Java program, whose output `log()` returns. It is ready when it has printed a line that matches `ready`.

    At the end of a `with` block the program is killed if it still runs; the test has checked its results by then.
    """

    start_timeout_s = WAIT_S
    stop_timeout_s = 120.0

    def __init__(
        self,
        directory: Path,
        class_path: Path | str,
        main: str,
        *arguments: str,
        ready: str = "",
        options: Sequence[str] = (),
    ) -> None:
        super().__init__(directory, None)
        self.ready_line = re.compile(ready)
        self._class_path = f"{class_path}/*" if isinstance(class_path, Path) else class_path
        self._main = (main, *arguments)
        self._options = tuple(options)
        (directory / "log4j.properties").write_text(LOG4J)
        (directory / "log4j2.yaml").write_text(LOG4J2)

    def command(self) -> list[str]:
        log4j = f"-Dlog4j.configuration=file:{self.directory / 'log4j.properties'}"
        log4j2 = f"-Dlog4j2.configurationFile={self.directory / 'log4j2.yaml'}"
        simple = "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"
        return ["java", *MEMORY, log4j, log4j2, simple, *self._options, "-cp", self._class_path, *self._main]

    def result(self, timeout_s: float = WAIT_S) -> int:
        """Waits for the program's end; returns its exit status."""
        assert self.process is not None, "the program was not started"
        return self.process.wait(timeout_s)

    def wait_for(self, text: str) -> None:
        """Waits until the program has printed the text."""
        wait_until(lambda: text in self.log(), lambda: f"{text!r} is not in {self.log()[-8000:]}", self)

    def __exit__(self, *error: object) -> None:
        if self.is_running:
            self.kill()


def write_properties(path: Path, settings: Mapping[str, str]) -> Path:
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return path


def wait_until(
    is_done: Callable[[], object], message: Callable[[], object] = lambda: "", program: JavaProgram | None = None
) -> None:
    """Waits until the condition holds. Raises AssertionError after WAIT_S, or when `program` has ended before."""
    deadline = time.monotonic() + WAIT_S
    while not is_done():
        if program is not None and not program.is_running and not is_done():
            raise AssertionError(f"the program has ended: {message()}")
        assert time.monotonic() < deadline, f"nothing for {WAIT_S} s: {message()}"
        time.sleep(0.05)


def create_topics(bootstrap: str, topics: Mapping[str, int], configs: Mapping[str, str] | None = None) -> None:
    """Creates topics with the given numbers of partitions and one replica."""
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        new = [NewTopic(name, partitions, 1, configs=dict(configs or {})) for name, partitions in topics.items()]
        admin.create_topics(new).check()


class TopicReader:
    """Everything that a topic holds, as far as transactions are committed; `records` grows by `read`."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings = {"auto.offset.reset": "earliest", "isolation.level": "read_committed"}
        settings["allow.auto.create.topics"] = "false"
        self._consumer = Consumer({"bootstrap.servers": bootstrap, **settings})
        self._topic = topic
        self.records: list[ConsumerRecord] = []

    def read(self) -> list[ConsumerRecord]:
        """Waits shortly for further records; returns all records so far."""
        found = [*self._consumer.poll(0.2)] if self._consumer.assignment() else []
        self.records += found
        if not found:  # the topic may have been created or may have grown
            partitions = self._consumer.partitions_for(self._topic)
            self._consumer.assign([TopicPartition(self._topic, info.partition) for info in partitions])
        return self.records

    @property
    def values(self) -> list[bytes]:
        return [record.value for record in self.records]

    def read_all(self) -> None:
        """Reads until the ends of the partitions at the time of the call."""
        ends = self._consumer.end_offsets(
            TopicPartition(self._topic, info.partition) for info in self._consumer.partitions_for(self._topic)
        )

        def is_at_end() -> bool:
            self.read()
            return all(self._consumer.position(each) >= end for each, end in ends.items())

        self.read()
        wait_until(is_at_end, lambda: f"{len(self.records)} records in {self._topic}, whose ends are {ends}")

    def wait_for(self, count: int) -> None:
        """Reads until the topic has held `count` records."""
        wait_until(
            lambda: len(self.read()) >= count, lambda: f"{len(self.records)} of {count} records in {self._topic}"
        )

    def __enter__(self) -> TopicReader:
        return self

    def __exit__(self, *error: object) -> None:
        self._consumer.close()
