"""The harness on clusters of Apache Kafka alone, which keep every promise: a complaint about ours is then true."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, Spec, Voters, three
from tests.cluster.history import History, Outcome
from tests.cluster.nodes import BROKER, CONTROLLER, Flavour
from tests.cluster.traffic import TrafficConsumer, TrafficProducer, read_log, traffic

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]
TOPIC, PARTITIONS = "histories", 3


def clients(cluster: Cluster, history: History) -> list[TrafficProducer | TrafficConsumer]:
    """Returns an idempotent and a transactional producer, and a consumer."""
    return [
        TrafficProducer(history, cluster.bootstrap, TOPIC, PARTITIONS, "plain"),
        TrafficProducer(history, cluster.bootstrap, TOPIC, PARTITIONS, "transactional", transaction_size=20),
        TrafficConsumer(history, cluster.bootstrap, TOPIC, "reader", "readers"),
    ]


def check(cluster: Cluster, history: History) -> None:
    """Checks the history, and that every node has a part of it."""
    history.check(read_log(cluster.bootstrap, TOPIC, PARTITIONS))
    assert history.count(Outcome.DONE) > 0
    assert Outcome.DONE in history.transactions.values()
    assert Outcome.NOT_DONE in history.transactions.values()
    assert history.reads


def test_nothing_is_lost_while_nodes_are_killed_and_paused(tmp_path: Path) -> None:
    history = History()
    with Cluster(tmp_path, three(Flavour.KAFKA_43)) as cluster:
        cluster.wait_for_voters(1, 2, 3)
        cluster.create_topic(TOPIC, PARTITIONS)
        with traffic(*clients(cluster, history)):
            leader = cluster.wait_for_leader(TOPIC)
            cluster[leader].kill()
            assert cluster.wait_for_leader(TOPIC, other_than=leader) != leader
            cluster.start([leader])
            cluster.wait_for_isr(TOPIC)
            controller = cluster.wait_for_quorum_leader()
            cluster[controller].pause()
            assert cluster.wait_for_quorum_leader(other_than=controller) != controller
            cluster[controller].resume()
            for partition in range(PARTITIONS):
                cluster.wait_for_isr(TOPIC, partition)
        check(cluster, history)


def test_separate_roles_and_a_controller_that_joins(tmp_path: Path) -> None:
    """Each directory is formatted by the node's own program."""
    specs = [Spec(Flavour.KAFKA_43, CONTROLLER), Spec(Flavour.KAFKA_43, BROKER), Spec(Flavour.KAFKA_43, BROKER)]
    with Cluster(tmp_path, specs, voters=Voters.STANDALONE, by_own_tool=True) as cluster:
        cluster.wait_for_voters(1)
        joined = cluster.add(Spec(Flavour.KAFKA_43, CONTROLLER), joins_voters=True)
        cluster.start([joined.node_id])
        cluster.wait_for_voters(1, 4)
        cluster.create_topic(TOPIC, 1, replication_factor=2)
        assert set(cluster.partition(TOPIC).replicas) == {2, 3}


def test_a_cluster_of_3_9_is_replaced_by_4_3_node_by_node(tmp_path: Path) -> None:
    """Static voters, and the metadata version of 3.9: the directories stay, the program changes."""
    history = History()
    cluster = Cluster(tmp_path, three(Flavour.KAFKA_39), voters=Voters.STATIC, flags=["--release-version", "3.9"])
    with cluster:
        cluster.wait_for_quorum_leader()
        cluster.create_topic(TOPIC, PARTITIONS)
        with traffic(*clients(cluster, history)):
            for node_id in cluster.nodes:
                cluster[node_id].stop()
                cluster.replace_program(node_id, Flavour.KAFKA_43).start()
                for partition in range(PARTITIONS):
                    cluster.wait_for_isr(TOPIC, partition)
        check(cluster, history)
