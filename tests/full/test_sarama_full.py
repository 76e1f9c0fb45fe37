"""The Go library sarama, which Metricbeat and others use: its module's programs, and a copier with transactions."""

from __future__ import annotations

import subprocess
import zlib
from pathlib import Path

import pytest

from kafkapy.client import Producer
from tests.ecosystem.programs import TopicReader, create_topics, wait_until
from tests.full.conftest import NewServer
from tests.package_managers import fetch, made_once
from tests.peers import peers_directory

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

SOURCE = Path(__file__).parents[1] / "ecosystem/sarama"
TOOLS = ("kafka-console-producer", "kafka-console-consumer", "kafka-producer-performance")
PARTITIONS = 2


@pytest.fixture(scope="module")
def programs() -> Path:
    """Returns the folder of the programs, which Go builds once for each go.mod and main.go."""
    digest = zlib.crc32(b"".join((SOURCE / name).read_bytes() for name in ("go.mod", "go.sum", "main.go")))
    directory = peers_directory() / f"sarama-{digest:08x}"
    packages = [f"github.com/IBM/sarama/tools/{tool}" for tool in TOOLS]
    command = ["go", "build", "-buildvcs=false", "-o", str(directory) + "/", ".", *packages]
    variables = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    return made_once(directory, lambda: fetch(command, SOURCE, variables))


class Copier:
    """The copier of main.go, which ends at the first error and is then started again by `keep_running`."""

    def __init__(self, command: list[str], log: Path) -> None:
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def keep_running(self) -> None:
        if self._process is None or self._process.poll() is not None:
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def test_the_modules_own_tools_work(tmp_path: Path, programs: Path, new_server: NewServer) -> None:
    with new_server() as broker:
        create_topics(broker.bootstrap, {"lines": PARTITIONS, "load": PARTITIONS})
        where = [f"-brokers={broker.bootstrap}", "-topic=lines"]
        for number in range(3):
            message = [f"-key=key {number}", f"-value=value {number}", "-headers=a:b,c:d"]
            subprocess.run([programs / TOOLS[0], *where, *message], check=True, timeout=120)
        with TopicReader(broker.bootstrap, "lines") as lines:
            lines.wait_for(3)
            assert {(each.key, each.value) for each in lines.records} == {
                (f"key {number}".encode(), f"value {number}".encode()) for number in range(3)
            }
            assert {tuple(each.headers) for each in lines.records} == {(("a", b"b"), ("c", b"d"))}
        check_console_consumer([str(programs / TOOLS[1]), *where, "-offset=oldest"], tmp_path / "consumed")
        for compression in ("none", "gzip", "snappy", "lz4"):
            load = [f"-brokers={broker.bootstrap}", "-topic=load", "-message-load=1000", "-message-size=100"]
            load += [f"-compression={compression}", "-required-acks=-1", "-version=2.8.0"]
            subprocess.run([programs / TOOLS[2], *load], check=True, capture_output=True, timeout=300)
        with TopicReader(broker.bootstrap, "load") as topic:
            topic.wait_for(4000)
            assert {len(value) for value in topic.values} == {100}


def check_console_consumer(command: list[str], output: Path) -> None:
    with output.open("wb") as file:
        consumer = subprocess.Popen(command, stdout=file)
    try:
        wait_until(lambda: all(f"value {number}" in output.read_text() for number in range(3)), output.read_text)
    finally:
        consumer.terminate()
        consumer.wait(60)


def test_a_group_with_transactions_copies_each_record_once(
    tmp_path: Path, programs: Path, new_server: NewServer
) -> None:
    with new_server() as broker:
        create_topics(broker.bootstrap, {"input": PARTITIONS, "output": PARTITIONS})
        log = tmp_path / "copier.log"
        copier = Copier([str(programs / "sarama"), broker.bootstrap, "input", "output", "copier"], log)
        written = 0

        def produce(count: int) -> None:
            nonlocal written
            with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
                for number in range(written, written + count):
                    producer.send("input", f"value {number}", key=f"key {number}", partition=number % PARTITIONS)
            written += count

        with TopicReader(broker.bootstrap, "output") as output:

            def is_copied() -> bool:
                copier.keep_running()
                return len(output.read()) >= written

            try:
                for _ in range(3):
                    produce(1000)
                    wait_until(is_copied, log.read_text)
                    produce(1000)
                    broker.kill()
                    broker.start()
                    wait_until(is_copied, log.read_text)
                    produce(1000)
                    copier.kill()
                    wait_until(is_copied, log.read_text)
            finally:
                copier.kill()
            for partition in range(PARTITIONS):
                found = [each.value for each in output.records if each.partition == partition]
                assert found == [f"value {number}".encode() for number in range(partition, written, PARTITIONS)]
