"""Elections after the death of the last in-sync replica: our controller writes the same changes as Apache Kafka's.

Brokers 2 and 3 have one partition of each topic. Broker 3 leaves, then broker 2 dies, and broker 3 returns alone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.client.admin import Admin, ConfigChange, ConfigResource, ElectionType, NewTopic, ResourceType
from kafkapy.errors import Error
from kafkapy.metadata.partition_history import explain_partition
from kafkapy.tools.metadata_log import fetch_history
from kafkapy.types import TopicPartition
from tests.cluster.cluster import Cluster, Spec
from tests.cluster.nodes import BROKER, CONTROLLER, Flavour

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]
UNCLEAN = {"unclean.leader.election.enable": "true"}
# The topics: what each is to show, and its configuration.
TOPICS = {
    "waits": {"min.insync.replicas": "1"},  # for its last in-sync replica
    "risks": {"min.insync.replicas": "1", **UNCLEAN},  # takes the first replica that returns
    "knows": {"min.insync.replicas": "2"},  # broker 3 has left cleanly below the minimum: an eligible leader replica
}


def states(cluster: Cluster) -> dict[str, tuple[int, set[int]]]:
    """Returns leader and ISR of each topic."""
    with cluster.admin() as admin:
        topics = admin.describe_topics(list(TOPICS), timeout=10).check()
    return {name: (each.partitions[0].leader, set(each.partitions[0].isr)) for name, each in topics.items()}


def refusal(cluster: Cluster, kind: ElectionType, topic: str) -> Error | None:
    """Returns the error of an election, or None."""
    with cluster.admin() as admin:
        found = admin.elect_leaders(kind, [TopicPartition(topic, 0)]).errors.get(TopicPartition(topic, 0))
    return None if found is None else found.error


def run_course(flavour: Flavour, directory: Path) -> dict[str, list[tuple[str, str]]]:
    """Returns the changes of each topic's partition, with their reasons."""
    specs = [Spec(flavour, CONTROLLER), Spec(Flavour.KAFKAPY, BROKER), Spec(Flavour.KAFKAPY, BROKER)]
    with Cluster(directory, specs) as cluster:
        with cluster.admin() as admin:
            topics = [NewTopic(name, assignments={0: [2, 3]}, configs=TOPICS[name]) for name in TOPICS]
            admin.create_topics(topics).check()
        for name in TOPICS:
            cluster.wait_for_isr(name)
        cluster[3].stop()
        for name in TOPICS:
            cluster.wait_for_isr(name, isr=[2])
        cluster[2].kill()
        cluster.start([3])
        cluster.wait_for(
            "leaders", lambda: states(cluster) == {"waits": (-1, set()), "risks": (3, {3}), "knows": (3, {3})}
        )
        assert refusal(cluster, ElectionType.PREFERRED, "waits") is Error.PREFERRED_LEADER_NOT_AVAILABLE
        with cluster.admin() as admin:  # allows the election, which the controller looks for only at times
            change = {ConfigResource(ResourceType.TOPIC, "waits"): [ConfigChange(*each) for each in UNCLEAN.items()]}
            admin.incremental_alter_configs(change).check()
        assert states(cluster)["waits"] == (-1, set())
        assert refusal(cluster, ElectionType.UNCLEAN, "waits") is None
        assert refusal(cluster, ElectionType.UNCLEAN, "waits") is Error.ELECTION_NOT_NEEDED
        cluster.start([2])
        cluster.wait_for_all_in_sync()
        with cluster.admin() as admin:
            admin.elect_leaders(ElectionType.PREFERRED, None)
        with Admin({"bootstrap.controllers": cluster.bootstrap_controllers}) as admin:
            history = fetch_history(admin)
        return {
            name: [(each.what, each.why) for each in explain_partition(history, name, 0) if each.partition is not None]
            for name in TOPICS
        }


def test_the_last_replica_dies(tmp_path: Path) -> None:
    ours = run_course(Flavour.KAFKAPY, tmp_path / "ours")
    theirs = run_course(Flavour.KAFKA_43, tmp_path / "theirs")
    assert ours == theirs
    assert any("unclean election" in why for _, why in ours["risks"])
    assert any("eligible leader replica" in why for _, why in ours["knows"])
