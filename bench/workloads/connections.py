"""Many clients: 5,000 connections that idle, and hundreds of consumers that wait for the next record."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable

from bench.run import Figures, Run

# ApiVersions v0, correlation 1, no client id
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)


def ask_versions(client: socket.socket) -> None:
    """Sends a request and reads its response, so that the broker has created the connection's state."""
    client.sendall(API_VERSIONS)
    left = int.from_bytes(client.recv(4, socket.MSG_WAITALL))
    while left:
        left -= len(client.recv(left))


def idle_connections(count: int) -> Callable[[Run], Figures]:
    """Returns a workload that measures the growth of the broker's memory by `count` idle connections.

    Each connection has sent one request.
    """

    def run(run: Run) -> Figures:
        number = run.count(count)
        run.server.stop()
        run.server.start()
        time.sleep(run.seconds(2))
        before = run.server.memory_mb()

        def load() -> Figures:
            clients = []
            try:
                begin = time.monotonic()
                for _ in range(number):
                    clients.append(socket.create_connection(("127.0.0.1", run.server.port)))
                    ask_versions(clients[-1])
                took = time.monotonic() - begin
                time.sleep(run.seconds(1))
                grown = run.server.memory_mb() - before
                return {"grown_mb": grown, "kb_each": grown * 1024 / number, "per_second": number / took}
            finally:
                for client in clients:
                    client.close()

        return run.measure(load)

    return run


def tail(consumers: int, rate: int, seconds: float) -> Callable[[Run], Figures]:
    """Returns a workload with `consumers` consumers that wait at the end of one partition.

    Each of them receives every record of one producer.
    """

    def run(run: Run) -> Figures:
        topic = run.keep("topic", run.topic)
        run.keep("warm", lambda: run.tail(topic, consumers, run.seconds(2), rate).result())
        figures = run.measure(lambda: run.tail(topic, consumers, run.seconds(seconds), rate).result())
        figures["cpu_us_per_delivery"] = figures["cpu_seconds"] / figures["answered"] * 1e6
        return figures

    return run
