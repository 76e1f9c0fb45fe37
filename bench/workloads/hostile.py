"""Latency of a well-behaved client, and the broker's peak memory, while another client does harm."""

from __future__ import annotations

from collections.abc import Callable

from bench.run import Figures, Run
from bench.workloads.throughput import fill
from tests.hostile_clients import HOSTILE_CLIENTS, HostileClient

HOSTILE = HOSTILE_CLIENTS
RATE = 1_000


def with_hostile_clients(hostile: type[HostileClient]) -> Callable[[Run], Figures]:
    def run(run: Run) -> Figures:
        topic = run.keep("topic", run.topic)
        data = run.keep("data", lambda: fill(run, run.count(100_000), 1000))

        def load() -> Figures:
            with hostile(run.server.port, data) as client:
                figures = run.requests(topic, 16, run.seconds(5), acks=-1, rate=RATE).result()
            return {**figures, "hostile_acts": client.done}

        return run.measure(load)

    return run
