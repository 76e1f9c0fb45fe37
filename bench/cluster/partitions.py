"""Three nodes with 10,000 partitions of three replicas: memory, a start, and the loss of a third of the leaders."""

from __future__ import annotations

import time

from bench.cluster.clusters import IDS
from bench.cluster.failures import another_than
from bench.cluster.records import TIMEOUT_S, Records
from bench.cluster.turn import ClusterTurn
from bench.run import Figures

MANY = 10_000


def many_partitions(turn: ClusterTurn) -> Figures:
    """Creates a topic for each leader, kills and starts all nodes, and kills the node that leads a third.

    `create_seconds` is the time until every partition is in sync and has acknowledged a record, `ready_seconds` the
    time until all killed nodes are ready again, and `start_seconds` the time until every partition is in sync and has
    acknowledged a record. `failover_seconds` is the time from the kill of a node that is not the active controller
    until all partitions that it led have acknowledged a record. Memory is that of all three nodes.
    """
    each = max(1, turn.count(MANY) // len(IDS))
    figures: Figures = {"partitions": each * len(IDS), "memory_before_mb": turn.cluster.memory_mb()}
    begin = time.monotonic()
    topics = {leader: turn.topic([leader] * each) for leader in IDS}
    figures["create_seconds"] = time.monotonic() - begin
    figures["memory_mb"] = turn.cluster.memory_mb()

    turn.cluster.kill()

    def load() -> Figures:
        begin = time.monotonic()
        turn.cluster.start()
        ready = time.monotonic()
        for topic in topics.values():
            turn.await_in_sync(topic)
            Records(turn.cluster.bootstrap, topic, each).send()
        return {"start_seconds": time.monotonic() - begin, "ready_seconds": ready - begin}

    figures |= turn.measure(load)
    figures["memory_after_start_mb"] = turn.cluster.memory_mb()

    lost = another_than(turn.active_controller())
    topic = topics[lost]
    elect_preferred(turn)
    records = Records(turn.cluster.bootstrap, topic, each)
    records.send()
    begin = time.monotonic()
    turn.cluster.nodes[lost].kill()
    first, last = records.send()
    figures["failover_seconds"], figures["first_partition_seconds"] = last - begin, first - begin
    turn.cluster.nodes[lost].start()
    turn.await_in_sync(topic)
    for created in topics.values():
        turn.cluster.delete_topic(created)
    return figures


def elect_preferred(turn: ClusterTurn) -> None:
    """Makes each node lead its third of the partitions again; the nodes that started first had become the leaders."""
    from kafkapy.client.admin.partitions import ElectionType

    with turn.admin() as admin:
        admin.elect_leaders(ElectionType.PREFERRED, timeout=TIMEOUT_S)
