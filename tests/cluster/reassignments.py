"""Reassignments in clusters under test: topics on chosen brokers, throttles, and the sizes of replicas on disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from kafkapy.client import Producer
from kafkapy.client.admin import Admin, NewTopic, Reassignment
from kafkapy.errors import Error
from kafkapy.tools.reassignment_throttles import clear_throttles, moves_of, throttle_moves
from kafkapy.types import TopicPartition
from tests.cluster.cluster import Cluster
from tests.cluster.nodes import ClusterNode
from tests.cluster.scenarios import PARTITIONS, REPLICAS, TOPIC, Course

MOVED = "moved"  # the topic with the many partitions
# The reassignment that is cancelled has a throttle that is lower by this factor.
SLOWER = 100
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
    """Returns the bytes in the segments of a topic's replicas on a node, without replicas that will be deleted."""
    segments = node.log_dir.glob(f"{topic}-*/*.log")
    return sum(path.stat().st_size for path in segments if not path.parent.name.endswith("-delete"))


def ongoing_reassignments(cluster: Cluster) -> dict[TopicPartition, Reassignment]:
    with cluster.admin() as admin:
        return admin.list_partition_reassignments()


def is_reassigning(cluster: Cluster) -> bool:
    return bool(ongoing_reassignments(cluster))


def wait_until_reassigned(cluster: Cluster, timeout_s: float = 120) -> None:
    cluster.wait_for("end of the reassignments", lambda: not is_reassigning(cluster), timeout_s)


def growth_per_second(size: Callable[[], int], seconds: float) -> float:
    """Returns the bytes per second by which a size grows in that time."""
    start_s, start = time.monotonic(), size()
    time.sleep(seconds)
    return (size() - start) / (time.monotonic() - start_s)


def rotated(brokers: Sequence[int], topic: str, partitions: int, replicas: int) -> dict[TopicPartition, list[int]]:
    """Returns replicas for each partition of a topic, on the brokers in turn."""
    return {
        TopicPartition(topic, number): [brokers[(number + step) % len(brokers)] for step in range(replicas)]
        for number in range(partitions)
    }


def replicas_of(cluster: Cluster, targets: Iterable[TopicPartition]) -> dict[TopicPartition, list[int]]:
    """Returns the present replicas of the partitions."""
    wanted = set(targets)
    with cluster.admin() as admin:
        described = admin.describe_topics({partition.topic for partition in wanted}).check()
    found = {
        TopicPartition(topic.name, each.partition): list(each.replicas)
        for topic in described.values()
        for each in topic.partitions
    }
    return {partition: found[partition] for partition in wanted}


def await_replicas(cluster: Cluster, expected: dict[TopicPartition, list[int]]) -> None:
    """Waits until a broker, whose metadata may be older than the controller's, has these replicas."""
    cluster.wait_for("replicas", lambda: replicas_of(cluster, expected) == expected)


def move_many_under_load(course: Course, partitions: int, size: int, rate: int) -> dict[TopicPartition, list[int]]:
    """Moves the partitions of a topic, and those that the clients of `course` use, between four brokers and three.

    The first reassignment, which empties the fourth broker, is throttled to `rate` bytes/s, and a broker that gives and
    gets replicas is killed and returns. The second one, back to four brokers, is cancelled and leaves everything as it
    was. The third one is the second without a throttle, and the active controller is killed. Returns the last targets.
    """
    cluster = course.cluster
    four, three = list(cluster.nodes), list(cluster.nodes)[:-1]
    spread = rotated(four, MOVED, partitions, REPLICAS)
    create_filled_topic(cluster, MOVED, {each.partition: spread[each] for each in spread}, size)
    emptied = rotated(three, MOVED, partitions, REPLICAS) | rotated(three, TOPIC, PARTITIONS, REPLICAS)
    with cluster.admin() as admin:
        start_throttled(admin, emptied, rate)
    assert is_reassigning(cluster)
    cluster[three[1]].kill()
    course.await_progress()
    cluster.start([three[1]])
    wait_until_reassigned(cluster)
    await_replicas(cluster, emptied)
    cluster.wait_for("empty broker", lambda: size_on_disk(cluster[four[-1]], MOVED) == 0)

    spread |= rotated(four, TOPIC, PARTITIONS, REPLICAS)
    with cluster.admin() as admin:
        start_throttled(admin, spread, rate // SLOWER)
        ongoing = admin.list_partition_reassignments()
        assert ongoing
        cancelled = admin.alter_partition_reassignments(dict.fromkeys(ongoing))
        late = {error.error for error in cancelled.errors.values()}  # reassignments that were completed before
        assert late <= {Error.NO_REASSIGNMENT_IN_PROGRESS}, cancelled.errors
        assert cancelled.values
    left = ongoing_reassignments(cluster)
    assert not left, (left, cancelled)
    before = {partition: sorted(emptied[partition]) for partition in cancelled.values}  # in any order, as in Kafka

    def is_as_before() -> bool:
        found = replicas_of(cluster, before)
        return {partition: sorted(found[partition]) for partition in found} == before

    cluster.wait_for("former replicas", is_as_before)
    course.await_progress()

    with cluster.admin() as admin:
        clear_throttles(admin, {MOVED, TOPIC}, four)
        admin.alter_partition_reassignments(spread).check()
    controller = cluster.wait_for_quorum_leader()
    cluster[controller].kill()
    course.await_progress()
    cluster.start([controller])
    wait_until_reassigned(cluster)
    await_replicas(cluster, spread)
    course.await_in_sync()
    course.await_progress()
    return spread
