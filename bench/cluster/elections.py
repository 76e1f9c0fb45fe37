"""The preferred leaders of 1,000 partitions are elected, after their node was killed and has returned."""

from __future__ import annotations

import time
from functools import partial

from bench.cluster.clusters import IDS
from bench.cluster.failures import PARTITIONS
from bench.cluster.records import TIMEOUT_S, Records
from bench.cluster.turn import ClusterTurn
from bench.run import Figures
from kafkapy.types import TopicPartition

PREFERRED = IDS[0]


def preferred_election(turn: ClusterTurn) -> Figures:
    """Measures the time from the request until all nodes know the preferred leader of every partition.

    `answered_seconds` is the time until the answer to the request, and `records_seconds` the time until each partition
    has acknowledged a record. The configuration of the clusters leaves the default interval of the automatic election
    (5 minutes), so that the partitions wait for the request.
    """
    from kafkapy.client.admin.partitions import ElectionType

    count = turn.count(PARTITIONS)
    topic = turn.topic([PREFERRED] * count)
    records = Records(turn.cluster.bootstrap, topic, count)
    turn.cluster.nodes[PREFERRED].kill()
    records.send()  # all partitions have other leaders
    turn.cluster.nodes[PREFERRED].start()
    turn.await_in_sync(topic)
    wanted = [TopicPartition(topic, number) for number in range(count)]

    def load() -> Figures:
        begin = time.monotonic()
        with turn.admin() as admin:
            admin.elect_leaders(ElectionType.PREFERRED, wanted, timeout=TIMEOUT_S).check()
        answered = time.monotonic()
        for node in turn.cluster.running:
            turn.wait_for(f"leaders of {topic}", partial(leads_all, topic, node.port))
        elected = time.monotonic()
        records.send()
        return {
            "election_seconds": elected - begin,
            "answered_seconds": answered - begin,
            "records_seconds": time.monotonic() - begin,
        }

    figures = turn.measure(load)
    turn.cluster.delete_topic(topic)
    return figures


def leads_all(topic: str, port: int) -> bool:
    """Returns whether the node at this port reports the preferred leader for every partition of the topic."""
    from kafkapy.client.admin import Admin

    with Admin({"bootstrap.servers": f"127.0.0.1:{port}"}) as admin:
        partitions = admin.describe_topics([topic], timeout=TIMEOUT_S)[topic].partitions
    return all(each.leader == PREFERRED for each in partitions)
