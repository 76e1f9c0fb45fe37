"""kill -9 of a driver in a transaction, many times: a batch is half written, and is in the topic once in the end."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkapy.client import Consumer, Producer, TopicPartition
from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka, kafka_directory
from tests.spark.topic_content import read_topic
from tests.spark_session import ROOT

pytestmark = [pytest.mark.full, pytest.mark.timeout(7200)]
KILLS = int(os.environ.get("KAFKAPY_DRIVER_KILLS", "50"))
BATCH = 15_000
# Long values, so that a task writes a batch in many requests.
VALUE = "{:d} " + 200 * "x"
PARTITIONS = 2
_START_S = 240.0
# The test asks the broker this often. Without a pause, it would use most of a core while Spark starts.
_POLL_S = 0.02


class Target:
    """The topic that is written, and its end offsets for readers with both isolation levels."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        self._consumers = {
            level: Consumer(bootstrap_servers=bootstrap, isolation_level=level)
            for level in ("read_uncommitted", "read_committed")
        }

    def open_records(self) -> int:
        """Returns the number of offsets after the last stable ones: records of open transactions."""
        stable = self._consumers["read_committed"].end_offsets(self._places)
        last = self._consumers["read_uncommitted"].end_offsets(self._places)
        return sum(last[place] - stable[place] for place in self._places)

    def close(self) -> None:
        for consumer in self._consumers.values():
            consumer.close()


@contextlib.contextmanager
def driver(log: Path, *words: str) -> Any:
    """Runs the copying program in a session of its own, and kills all of its processes at the end."""
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.copy_stream", *words],
            cwd=ROOT, env=environment, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(condition: Callable[[], bool], process: Any, log: Path) -> None:
    """Waits for a condition while the driver runs."""
    deadline = time.monotonic() + _START_S
    while not condition():
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()[-6000:]
        time.sleep(_POLL_S)


@contextlib.contextmanager
def broker(kind: str, directory: Path) -> Any:
    properties = {"num.partitions": str(PARTITIONS)}
    if kind == "apache":
        with ApacheKafka(kafka_directory("4.3.0"), directory, properties=properties, heap=("-Xmx512M",)) as kafka:
            yield kafka.bootstrap
    else:
        with BrokerProcess(directory, properties) as process:
            yield process.bootstrap


@pytest.mark.parametrize("kind", ["kafkapy", pytest.param("apache", marks=pytest.mark.peer)])
def test_a_half_written_batch_is_there_once(tmp_path, kind):
    chance = random.Random(11)
    log, half_written = tmp_path / "driver.log", []
    with broker(kind, tmp_path / kind) as bootstrap:
        total = (KILLS + 2) * BATCH
        with Producer(bootstrap_servers=bootstrap, linger_ms=20) as producer:
            for number in range(total):
                producer.send("numbers", VALUE.format(number).encode(), partition=number % PARTITIONS)
        with Producer(bootstrap_servers=bootstrap) as producer:
            producer.partitions_for("copies")  # creates the topic
        words = (bootstrap, "numbers", "copies", f"{tmp_path}/checkpoint", str(BATCH))
        target = Target(bootstrap, "copies")
        for _ in range(KILLS):
            with driver(log, *words, "0 seconds") as process:
                # The transactions of the killed driver stay open until its successor ends them.
                wait_for(lambda: target.open_records() == 0, process, log)
                wait_for(lambda: target.open_records() > 0, process, log)
                time.sleep(chance.random() * 0.05)
            half_written.append(target.open_records())
        with driver(log, *words, "available-now") as process:
            assert process.wait(_START_S * 3) == 0, log.read_text()[-6000:]
        assert target.open_records() == 0
        target.close()
        written = [int(value.split()[0]) for _, value, _ in read_topic(bootstrap, "copies")]
    assert len(written) == len(set(written)) == total
    caught = sum(0 < count < BATCH for count in half_written)
    print(f"{kind}: {caught} of {KILLS} kills left a batch half written; records of open transactions: {half_written}")
    assert caught >= KILLS * 0.5
