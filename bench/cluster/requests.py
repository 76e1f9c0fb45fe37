"""Replicated requests of one record: the maximum rate, and latency at fixed rates with acks=all."""

from __future__ import annotations

from collections.abc import Callable

from bench.cluster.turn import ClusterTurn
from bench.run import Figures
from bench.workloads.requests import LATENCY_CONNECTIONS


def closed_loop(connections: int, seconds: float, acks: int) -> Callable[[ClusterTurn], Figures]:
    def run(turn: ClusterTurn) -> Figures:
        topic = turn.keep("topic of requests", turn.topic)

        def load() -> Figures:
            figures = turn.requests(topic, connections, turn.seconds(seconds), acks=acks).result()
            turn.await_replicated(topic)
            return figures

        return per_request(turn.measure(load))

    return run


def latency(rate: int, seconds: float) -> Callable[[ClusterTurn], Figures]:
    """Returns a workload that sends requests on a fixed schedule; latency is measured from the scheduled time."""

    def run(turn: ClusterTurn) -> Figures:
        topic = turn.keep("topic of requests", turn.topic)
        lasting = turn.seconds(seconds)
        load = lambda: turn.requests(topic, LATENCY_CONNECTIONS, lasting, acks=-1, rate=rate).result()  # noqa: E731
        return per_request(turn.measure(load))

    return run


def per_request(figures: Figures) -> Figures:
    return {**figures, "cpu_us_per_request": figures["cpu_seconds"] / figures["answered"] * 1e6}
