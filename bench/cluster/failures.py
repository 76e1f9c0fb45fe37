"""Nodes that are killed: the time until a leader's partitions accept records, and until a controller decides again."""

from __future__ import annotations

import time
from collections.abc import Callable

from bench.cluster.clusters import IDS
from bench.cluster.records import TIMEOUT_S, Records
from bench.cluster.turn import POLL_S, ClusterTurn, replicas_behind
from bench.run import Figures
from kafkapy.errors import ApiError

PARTITIONS = 1_000


def leader_fails(is_controller: bool) -> Callable[[ClusterTurn], Figures]:
    """Returns a workload in which the leader of 1,000 partitions is killed.

    The leader is also the active controller if `is_controller`, and otherwise it is not. `failover_seconds` is the time
    from the kill until all partitions have acknowledged a record with acks=all.
    """

    def run(turn: ClusterTurn) -> Figures:
        controller = turn.active_controller()
        leader = controller if is_controller else another_than(controller)
        topic = turn.topic([leader] * turn.count(PARTITIONS))
        records = Records(turn.cluster.bootstrap, topic, turn.count(PARTITIONS))
        records.send()
        begin = time.monotonic()
        turn.cluster.nodes[leader].kill()
        first, last = records.send()
        restart(turn, leader, topic)
        turn.cluster.delete_topic(topic)
        return {"failover_seconds": last - begin, "first_partition_seconds": first - begin}

    return run


def controller_fails(turn: ClusterTurn) -> Figures:
    """Measures the time from the kill of the active controller until a topic is created."""
    controller = turn.active_controller()
    witness = turn.topic([another_than(controller)])
    begin = time.monotonic()
    turn.cluster.nodes[controller].kill()
    created = create_as_soon_as_possible(turn, replicas_behind(controller)[1:])
    took = time.monotonic() - begin
    restart(turn, controller, witness)
    for topic in (witness, created):
        turn.cluster.delete_topic(topic)
    return {"failover_seconds": took}


def create_as_soon_as_possible(turn: ClusterTurn, replicas: list[int]) -> str:
    """Creates a topic on two nodes and returns its name, which has a number for each attempt that failed."""
    deadline = time.monotonic() + TIMEOUT_S
    attempt = 0
    while True:
        topic = f"after-{time.monotonic_ns()}-{attempt}"
        try:
            turn.cluster.create_topic(topic, [replicas])
            return topic
        except (ApiError, OSError):
            if time.monotonic() > deadline:
                raise
            attempt += 1
            time.sleep(POLL_S)


def another_than(node_id: int) -> int:
    return next(each for each in IDS if each != node_id)


def restart(turn: ClusterTurn, node_id: int, topic: str) -> None:
    """Starts a killed node again and waits until it is in sync."""
    turn.cluster.nodes[node_id].start()
    turn.await_in_sync(topic)
