"""Replicated records at librdkafka's maximum rate: producing with acks=1 and acks=all, reading from any replica."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.cluster.turn import ONE_LEADER, SPREAD_LEADERS, ClusterTurn
from bench.run import LARGE_BATCHES, Figures
from bench.workloads.throughput import with_cost

# The follower from which a consumer of this rack reads; all leaders are on node 1.
FOLLOWERS_RACK = ("client.rack=r2",)


def produce(messages: int, size: int, acks: str) -> Callable[[ClusterTurn], Figures]:
    """Returns a workload in which one producer writes to three partitions, each led by another node.

    The processor time counts until all replicas are equal; `replicated_per_second` is the rate until then.
    """

    def run(turn: ClusterTurn) -> Figures:
        topic, count = turn.topic(SPREAD_LEADERS), turn.count(messages)

        def load() -> Figures:
            begin = time.monotonic()
            figures = turn.produce(topic, count, size, f"acks={acks}", *LARGE_BATCHES).result()
            turn.await_replicated(topic)
            return {**figures, "replicated_per_second": count / (time.monotonic() - begin)}

        figures = turn.measure(load)
        turn.cluster.delete_topic(topic)
        return with_cost(figures, count * size / 1e9)

    return run


def filled_topic(turn: ClusterTurn, messages: int, size: int) -> str:
    """Returns a topic whose only partition is led by node 1. All nodes have its `messages` messages of `size` bytes."""

    def fill() -> str:
        topic = turn.topic(ONE_LEADER)
        turn.produce(topic, messages, size, "acks=1", *LARGE_BATCHES).result()
        turn.await_replicated(topic)
        return topic

    return str(turn.keep(f"topic of {size} bytes", fill))


def consume(messages: int, size: int, *settings: str) -> Callable[[ClusterTurn], Figures]:
    """Returns a workload in which a consumer reads a partition in the page cache from its beginning."""

    def run(turn: ClusterTurn) -> Figures:
        count = turn.count(messages)
        topic = filled_topic(turn, count, size)
        figures = turn.measure(lambda: turn.consume(topic, count, 1, *settings).result())
        return with_cost(figures, count * size / 1e9)

    return run
