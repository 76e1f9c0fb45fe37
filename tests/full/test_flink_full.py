"""A job of Flink in a local cluster, whose sink writes in transactions: the server and the job are killed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kafkapy.client import Producer
from tests.ecosystem.programs import JavaProgram, TopicReader, create_topics, maven_jars, wait_until
from tests.full.conftest import NewServer

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

PROGRAM = Path(__file__).parents[1] / "ecosystem/FlinkCounter.java"
FLINK = (
    "org.apache.flink:flink-streaming-java:2.2.0",
    "org.apache.flink:flink-clients:2.2.0",
    "org.apache.flink:flink-connector-base:2.2.0",
    "org.apache.flink:flink-connector-kafka:5.0.0-2.2",
    "org.slf4j:slf4j-simple:1.7.36",
)
KEYS, PARTITIONS = 10, 2


class Job:
    """The job in a process; each `start` after the first one begins with the newest complete checkpoint."""

    def __init__(self, directory: Path, class_path: str, bootstrap: str) -> None:
        self._checkpoints = directory / "checkpoints"
        self._class_path = class_path
        self._arguments = (bootstrap, "input", "output", str(self._checkpoints))
        self._directory = directory / "job"

    def start(self) -> JavaProgram:
        found = [path.parent for path in self._checkpoints.glob("*/chk-*/_metadata")]
        newest = sorted(found, key=lambda path: (path.stat().st_mtime_ns, path.name))[-1:]
        return JavaProgram(self._directory, self._class_path, "FlinkCounter", *self._arguments, *map(str, newest))


def test_each_line_is_counted_once(tmp_path: Path, new_server: NewServer) -> None:
    jars = maven_jars("flink", *FLINK)
    command = ["javac", "-nowarn", "-proc:none", "-cp", f"{jars}/*", "-d", str(tmp_path / "classes"), str(PROGRAM)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    written = 0

    def produce(count: int) -> None:
        nonlocal written
        with Producer({"bootstrap.servers": server.bootstrap, "enable.idempotence": "true"}) as producer:
            for number in range(written, written + count):
                producer.send("input", f"key{number % KEYS} line {number}", partition=number % KEYS % PARTITIONS)
        written += count

    with new_server() as server, TopicReader(server.bootstrap, "output") as output:
        create_topics(server.bootstrap, {"input": PARTITIONS, "output": PARTITIONS})
        job = Job(tmp_path, f"{tmp_path / 'classes'}:{jars}/*", server.bootstrap)
        for _ in range(2):
            with job.start() as program:
                for _ in range(2):
                    produce(1000)
                    output.wait_for(written)
                    produce(1000)
                    server.kill()
                    server.start()
                    produce(1000)
                    wait_until(lambda: len(output.read()) >= written, lambda: program.log()[-8000:], program)
                produce(1000)
                program.kill()
        with job.start() as program:
            wait_until(lambda: len(output.read()) >= written, lambda: program.log()[-8000:], program)
        output.read_all()
    assert sorted(output.values) == sorted(
        f"key{number % KEYS} line {number} is {number // KEYS + 1}".encode() for number in range(written)
    )
