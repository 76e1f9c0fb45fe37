"""Producing and consuming at librdkafka's maximum rate, with one or four clients, and both at once."""

from __future__ import annotations

from collections.abc import Callable

from bench.run import LARGE_BATCHES, Figures, Load, Run


def together(loads: list[Load], size: int) -> Figures:
    """Returns the figures of loads that were started together: all messages in the time of the slowest load."""
    results = [load.result() for load in loads]
    messages, seconds = sum(each["messages"] for each in results), max(each["seconds"] for each in results)
    return {
        "messages": messages,
        "seconds": seconds,
        "per_second": messages / seconds,
        "mb_per_second": messages * size / seconds / 1e6,
    }


def with_cost(figures: Figures, gigabytes: float) -> Figures:
    return {**figures, "cpu_s_per_gb": figures["cpu_seconds"] / gigabytes}


def produce(messages: int, size: int, settings: tuple[str, ...], producers: int = 1) -> Callable[[Run], Figures]:
    """Returns a workload in which `producers` processes produce `messages` in total.

    The topic has a partition for each producer.
    """

    def run(run: Run) -> Figures:
        topic, each = run.topic(producers), run.count(messages // producers)

        def load() -> Figures:
            return together([run.produce(topic, each, size, *settings) for _ in range(producers)], size)

        figures = run.measure(load)
        run.server.delete_topic(topic)
        return with_cost(figures, each * producers * size / 1e9)

    return run


def fill(run: Run, messages: int, size: int, partitions: int = 1) -> str:
    """Creates a topic that contains `messages` messages; returns its name."""
    topic = run.topic(partitions)
    run.produce(topic, messages, size, "acks=1", *LARGE_BATCHES).result()
    return topic


def consume(messages: int, size: int, consumers: int = 1) -> Callable[[Run], Figures]:
    """Returns a workload in which each of the consumers reads a topic in the page cache from its beginning."""

    def run(run: Run) -> Figures:
        count = run.count(messages)
        topic = run.keep("topic", lambda: fill(run, count, size))

        def load() -> Figures:
            return together([run.consume(topic, count, 1) for _ in range(consumers)], size)

        return with_cost(run.measure(load), count * consumers * size / 1e9)

    return run


def mixed(messages: int, size: int) -> Callable[[Run], Figures]:
    """Returns a workload with a producer, and a consumer that reads the same topic while it grows."""

    def run(run: Run) -> Figures:
        topic, count = run.topic(), run.count(messages)

        def load() -> Figures:
            producer = run.produce(topic, count, size, "acks=all", *LARGE_BATCHES)
            return together([run.consume(topic, count, 1), producer], size)

        figures = run.measure(load)
        run.server.delete_topic(topic)
        return with_cost(figures, 2 * count * size / 1e9)

    return run
