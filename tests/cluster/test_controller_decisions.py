"""Our controller's functions make the same records as Apache Kafka's controller, for the images of a cluster of Apache
Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kafkapy.client.admin import ConfigChange, ConfigResource, ElectionType, NewTopic, ResourceType
from kafkapy.controller.settings import ControllerSettings
from kafkapy.types import TopicPartition
from tests.cluster.cluster import Cluster, three
from tests.cluster.controller_judge import Judge, Reassignment, read_log
from tests.cluster.nodes import Flavour

FLAVOURS = [Flavour.KAFKAPY, pytest.param(Flavour.KAFKA_43, marks=pytest.mark.peer)]
MOVED = TopicPartition("moved", 0)


class Requests:
    """Sends requests to a cluster and remembers the reassignments."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.reassignments: list[Reassignment] = []

    def reassign(self, replicas: Sequence[int] | None) -> None:
        self.reassignments.append(Reassignment(MOVED, None if replicas is None else tuple(replicas)))
        with self.cluster.admin() as admin:
            admin.alter_partition_reassignments({MOVED: replicas}).check()

    def set_min_isr(self, value: int) -> None:
        change = ConfigChange("min.insync.replicas", str(value))
        with self.cluster.admin() as admin:
            admin.incremental_alter_configs({ConfigResource(ResourceType.BROKER, ""): [change]}).check()

    def elect(self) -> None:
        with self.cluster.admin() as admin:
            admin.elect_leaders(ElectionType.PREFERRED)


def run_course(cluster: Cluster) -> list[Reassignment]:
    """Lets brokers stop, die and return, and moves a partition meanwhile."""
    requests = Requests(cluster)
    cluster.create_topic("t", 6)
    with cluster.admin() as admin:
        admin.create_topics(
            [NewTopic("moved", assignments={0: [1, 2]}), NewTopic("single", assignments={0: [2]})]
        ).check()
    cluster.wait_for_isr("moved")
    requests.reassign([2, 3])
    cluster.wait_for_isr("moved", isr=[2, 3])
    requests.reassign([3, 2])
    cluster[1].stop()
    requests.reassign([1, 2])  # waits for broker 1
    requests.reassign([1, 2])
    requests.reassign([1, 3])
    requests.reassign(None)
    requests.set_min_isr(3)
    cluster[1].start()
    cluster.wait_for_isr("t", 0)
    requests.elect()
    cluster[2].kill()
    cluster.wait_for("fenced broker", lambda: all(2 not in cluster.partition("t", each).isr for each in range(6)))
    cluster[2].start()
    cluster.wait_for_leader("single")
    for partition in range(6):
        cluster.wait_for_isr("t", partition)
    requests.set_min_isr(1)
    requests.elect()
    cluster[3].stop()
    return requests.reassignments


@pytest.mark.parametrize("flavour", FLAVOURS, ids=lambda flavour: flavour.name.lower())
def test_every_record_is_a_decision_on_the_image_before_it(tmp_path: Path, flavour: Flavour) -> None:
    """The log of Apache Kafka's controller tests the decisions, that of kafkapy's tests what is done with them."""
    with Cluster(tmp_path, three(flavour)) as cluster:
        reassignments = run_course(cluster)
        leader = cluster[cluster.wait_for_quorum_leader()]
        cluster.kill()
        records = read_log(leader.log_dir / "__cluster_metadata-0")
    judge = Judge(ControllerSettings(min_insync_replicas=2), reassignments)
    judge.run(records)
    assert not judge.unexplained, "\n".join(judge.unexplained)
    assert {"fence", "unfence", "shutdown", "register", "isr", "balance", "reassign"} <= set(judge.explained)
