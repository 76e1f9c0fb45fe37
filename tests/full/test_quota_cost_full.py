"""The cost of quotas: CPU time per small produce request with 1,000 entities and 10,000 connections, in paired runs.

Two brokers serve the same requests in turns, one with three quotas for each of 1,000 client ids, one without quotas.
Each turn uses many connections in waves; the order within a pair alternates. The median of the ratios is compared, so
that other load on the machine, which disturbs single turns, has little influence.

KAFKAPY_QUOTA_PAIRS: the number of pairs (60). KAFKAPY_QUOTA_CONNECTIONS: connections per broker
(10000); a multiple of 1,000, so that each connection has one client id, without which Python serves its requests.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import socket
import statistics
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.produce import ProduceRequest
from tests.api_client import request_bytes
from tests.broker_process import BrokerProcess
from tests.reactor_harness import frame
from tests.wire.test_quota_changes import alter
from tests.wire.test_quotas import TOPIC, create

PAIRS = int(os.environ.get("KAFKAPY_QUOTA_PAIRS", "60"))
CONNECTIONS = int(os.environ.get("KAFKAPY_QUOTA_CONNECTIONS", "10000"))
ENTITIES = 1000
REQUESTS = 4000  # of a turn
WAVE = 200
LARGEST_RATIO = 1.02
QUOTAS = {"producer_byte_rate": 1e12, "consumer_byte_rate": 1e12, "request_percentage": 1e6}


def drive(port: int, commands: Connection) -> None:
    """Opens the connections, and sends as many requests as each command says, in waves."""
    builder = RecordBatchBuilder()
    builder.append(1_700_000_000_000, None, bytes(100))
    data = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
    topic = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])
    sent = [
        frame(request_bytes(ApiKey.PRODUCE, 9, request, client_id=f"client-{number:04}")) for number in range(ENTITIES)
    ]
    sockets = []
    for _ in range(CONNECTIONS):
        connection = socket.create_connection(("localhost", port))
        connection.setblocking(False)
        sockets.append(connection)
    commands.send("ready")
    place = 0
    while count := commands.recv():
        for _ in range(count // WAVE):
            poll = select.poll()
            waiting = {}
            for _ in range(WAVE):
                connection = sockets[place % CONNECTIONS]
                connection.send(sent[place % ENTITIES])
                waiting[connection.fileno()] = connection
                poll.register(connection, select.POLLIN)
                place += 1
            while waiting:
                for fd, _ in poll.poll():
                    connection = waiting.pop(fd)
                    poll.unregister(fd)
                    with suppress(BlockingIOError):
                        assert connection.recv(4096)
        commands.send("done")


class Driven:
    """A broker, and a process with its clients."""

    def __init__(self, directory: Path) -> None:
        self.broker = BrokerProcess(directory)

    def start(self) -> None:
        self.broker.start()
        create(self.broker, 7, {TOPIC: 1})
        self.commands, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("fork").Process(
            target=drive, args=(self.broker.port, theirs), daemon=True
        )
        self.process.start()
        assert self.commands.recv() == "ready"

    def stop(self) -> None:
        self.commands.send(0)
        self.process.join(10)
        self.broker.stop()

    def turn(self, requests: int) -> float:
        """Sends requests; returns the CPU time in microseconds of the broker for each."""
        before = self._cpu_ns()
        self.commands.send(requests)
        assert self.commands.recv() == "done"
        return (self._cpu_ns() - before) / requests / 1000

    def _cpu_ns(self) -> int:
        tasks = Path(f"/proc/{self.broker.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


@pytest.fixture
def both(tmp_path: Path) -> Iterator[list[Driven]]:
    found = [Driven(tmp_path / "free"), Driven(tmp_path / "limited")]
    for each in found:
        each.start()
    yield found
    for each in found:
        each.stop()


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_quotas_of_others_and_of_its_own_cost_a_client_little(both: list[Driven]) -> None:
    assert CONNECTIONS % ENTITIES == 0
    free, limited = both
    for first in range(0, ENTITIES, 100):
        alter(
            limited.broker,
            1,
            [([("client-id", f"client-{number:04}")], list(QUOTAS.items())) for number in range(first, first + 100)],
        )
    for each in both:
        each.turn(CONNECTIONS)
        each.turn(CONNECTIONS)
    ratios, costs = [], []
    for pair in range(PAIRS):
        order = [free, limited] if pair % 2 else [limited, free]
        found = {each: each.turn(REQUESTS) for each in order}
        ratios.append(found[limited] / found[free])
        costs.append((found[free], found[limited]))
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(
        f"CPU us per request: without {statistics.median(a for a, _ in costs):.2f}, with "
        f"{statistics.median(b for _, b in costs):.2f}; ratio {middle:.4f}, quartiles {low:.4f} to {high:.4f}, "
        f"least {min(a for a, _ in costs):.2f} and {min(b for _, b in costs):.2f}"
    )
    assert middle < LARGEST_RATIO
