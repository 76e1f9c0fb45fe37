"""A cluster starts, idles, and fills an empty follower."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.cluster.clusters import IDS
from bench.cluster.throughput import filled_topic
from bench.cluster.turn import ClusterTurn
from bench.run import LARGE_BATCHES, Figures
from bench.workloads.throughput import with_cost
from kafkapy.types import TopicPartition

START = "start"
SETTLE_S, IDLE_S = 5, 5
CATCH_UP_SIZE = 1000
STAYING, EMPTIED = (1, 2), 3
# Replicas before and after a reassignment: each node gives and gets as many.
MOVES = (((1, 2), (1, 3)), ((2, 3), (2, 1)), ((3, 1), (3, 2)))


def start(turn: ClusterTurn) -> Figures:
    """Measures the start of three formatted nodes at once.

    `ready_seconds` is the time until each node is ready, and `start_seconds` the time until a record with acks=all is
    acknowledged, which includes the creation of its topic.
    """
    begin = time.monotonic()
    turn.cluster.start()
    ready = time.monotonic() - begin
    turn.topic()
    return {"start_seconds": time.monotonic() - begin, "ready_seconds": ready}


def started(turn: ClusterTurn) -> Figures:
    """Returns the figures of the start with which the turn has begun."""
    return dict(turn.kept[START])


def idle(turn: ClusterTurn) -> Figures:
    """Measures an idle cluster that has just been started."""
    time.sleep(turn.seconds(SETTLE_S))

    def load() -> Figures:
        wake_ups = turn.cluster.wake_ups()
        time.sleep(turn.seconds(IDLE_S))
        woken = (turn.cluster.wake_ups() - wake_ups) / turn.seconds(IDLE_S)
        return {"memory_mb": turn.cluster.memory_mb(), "threads": turn.cluster.threads(), "wake_ups_per_second": woken}

    begin = time.monotonic()
    figures = turn.measure(load)
    return {**figures, "cpu_percent": figures["cpu_seconds"] / (time.monotonic() - begin) * 100}


def catch_up(messages: int) -> Callable[[ClusterTurn], Figures]:
    """Returns a workload in which node 3 gets all records of a partition of which it has none.

    The time counts from the answer to the reassignment that gives the partition back to it.
    """

    def run(turn: ClusterTurn) -> Figures:
        topic = filled_topic(turn, turn.count(messages), CATCH_UP_SIZE)
        reassign(turn, topic, STAYING)
        turn.await_in_sync(topic, STAYING)
        turn.wait_for(f"removal of {topic}", lambda: turn.cluster.stored_bytes(topic, EMPTIED) == 0)
        size = turn.cluster.stored_bytes(topic, STAYING[0])

        def load() -> Figures:
            reassign(turn, topic, IDS)
            begin = time.monotonic()
            turn.wait_for(f"copy of {topic}", lambda: turn.cluster.stored_bytes(topic, EMPTIED) == size, 0.002)
            return {"mb_per_second": size / (time.monotonic() - begin) / 1e6}

        figures = turn.measure(load)
        turn.await_in_sync(topic)
        return with_cost(figures, size / 1e9)

    return run


def reassigned(partitions: int, messages: int) -> Callable[[ClusterTurn], Figures]:
    """Returns a workload in which every partition of a topic gets another replica, and loses one.

    The time counts from the answer to the reassignment until no reassignment is in progress.
    """

    def run(turn: ClusterTurn) -> Figures:
        name = f"bench-{time.monotonic_ns()}"
        assigned = [MOVES[number % len(MOVES)] for number in range(partitions)]
        turn.cluster.create_topic(name, [list(before) for before, _ in assigned])
        turn.produce(name, turn.count(messages), CATCH_UP_SIZE, "acks=all", *LARGE_BATCHES).result()
        size = sum(turn.cluster.stored_bytes(name, each) for each in IDS) / 2  # each record has two replicas
        targets = {TopicPartition(name, number): after for number, (_, after) in enumerate(assigned)}

        def is_done() -> bool:
            with turn.admin() as admin:
                return not admin.list_partition_reassignments()

        def load() -> Figures:
            with turn.admin() as admin:
                admin.alter_partition_reassignments(targets).check()
            begin = time.monotonic()
            turn.wait_for(f"reassignment of {name}", is_done)
            return {"mb_per_second": size / (time.monotonic() - begin) / 1e6}

        figures = turn.measure(load)
        turn.cluster.delete_topic(name)
        return with_cost(figures, size / 1e9)

    return run


def reassign(turn: ClusterTurn, topic: str, replicas: tuple[int, ...]) -> None:
    with turn.admin() as admin:
        admin.alter_partition_reassignments({TopicPartition(topic, 0): replicas}).check()
