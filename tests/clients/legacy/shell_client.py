"""The Scala shells of Apache Kafka 0.10.1.1. They support only text, and choose partitions and timestamps."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.clients.client import Client
from tests.clients.legacy.installation import java_command, java_jars
from tests.clients.records import SentRecord

TIMEOUT_SECONDS = 180
RELEASE = "0.10.1.1"
UNKNOWN_PARTITION = -1
LOGGING = """\
log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
SHOWN = ("--property", "print.key=true", "--property", "print.timestamp=true")


class _ShellClient(Client):
    """A shell, which chooses its group itself. The logging configuration is written to `directory`."""

    producer_arguments: tuple[str, ...] = ()

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self._logging = directory / f"{name}.log4j.properties"
        self._logging.write_text(LOGGING)

    def produce(self, bootstrap: str, topic: str, codec: str, records: Sequence[SentRecord]) -> None:
        lines = "".join(f"{_text(record.key)}\t{_text(record.value)}\n" for record in records)
        errors = self._run(
            "kafka.tools.ConsoleProducer",
            *(
                "--broker-list",
                bootstrap,
                "--topic",
                topic,
                "--compression-codec",
                codec,
                "--property",
                "parse.key=true",
            ),
            *("--request-required-acks", "-1", *self.producer_arguments),
            lines=lines,
        ).stderr
        # the exit code is always 0
        assert " ERROR " not in errors, errors[-4000:]

    def _run(self, class_name: str, *arguments: str, lines: str = "") -> subprocess.CompletedProcess[str]:
        jars = java_jars("kafka_2.11", RELEASE)
        options = [f"-Dlog4j.configuration=file:{self._logging}", "-cp", f"{jars}/*"]
        done = subprocess.run(
            [*java_command(), *options, class_name, *arguments],
            input=lines,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return done


class OldShells(_ShellClient):
    """The producer and the consumer of 0.8, written in Scala."""

    producer_arguments = ("--old-producer",)

    def consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[SentRecord]:
        """Reads all records, partition after partition."""
        received = []
        for partition in range(partitions):
            output = self._run(
                "kafka.tools.SimpleConsumerShell",
                *("--broker-list", bootstrap, "--topic", topic, "--partition", str(partition), "--offset", "-2"),
                *("--no-wait-at-logend", "--print-offsets", *SHOWN),
            ).stdout
            offset = -1
            for line in output.splitlines():
                if line.startswith("next offset = "):
                    offset = int(line.removeprefix("next offset = ")) - 1
                elif line.count("\t") == 2:
                    received.append(_record(line, partition, offset))
        return received


class NewShells(_ShellClient):
    """The shells that use the Java clients. The consumer does not print partitions and offsets."""

    def consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[SentRecord]:
        output = self._run(
            "kafka.tools.ConsoleConsumer",
            *("--new-consumer", "--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning"),
            *("--max-messages", str(count), "--timeout-ms", "60000", *SHOWN),
        ).stdout
        return [_record(line, UNKNOWN_PARTITION, -1) for line in output.splitlines()]


def _record(line: str, partition: int, offset: int) -> SentRecord:
    timestamp, key, value = line.split("\t")
    known = int(timestamp.removeprefix("CreateTime:")) if timestamp != "NO_TIMESTAMP" else -1
    return SentRecord(partition, known, key.encode(), value.encode(), (), offset)


def _text(value: bytes | None) -> str:
    assert value is not None
    return value.decode()
