"""Reassignments in clusters under test: topics on chosen brokers, throttles, and the sizes of replicas on disk."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from kafkapy.client import Producer
from kafkapy.client.admin import Admin, NewTopic
from kafkapy.tools.reassignment_throttles import moves_of, throttle_moves
from kafkapy.types import TopicPartition
from tests.cluster.cluster import Cluster
from tests.cluster.nodes import ClusterNode

RECORD = bytes(range(256)) * 40  # about 10 KB, not compressible by chance


def create_filled_topic(cluster: Cluster, name: str, assignments: Mapping[int, Sequence[int]], size: int) -> None:
    """Creates a topic with these replicas, and writes about `size` bytes to each partition."""
    with cluster.admin() as admin:
        admin.create_topics([NewTopic(name, assignments=assignments)]).check()
    for partition in assignments:
        cluster.wait_for_isr(name, partition)
    with Producer(bootstrap_servers=cluster.bootstrap, batch_size=len(RECORD)) as producer:
        for _ in range(size // len(RECORD)):
            for partition in assignments:
                producer.send(name, RECORD, partition=partition)
        producer.flush()


def start_throttled(admin: Admin, targets: Mapping[TopicPartition, Sequence[int]], rate: int) -> None:
    """Begins reassignments whose traffic is throttled to `rate` bytes/s on each broker."""
    described = admin.describe_topics({partition.topic for partition in targets}).check()
    current = {
        TopicPartition(topic.name, each.partition): each.replicas
        for topic in described.values()
        for each in topic.partitions
    }
    throttle_moves(admin, moves_of({}, targets, current), rate)
    admin.alter_partition_reassignments(targets).check()


def size_on_disk(node: ClusterNode, topic: str) -> int:
    """Returns the bytes in the segments of a topic's replicas on a node."""
    return sum(path.stat().st_size for path in node.log_dir.glob(f"{topic}-*/*.log"))


def is_reassigning(cluster: Cluster) -> bool:
    with cluster.admin() as admin:
        return bool(admin.list_partition_reassignments())


def wait_until_reassigned(cluster: Cluster, timeout_s: float = 120) -> None:
    cluster.wait_for("end of the reassignments", lambda: not is_reassigning(cluster), timeout_s)


def measured_rate(node: ClusterNode, topic: str, seconds: float) -> float:
    """Returns the bytes per second by which a topic's replicas on a node grow in that time."""
    start_s, start = time.monotonic(), size_on_disk(node, topic)
    time.sleep(seconds)
    return (size_on_disk(node, topic) - start) / (time.monotonic() - start_s)
