"""Many partitions: a sweep from 1 to 1,000; and start, produce and fetch with 10,000."""

from __future__ import annotations

from bench.run import LARGE_BATCHES, Figures, Run
from bench.workloads.life import start_until_acknowledged

SWEEP = (1, 20, 50, 100, 200, 500, 1000)
SWEEP_MESSAGES = 300_000
SWEEP_SIZE = 1024
MANY = 10_000
# Each record chooses its partition; without this setting, librdkafka uses the same one for 10 ms.
SPREAD = ("sticky.partitioning.linger.ms=0", "acks=1", *LARGE_BATCHES)


def sweep(run: Run) -> Figures:
    """Writes records of 1,024 bytes to topics of 1 to 1,000 partitions, spread over all, and reads them."""
    figures: Figures = {}
    messages = run.count(SWEEP_MESSAGES)

    def load() -> Figures:
        for partitions in SWEEP:
            topic = run.topic(partitions)
            produced = run.produce(topic, messages, SWEEP_SIZE, *SPREAD).result()
            consumed = run.consume(topic, messages, partitions).result()
            run.server.delete_topic(topic)
            figures[f"produce_{partitions}"] = produced["per_second"]
            figures[f"consume_{partitions}"] = consumed["per_second"]
        return figures

    return run.measure(load)


def ten_thousand(run: Run) -> Figures:
    """Measures a clean stop and start with 10,000 partitions, then several records to each, and reading all.

    The records of earlier rounds still exist and are read again.
    """
    topic = run.keep("topic", lambda: run.topic(MANY))
    run.server.stop()

    def load() -> Figures:
        figures = start_until_acknowledged(run, topic)
        figures["memory_mb"] = run.server.memory_mb()
        run.await_leaders(topic, MANY)
        produced = run.requests(topic, 64, run.seconds(4), partitions=MANY).result()
        fetched = run.requests(topic, 64, run.seconds(4), partitions=MANY, kind="fetch", size=100_000).result()
        figures["produce_per_second"], figures["fetch_per_second"] = produced["per_second"], fetched["per_second"]
        figures["memory_after_mb"] = run.server.memory_mb()
        figures["descriptors"] = run.server.descriptors()
        return figures

    return run.measure(load)
