"""`kafkapy explain` on metadata logs of our controllers and of Apache Kafka's: the same course has the same reasons.

Broker 2 leads, dies, and returns; then it is elected as the preferred leader.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.client.admin import Admin, ElectionType, NewTopic
from kafkapy.metadata.history import MetadataHistory
from kafkapy.metadata.partition_history import PartitionEvent, explain_partition
from kafkapy.tools.metadata_log import fetch_history, read_directory
from kafkapy.types import TopicPartition
from tests.cluster.cluster import UNHURRIED, Cluster, Spec
from tests.cluster.nodes import BROKER, CONTROLLER, Flavour
from tests.tools.tool_host import run_ours

pytestmark = pytest.mark.timeout(180)


def events_of(history: MetadataHistory) -> list[PartitionEvent]:
    return list(explain_partition(history, "t", 0))


def leaders(events: list[PartitionEvent]) -> list[tuple[int, str]]:
    """Returns each new leader with the reason."""
    found: list[tuple[int, str]] = []
    for each in events:
        if each.partition is not None and (not found or found[-1][0] != each.partition.leader):
            found.append((each.partition.leader, each.why))
    return found


@pytest.mark.parametrize(
    "flavour", [Flavour.KAFKAPY, pytest.param(Flavour.KAFKA_43, marks=pytest.mark.peer)], ids=lambda each: each.value
)
def test_a_partition_is_explained(tmp_path: Path, flavour: Flavour) -> None:
    specs = [Spec(flavour, CONTROLLER), Spec(Flavour.KAFKAPY, BROKER), Spec(Flavour.KAFKAPY, BROKER)]
    with Cluster(tmp_path, specs, properties=UNHURRIED) as cluster:  # else a slow broker may lead no more
        with cluster.admin() as admin:
            admin.create_topics([NewTopic("t", assignments={0: [2, 3]}, configs={"min.insync.replicas": "1"})]).check()
        cluster.wait_for_isr("t")
        cluster[2].kill()
        cluster.wait_for_leader("t", other_than=2)
        cluster.start([2])
        cluster.wait_for_isr("t")
        with cluster.admin() as admin:
            admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition("t", 0)]).check()
        assert cluster.wait_for_leader("t", other_than=3) == 2  # the brokers learn of the election after its answer
        with Admin({"bootstrap.controllers": cluster.bootstrap_controllers}) as admin:
            history = fetch_history(admin)
        local = read_directory(str(cluster[1].log_dir))
        assert local.records[: len(history.records)] == history.records
        events = events_of(history)
        assert leaders(events) == [
            (2, ""),
            (
                3,
                "broker 2 was fenced: it had stopped, or its heartbeats had; "
                "3 is the first available replica in the ISR",
            ),
            (2, "election of the preferred leader 2"),
        ]
        created = next(each for each in events if each.partition is not None)
        done = run_ours("explain", "t-0", "--bootstrap-server", cluster[3].bootstrap)
        assert (done.code, done.out.splitlines()[-1]) == (0, "Now: leader 2 (epoch 2), ISR 2,3, replicas 2,3")
        assert len(done.out.splitlines()) == len(events) + 1
        at = str(created.record.wall_ms)
        done = run_ours("explain", "--at", at, "--bootstrap-controller", cluster[1].controller_address)
        assert done.out.splitlines()[-1] == "t-0: leader 2 (epoch 0), ISR 2,3, replicas 2,3"
        done = run_ours("explain", "nope-0", "--directory", str(cluster[1].log_dir))
        assert (done.code, done.err) == (1, "The metadata log has no partition nope-0\n")
