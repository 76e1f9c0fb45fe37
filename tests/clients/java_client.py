"""Java's kafka-clients, through Probe.java, compiled against the release's own jars."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.clients.client import GroupClient
from tests.clients.records import SentRecord

SOURCE = Path(__file__).with_name("Probe.java")
TIMEOUT_SECONDS = 90


class JavaClient(GroupClient):
    """Java's client of one release, used through the program Probe.java.

    The constructor compiles the program into the empty directory `classes`.
    """

    def __init__(self, kafka: Path, classes: Path, name: str) -> None:
        self.name = name
        self._class_path = f"{classes}:{kafka}/libs/*"
        command = ["javac", "-nowarn", "-proc:none", "-cp", f"{kafka}/libs/*", "-d", str(classes), str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_SECONDS)

    def produce(self, bootstrap: str, topic: str, codec: str, records: Sequence[SentRecord]) -> None:
        lines = "".join(f"{record.line()}\n" for record in records)
        assert self._probe("produce", bootstrap, topic, codec, lines=lines).split() == [str(len(records))]

    def consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[SentRecord]:
        return _records(self._probe("consume", bootstrap, topic, str(count)))

    def consume_in_group(self, bootstrap: str, topic: str, group: str, count: int, *settings: str) -> list[SentRecord]:
        return _records(self._probe("group", bootstrap, topic, str(count), group, *settings))

    def member(self, bootstrap: str, topic: str, group: str, count: int, *settings: str) -> subprocess.Popen[str]:
        """Starts a member that runs during the test; `records_of` returns what it has read."""
        command = self._command("group", bootstrap, topic, str(count), group, *settings)
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def _probe(self, *arguments: str, lines: str = "") -> str:
        done = subprocess.run(
            self._command(*arguments),
            input=lines,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    def _command(self, *arguments: str) -> list[str]:
        options = ["-Xmx256M", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        return ["java", *options, "-cp", self._class_path, "Probe", *arguments]


def _records(output: str) -> list[SentRecord]:
    # Some releases also write their logging to standard output; its lines have no tabs.
    return [SentRecord.from_line(line) for line in output.splitlines() if line.count("\t") == 5]
