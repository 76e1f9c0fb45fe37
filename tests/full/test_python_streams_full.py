"""Stream libraries of Python, Quix Streams and faust: the broker and the application are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafkapy.client import Producer
from tests.ecosystem.programs import TopicReader, create_topics, wait_until
from tests.full.conftest import NewServer
from tests.package_managers import fetch, made_once
from tests.peers import peers_directory
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

# They need another release of confluent-kafka than the other tests.
PACKAGES = ("quixstreams==3.28.1", "faust-streaming==0.15.3")
PROGRAMS = Path(__file__).parents[1] / "ecosystem"
WORDS = ("a", "b", "c")
# An hour ago, at the beginning of a window. Brokers delete records that are older than a topic's retention.
START_MS = (time.time_ns() // 1_000_000 - 3_600_000) // 10_000 * 10_000


@pytest.fixture(scope="module")
def python() -> Path:
    """Returns the interpreter of an environment with the libraries, which pip installs once."""
    directory = peers_directory() / "-".join(package.replace("==", "-") for package in PACKAGES)

    def make() -> None:
        subprocess.run([sys.executable, "-m", "venv", "--clear", directory / "venv"], check=True, timeout=300)
        fetch([str(directory / "venv/bin/pip"), "install", "-q", *PACKAGES])

    return made_once(directory, make) / "venv/bin/python"


class Lines:
    """The lines of the input; each has every word once, and is 0.1 s later than the one before."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.count = 0

    def send(self, count: int) -> None:
        with Producer({"bootstrap.servers": self._bootstrap, "enable.idempotence": "true"}) as producer:
            for number in range(self.count, self.count + count):
                producer.send("lines", " ".join(WORDS), timestamp=START_MS + 100 * number)
        self.count += count


@contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def commands(program: str, python: Path, broker: ServerProcess, directory: Path, *arguments: str) -> list[list[str]]:
    """Returns the commands of two applications, each with an empty folder for its state."""
    words = [str(python), str(PROGRAMS / program), broker.bootstrap, *arguments]
    return [[*words, str(directory / f"state-{number}")] for number in range(2)]


def count_through_kills(
    broker: ServerProcess, counts: TopicReader, lines: Lines, applications: list[list[str]], log: Path
) -> None:
    """Runs the first application, kills it, runs the second, and kills the broker; no word may be lost."""

    def is_counted() -> bool:
        newest = {record.key: int(record.value) for record in counts.read()}
        return all(newest.get(word.encode(), 0) >= lines.count for word in WORDS)

    with running(applications[0], log):
        lines.send(500)
        wait_until(is_counted, log.read_text)
        lines.send(500)
    # The second application restores the state from the changelog into an empty folder.
    with running(applications[1], log):
        lines.send(500)
        wait_until(is_counted, log.read_text)
        lines.send(500)
        broker.kill()
        broker.start()
        lines.send(500)
        wait_until(is_counted, log.read_text)


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-least-once"])
def test_quix_streams_counts_through_kills(tmp_path: Path, python: Path, guarantee: str, new_server: NewServer) -> None:
    log = tmp_path / "quix.log"
    with new_server() as broker, TopicReader(broker.bootstrap, "counts") as counts:
        create_topics(broker.bootstrap, {"lines": 1, "counts": 2, "windows": 2})
        lines = Lines(broker.bootstrap)
        applications = commands("quix_program.py", python, broker, tmp_path, guarantee)
        count_through_kills(broker, counts, lines, applications, log)
        if guarantee == "exactly-once":
            check_exactly_once(broker, counts, lines, applications[1], log)


def test_faust_counts_through_kills(tmp_path: Path, python: Path, new_server: NewServer) -> None:
    with new_server() as broker, TopicReader(broker.bootstrap, "counts") as counts:
        create_topics(broker.bootstrap, {"lines": 1, "counts": 1})
        applications = commands("faust_program.py", python, broker, tmp_path)
        count_through_kills(broker, counts, Lines(broker.bootstrap), applications, tmp_path / "faust.log")


def check_exactly_once(
    broker: ServerProcess, counts: TopicReader, lines: Lines, application: list[str], log: Path
) -> None:
    """Checks that each count of each word was written once and in order, and each closed window once."""
    for word in WORDS:
        found = [int(record.value) for record in counts.records if record.key == word.encode()]
        assert found == list(range(1, lines.count + 1))
    closed = lines.count // 100 - 1
    with running(application, log), TopicReader(broker.bootstrap, "windows") as windows:
        wait_until(lambda: len(windows.read()) >= closed * len(WORDS), log.read_text)
        found_windows = Counter((record.key, json.loads(record.value)["start"]) for record in windows.records)
        assert set(found_windows.values()) == {1}
        assert {json.loads(record.value)["value"] for record in windows.records} == {100}
