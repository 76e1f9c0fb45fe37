"""Phases of a broker: from start to the first acknowledged record, idle, and after a kill."""

from __future__ import annotations

import time

from bench.run import LARGE_BATCHES, Figures, Run

RECOVERED_MESSAGES = 1_000_000


def first_acknowledged(run: Run, topic: str, begin: float) -> float:
    """Returns the seconds from `begin` (monotonic) until a record is acknowledged."""
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
    """Measures a start on the same data after a clean stop."""
    topic = run.keep("topic", run.topic)
    run.server.stop()
    return start_until_acknowledged(run, topic)


def idle(run: Run) -> Figures:
    """Measures resident memory, CPU and threads of an idle broker."""
    run.keep("settled", lambda: time.sleep(run.seconds(5)))

    def load() -> Figures:
        time.sleep(run.seconds(5))
        return {"memory_mb": run.server.memory_mb(), "threads": run.server.threads()}

    begin = time.monotonic()
    figures = run.measure(load)
    figures["cpu_percent"] = figures["cpu_seconds"] / (time.monotonic() - begin) * 100
    return figures


def recovery(run: Run) -> Figures:
    """Measures a start after kill -9, with a gigabyte in one partition."""
    topic = run.topic()
    run.produce(topic, run.count(RECOVERED_MESSAGES), 1000, "acks=1", *LARGE_BATCHES).result()
    run.server.kill()
    figures = start_until_acknowledged(run, topic)
    run.server.delete_topic(topic)
    return figures
