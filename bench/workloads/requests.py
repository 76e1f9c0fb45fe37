"""Small requests: the maximum rate, and latency at fixed rates, with and without other work of the broker."""

from __future__ import annotations

import threading
import time
import urllib.request
from collections.abc import Callable, Sequence

from bench.run import Figures, Load, Run

LATENCY_CONNECTIONS = 16
# Broker and client have a core each: with one connection, the scheduler has a larger effect than either.
BROKERS_CORE, CLIENTS_CORE = {0}, {1}
ALL_CORES = {0, 1}


def warm(run: Run, topic: str, connections: int, **how: object) -> None:
    """Warms up a server once, for the pages of the topic and the compiler of the peer."""
    run.keep("warm", lambda: run.requests(topic, connections, run.seconds(3), **how).result())  # type: ignore[arg-type]


def closed_loop(
    connections: int, seconds: float, *, kind: str = "produce", pinned: bool = False
) -> Callable[[Run], Figures]:
    def run(run: Run) -> Figures:
        topic = run.keep("topic", run.topic)
        warm(run, topic, connections, kind=kind)
        if pinned:
            run.server.pin(BROKERS_CORE)
        cores = CLIENTS_CORE if pinned else None

        def load() -> Figures:
            return run.requests(topic, connections, run.seconds(seconds), kind=kind, cores=cores).result()

        figures = run.measure(load)
        figures["cpu_us_per_request"] = figures["cpu_seconds"] / figures["answered"] * 1e6
        return figures

    return run


def latency(
    rate: int, seconds: float, background: Callable[[Run, float], Sequence[Load | Scrapes]] | None = None
) -> Callable[[Run], Figures]:
    """Returns a workload that sends produce requests of one record with acks=all on a fixed schedule.

    Latency is measured from the scheduled time. `background` starts the broker's other work; `background_per_second` is
    the rate that it has reached.
    """

    def run(run: Run) -> Figures:
        topic = run.keep("topic", run.topic)
        warm(run, topic, LATENCY_CONNECTIONS, acks=-1)
        lasting = run.seconds(seconds)

        def load() -> Figures:
            others = background(run, lasting + 2) if background else []
            figures = run.requests(topic, LATENCY_CONNECTIONS, lasting, acks=-1, rate=rate).result()
            done = [other.result() for other in others]
            if done:
                figures["background_per_second"] = sum(each.get("per_second", 0.0) for each in done)
            return figures

        figures = run.measure(load)
        figures["cpu_us_per_request"] = figures["cpu_seconds"] / figures["answered"] * 1e6
        return figures

    return run


def housekeeping(run: Run, seconds: float) -> list[Load]:
    """Starts other work: a group reads, retention deletes segments of a topic, and the cleaner cleans another.

    Needs HOUSEKEEPING among the broker's properties, with which retention and cleaner run every second.
    """
    fleeting = run.keep("fleeting", lambda: run.topic(1, {"retention.bytes": "1048576", "segment.bytes": "1048576"}))
    compacted = run.keep(
        "compacted",
        lambda: run.topic(
            1, {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}
        ),
    )
    writes, size = 2000, 1000
    messages = int(writes * seconds)
    return [
        run.read_as_group(run.kept["topic"], seconds, "readers", "auto.offset.reset=latest"),
        run.produce(fleeting, messages, size, f"bench.rate={writes}", "linger.ms=5"),
        run.produce(compacted, messages, size, f"bench.rate={writes}", "bench.keys=500", "linger.ms=5"),
    ]


class Scrapes:
    """A thread that requests the broker's metrics page at an interval for some seconds."""

    def __init__(self, interval_s: float, seconds: float) -> None:
        self._interval_s = interval_s
        self._end_s = time.monotonic() + seconds
        self._bytes = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while time.monotonic() < self._end_s:
            with urllib.request.urlopen(f"http://{METRICS_LISTENER}/metrics", timeout=30) as page:
                self._bytes += len(page.read())
            time.sleep(max(0.0, min(self._interval_s, self._end_s - time.monotonic())))

    def result(self) -> Figures:
        self._thread.join()
        return {"page_bytes": self._bytes}


def scraped(interval_s: float) -> Callable[[Run, float], list[Load | Scrapes]]:
    """Returns the function that starts scrapes of a broker with 1,000 topics.

    Needs WATCHED among the broker's properties.
    """

    def background(run: Run, seconds: float) -> list[Load | Scrapes]:
        def create_topics() -> None:
            for number in range(1000):
                run.server.create_topic(f"idle-{number}", 1, {})

        run.keep("topics", create_topics)
        return [Scrapes(interval_s, seconds)]

    return background


METRICS_LISTENER = "127.0.0.1:19404"
WATCHED = {"kafkapy.metrics.listener": METRICS_LISTENER}
HOUSEKEEPING = {
    "log.retention.check.interval.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    "log.initial.task.delay.ms": "1000",
}
