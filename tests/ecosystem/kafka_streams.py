"""Kafka Streams applications as processes: the jars of a release, our programs compiled, their instances."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from tests.ecosystem.programs import maven_jars

SOURCES = Path(__file__).parent
VERSION = "4.3.0"
# The EOS program is in the test jar of 3.9 and no longer in those of 4.x.
EOS_VERSION = "3.9.1"
OPTIONS = ("-Xmx256M", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=info")
WORD_COUNT = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"


def streams_jars() -> Path:
    """Returns the folder with the jars of Kafka Streams, its examples and its system-test programs."""
    names = ("kafka-streams", "kafka-streams-examples", "kafka-tools")
    tests = ("kafka-streams", "kafka-clients", "kafka-server-common")
    return _jars("kafka-streams", VERSION, names, tests)


def eos_jars() -> Path:
    """Returns the folder with the jars of the last release whose system-test programs include StreamsEosTest."""
    return _jars("kafka-streams-eos", EOS_VERSION, ("kafka-streams", "kafka-tools"), ("kafka-streams", "kafka-clients"))


def _jars(name: str, version: str, artifacts: tuple[str, ...], test_jars: tuple[str, ...]) -> Path:
    wanted = [f"org.apache.kafka:{artifact}:{version}" for artifact in artifacts]
    wanted += [f"org.apache.kafka:{artifact}:{version}:test" for artifact in test_jars]
    return maven_jars(name, *wanted, "org.slf4j:slf4j-simple:1.7.36")


def compiled_programs(classes: Path, name: str = "Programs") -> str:
    """Compiles the program `name` into the folder `classes`; returns the class path for it."""
    jars = streams_jars()
    command = ["javac", "-nowarn", "-proc:none", "-cp", f"{jars}/*", "-d", str(classes), str(SOURCES / f"{name}.java")]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return f"{classes}:{jars}/*"


class StreamsInstance:
    """A running instance of one of our programs; `lines` are what it has printed. Its log is the file `log`."""

    def __init__(self, class_path: str, settings: Mapping[str, str], log: Path, main: str = "Programs") -> None:
        command = ["java", *OPTIONS, "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-cp", class_path, main]
        command += [f"{name}={value}" for name, value in settings.items()]
        self.lines: list[str] = []
        self._log = log.open("a")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, encoding="utf-8"
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip())

    def query(self, word: str) -> None:
        """Asks for the count of a word; the answer is a line."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"query {word}\n")
        self._process.stdin.flush()

    def stop(self) -> None:
        """Closes the application, which leaves its group."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        finally:
            self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._log.close()
