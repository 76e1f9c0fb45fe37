"""A broker's life: from start to first acknowledged record, idle, after a kill."""

from __future__ import annotations

import time

from bench.run import LARGE_BATCHES, Figures, Run

RECOVERED_MESSAGES = 1_000_000


def first_acknowledged(run: Run, topic: str, begin: float) -> float:
    """Seconds since `begin` (monotonic) until a record is acknowledged."""
    while True:
        try:
            run.requests(topic, 1, 0.001).result()
            return time.monotonic() - begin
        except RuntimeError:
            if time.monotonic() - begin > 120:
                raise


def start_until_acknowledged(run: Run, topic: str) -> Figures:
    def load() -> Figures:
        begin = time.monotonic()
        run.server.start()
        return {"start_seconds": first_acknowledged(run, topic, begin)}

    return run.measure(load)


def start_up(run: Run) -> Figures:
    """A clean stop, and a start on the same data."""
    topic = run.keep("topic", run.topic)
    run.server.stop()
    return start_until_acknowledged(run, topic)


def idle(run: Run) -> Figures:
    """Resident memory, CPU and threads of a broker that is left alone."""
    run.keep("settled", lambda: time.sleep(run.seconds(5)))

    def load() -> Figures:
        time.sleep(run.seconds(5))
        return {"memory_mb": run.server.memory_mb(), "threads": run.server.threads()}

    begin = time.monotonic()
    figures = run.measure(load)
    figures["cpu_percent"] = figures["cpu_seconds"] / (time.monotonic() - begin) * 100
    return figures


def recovery(run: Run) -> Figures:
    """kill -9 after a gigabyte was written to one partition, and a start on what is left."""
    topic = run.topic()
    run.produce(topic, run.count(RECOVERED_MESSAGES), 1000, "acks=1", *LARGE_BATCHES).result()
    run.server.kill()
    figures = start_until_acknowledged(run, topic)
    run.server.delete_topic(topic)
    return figures
