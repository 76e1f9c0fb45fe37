"""A broker and a process with its clients, for the CPU time that one small produce request costs."""

from __future__ import annotations

import multiprocessing
import select
import socket
import statistics
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.produce import ProduceRequest
from tests.api_client import request_bytes
from tests.broker_process import BrokerProcess
from tests.reactor_harness import frame

TOPIC = "driven"
# Client ids, which the connections have in turn.
ENTITIES = 1000
REQUESTS = 4000  # of a turn
WAVE = 200


def drive(connect: Callable[[], socket.socket], count: int, commands: Connection) -> None:
    """Opens `count` connections, and sends as many requests as each command says, in waves."""
    builder = RecordBatchBuilder()
    builder.append(1_700_000_000_000, None, bytes(100))
    data = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
    topic = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])
    sent = [
        frame(request_bytes(ApiKey.PRODUCE, 9, request, client_id=f"client-{number:04}")) for number in range(ENTITIES)
    ]
    sockets = []
    for _ in range(count):
        connection = connect()
        connection.setblocking(False)
        sockets.append(connection)
    commands.send("ready")
    place = 0
    while requests := commands.recv():
        for _ in range(requests // WAVE):
            poll = select.poll()
            waiting = {}
            for _ in range(WAVE):
                connection = sockets[place % count]
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
    """A running broker that has the topic, and a process with its clients. `connect` opens a connection to it."""

    def __init__(self, broker: BrokerProcess, connect: Callable[[], socket.socket], connections: int) -> None:
        self.broker = broker
        self.commands, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("fork").Process(
            target=drive, args=(connect, connections, theirs), daemon=True
        )
        self.process.start()
        assert self.commands.recv() == "ready"

    def stop(self) -> None:
        self.commands.send(0)
        self.process.join(10)

    def turn(self, requests: int) -> float:
        """Sends requests; returns the CPU time in microseconds of the broker for each."""
        before = self._cpu_ns()
        self.commands.send(requests)
        assert self.commands.recv() == "done"
        return (self._cpu_ns() - before) / requests / 1000

    def _cpu_ns(self) -> int:
        tasks = Path(f"/proc/{self.broker.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def median_ratio(free: Driven, limited: Driven, pairs: int, warm: int) -> float:
    """Returns the median of the ratios of CPU time per request (`limited` to `free`) over pairs of turns.

    The order within a pair alternates. `warm` requests go to each broker twice before. Prints the figures.
    """
    for each in (free, limited):
        each.turn(warm)
        each.turn(warm)
    ratios, costs = [], []
    for pair in range(pairs):
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
    return middle
