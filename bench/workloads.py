"""The workloads. Each takes a started server and returns its figures; `key` is the figure that is compared."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from bench.measure import Figures, measured, run_load
from bench.programs import requests_program, throughput_program
from bench.servers import Server

LARGE_BATCHES = ["linger.ms=5", "batch.size=1000000", "batch.num.messages=1000000"]
SMALL_BATCHES = ["linger.ms=0", "batch.size=16384"]
QUEUES = ["queue.buffering.max.messages=1000000", "queue.buffering.max.kbytes=2000000"]
# With librdkafka's defaults a fast broker fills the client's queue and the client then idles for a second.
CONSUMER_QUEUES = ["queued.min.messages=1000000", "fetch.queue.backoff.ms=1"]


class Workload(NamedTuple):
    name: str
    key: str
    higher_is_better: bool
    run: Callable[[Server], Figures]


def produce(messages: int, size: int, settings: list[str]) -> Callable[[Server], Figures]:
    def run(server: Server) -> Figures:
        topic = f"produce-{time.monotonic_ns()}"  # fresh files: growing the page cache is part of the work
        server.create_topic(topic, 1)
        command = [throughput_program(), "produce", server.bootstrap, topic, messages, size, *QUEUES, *settings]
        figures = measured(server, lambda: run_load(list(map(str, command))))
        figures["cpu_s_per_gb"] = figures["cpu_seconds"] / (messages * size / 1e9)
        return figures

    return run


def consume(messages: int, size: int) -> Callable[[Server], Figures]:
    def run(server: Server) -> Figures:
        topic = f"consume-{time.monotonic_ns()}"
        server.create_topic(topic, 1)
        fill = [
            throughput_program(),
            "produce",
            server.bootstrap,
            topic,
            messages,
            size,
            "acks=1",
            *QUEUES,
            *LARGE_BATCHES,
        ]
        run_load(list(map(str, fill)))
        command = [throughput_program(), "consume", server.bootstrap, topic, messages, 1, *CONSUMER_QUEUES]
        figures = measured(server, lambda: run_load(list(map(str, command))))
        figures["cpu_s_per_gb"] = figures["cpu_seconds"] / (messages * size / 1e9)
        return figures

    return run


def requests(
    connections: int, seconds: float, *, acks: int = 1, rate: int = 0, kind: str = "produce"
) -> Callable[[Server], Figures]:
    def run(server: Server) -> Figures:
        topic = f"requests-{time.monotonic_ns()}"
        server.create_topic(topic, 1)
        command = [requests_program(), "127.0.0.1", server.port, topic, 1, connections, seconds, 100, acks, rate, kind]

        def load() -> dict[str, Any]:
            return run_load(list(map(str, command)))

        load()  # the first run warms the topic's pages and the peer's compiler
        figures = measured(server, load)
        figures["cpu_us_per_request"] = figures["cpu_seconds"] / figures["answered"] * 1e6
        return figures

    return run


def start_up(server: Server) -> Figures:
    """A clean stop and a start on the same data, until the first record is acknowledged."""
    topic = f"start-up-{time.monotonic_ns()}"
    server.create_topic(topic, 1)
    probe = [
        str(word)
        for word in (requests_program(), "127.0.0.1", server.port, topic, 1, 1, 0.001, 100, 1, 0, "produce")
    ]
    server.stop()
    begin = time.monotonic()
    server.start()
    while True:
        try:
            run_load(probe)
            break
        except RuntimeError:
            if time.monotonic() - begin > 60:
                raise
    return {"seconds": time.monotonic() - begin}


def idle(server: Server) -> Figures:
    """Resident memory, CPU and threads of a broker that has been left alone for ten seconds."""
    time.sleep(3)
    before = server.cpu_seconds()
    time.sleep(10)
    return {
        "memory_mb": server.memory_mb(),
        "cpu_percent": (server.cpu_seconds() - before) * 10,
        "threads": server.threads(),
    }


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("start-up", "seconds", False, start_up),
        Workload("idle", "memory_mb", False, idle),
        Workload("produce-100B", "per_second", True, produce(3_000_000, 100, ["acks=1", *LARGE_BATCHES])),
        Workload("produce-1KB", "per_second", True, produce(500_000, 1000, ["acks=1", *LARGE_BATCHES])),
        Workload(
            "produce-1KB-lz4",
            "per_second",
            True,
            produce(500_000, 1000, ["acks=1", "compression.type=lz4", *LARGE_BATCHES]),
        ),
        Workload("produce-100B-16KB-batches", "per_second", True, produce(2_000_000, 100, ["acks=1", *SMALL_BATCHES])),
        Workload("consume-100B", "per_second", True, consume(3_000_000, 100)),
        Workload("consume-1KB", "per_second", True, consume(500_000, 1000)),
        Workload("requests-64-connections", "per_second", True, requests(64, 5)),
        Workload("requests-1-connection", "per_second", True, requests(1, 5)),
        Workload("metadata-64-connections", "per_second", True, requests(64, 5, kind="metadata")),
        Workload("latency-1000-per-second", "p99_us", False, requests(16, 5, acks=-1, rate=1000)),
        Workload("latency-10000-per-second", "p99_us", False, requests(16, 5, acks=-1, rate=10000)),
    )
}
