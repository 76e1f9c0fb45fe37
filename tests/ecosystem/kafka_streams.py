"""Kafka Streams applications as processes: the jars of a release, Programs.java compiled, its instances."""

from __future__ import annotations

import fcntl
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from tests.peers import peers_directory

POM = Path(__file__).with_name("streams_pom.xml")
SOURCE = Path(__file__).with_name("Programs.java")
VERSION = "4.3.0"
OPTIONS = ("-Xmx256M", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=info")
WORD_COUNT = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"


def streams_jars() -> Path:
    """Returns the folder with the jars of Kafka Streams and its examples, which Maven fetches once."""
    directory = peers_directory() / f"kafka-streams-{VERSION}"
    directory.mkdir(parents=True, exist_ok=True)
    complete = directory / ".complete"
    with (directory / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            command = ["mvn", "-q", "-B", "-Dstyle.color=never", "-f", str(POM), f"-Dkafka.version={VERSION}"]
            command += ["dependency:copy-dependencies", f"-DoutputDirectory={directory / 'libs'}"]
            subprocess.run([*command, "-DincludeScope=runtime"], check=True)
            complete.touch()
    return directory / "libs"


def compiled_programs(classes: Path) -> str:
    """Compiles Programs.java into the folder `classes`; returns the class path for it."""
    jars = streams_jars()
    command = ["javac", "-nowarn", "-proc:none", "-cp", f"{jars}/*", "-d", str(classes), str(SOURCE)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return f"{classes}:{jars}/*"


class StreamsInstance:
    """A running instance of Programs.java; `lines` are what it has printed. Its log is the file `log`."""

    def __init__(self, class_path: str, settings: Mapping[str, str], log: Path) -> None:
        command = ["java", *OPTIONS, "-cp", class_path, "Programs"]
        command += [f"{name}={value}" for name, value in settings.items()]
        self.lines: list[str] = []
        self._log = log.open("a")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
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
