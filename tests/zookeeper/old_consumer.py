"""A running program with the high-level consumer of Apache Kafka 0.10 or 1.1 (`programs/OldConsumer.java`)."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path

from tests.clients.legacy.installation import java_classes, java_command, java_jars

# The last releases before and after the consumer was deprecated; Kafka 2.0 has removed it.
RELEASES = ("0.10.1.1", "1.1.1")
SOURCE = Path(__file__).parent / "programs" / "OldConsumer.java"
WAIT_SECONDS = 120.0
SESSION_TIMEOUT_MS = 4000


class OldConsumer:
    """The program with `streams` streams of a topic. `name` is the end of its consumer id, and `properties` are those
    of the consumer, with "_" for "."."""

    def __init__(
        self,
        zookeeper: str,
        group: str,
        topic: str,
        name: str,
        streams: int = 1,
        release: str = RELEASES[0],
        **properties: str | int,
    ) -> None:
        settings = {
            "zookeeper.connect": zookeeper,
            "group.id": group,
            "consumer.id": name,
            "zookeeper.session.timeout.ms": SESSION_TIMEOUT_MS,
            "auto.offset.reset": "smallest",
            "auto.commit.enable": "false",
            **{key.replace("_", "."): value for key, value in properties.items()},
        }
        jars = java_jars("kafka_2.11", release)
        classes = java_classes(f"old-consumer-{release}", SOURCE, jars)
        self._process = subprocess.Popen(
            [
                *java_command(), "-cp", f"{classes}:{jars}/*", "OldConsumer", topic, str(streams),
                *(f"{key}={value}" for key, value in settings.items()),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        self._condition = threading.Condition()
        self._lines: list[str] = []
        self._has_ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> OldConsumer:
        self.wait_for_line("ready")
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()

    def records(self) -> list[tuple[int, int, str]]:
        """Returns the records so far, as (partition, offset, value)."""
        with self._condition:
            lines = [line.split(" ", 3) for line in self._lines if line.startswith("record ")]
        return [(int(partition), int(offset), value) for _, partition, offset, value in lines]

    def wait_for_records(self, count: int) -> list[tuple[int, int, str]]:
        """Returns the records once the program has received `count` of them."""
        self._wait(lambda: sum(line.startswith("record ") for line in self._lines) >= count, f"{count} records")
        return self.records()

    def wait_for_line(self, line: str) -> None:
        self._wait(lambda: line in self._lines, line)

    def commit(self) -> None:
        self._command("commit")
        self.wait_for_line("done commit")

    def close(self) -> None:
        """Ends the consumer's session."""
        self._command("close")
        self.wait_for_line("done close")

    def halt(self) -> None:
        """Ends the process without closing its session, which then exists until it times out."""
        self._command("halt")
        self._process.wait(timeout=WAIT_SECONDS)

    def _command(self, command: str) -> None:
        with self._condition:
            self._lines = [line for line in self._lines if line != f"done {command}"]
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._condition:
                self._lines.append(line.rstrip("\n"))
                self._condition.notify_all()
        with self._condition:
            self._has_ended = True
            self._condition.notify_all()

    def _wait(self, is_true, what: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        with self._condition:
            while not is_true():
                left = deadline - time.monotonic()
                assert left > 0 and not self._has_ended, f"no {what}:\n" + "\n".join(self._lines[-20:])
                self._condition.wait(left)
