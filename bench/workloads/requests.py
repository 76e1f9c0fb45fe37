"""Small requests: as many as go, and latency at fixed rates, undisturbed or beside other work of the broker."""

from __future__ import annotations

from collections.abc import Callable

from bench.run import Figures, Load, Run

LATENCY_CONNECTIONS = 16
# Broker and client on a core each: with one connection the scheduler's choice decides more than either.
BROKERS_CORE, CLIENTS_CORE = {0}, {1}
ALL_CORES = {0, 1}


def warm(run: Run, topic: str, connections: int, **how: object) -> None:
    """Once for a server: the pages of the topic, the compiler of the peer."""
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
    rate: int, seconds: float, background: Callable[[Run, float], list[Load]] | None = None
) -> Callable[[Run], Figures]:
    """Produce requests of one record, acks=all, on a fixed schedule; latency counts from the scheduled time."""

    def run(run: Run) -> Figures:
        topic = run.keep("topic", run.topic)
        warm(run, topic, LATENCY_CONNECTIONS, acks=-1)
        lasting = run.seconds(seconds)

        def load() -> Figures:
            others = background(run, lasting + 2) if background else []
            figures = run.requests(topic, LATENCY_CONNECTIONS, lasting, acks=-1, rate=rate).result()
            for other in others:
                other.result()
            return figures

        figures = run.measure(load)
        figures["cpu_us_per_request"] = figures["cpu_seconds"] / figures["answered"] * 1e6
        return figures

    return run


def housekeeping(run: Run, seconds: float) -> list[Load]:
    """A group reads what is produced, a topic is cut by retention, and the cleaner has a compacted topic to clean.

    Needs HOUSEKEEPING among the broker's properties: each of the two comes round every second.
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


HOUSEKEEPING = {
    "log.retention.check.interval.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
    "log.initial.task.delay.ms": "1000",
}
