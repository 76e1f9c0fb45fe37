"""Voters that join and leave while the cluster is served: automatic join, growth of one node, Apache Kafka's tools."""

from __future__ import annotations

from pathlib import Path

from kafkapy.client.admin import NewTopic
from tests.cluster.cluster import Cluster, Spec, Voters, three
from tests.cluster.nodes import BROKER, Flavour

AUTO_JOIN = {"controller.quorum.auto.join.enable": "true"}


def test_nodes_that_join_automatically_become_voters(tmp_path: Path) -> None:
    with Cluster(tmp_path, three(Flavour.KAFKAPY), voters=Voters.STANDALONE, properties=AUTO_JOIN) as cluster:
        quorum = cluster.wait_for_voters(1, 2, 3)
        assert not quorum.observers
        cluster.create_topic("t", 3)


def test_a_node_that_was_alone_continues_without_a_restart_when_another_leads(tmp_path: Path) -> None:
    with Cluster(tmp_path, [Spec()], voters=Voters.STANDALONE) as cluster:
        cluster.create_topic("before", 1, 1)
        for _ in range(2):
            cluster.start([cluster.add(Spec(), joins_voters=True).node_id])
        cluster.wait_for_voters(1, 2, 3)
        first = cluster.wait_for_quorum_leader()
        cluster[first].pause()
        leader = cluster.wait_for_quorum_leader(other_than=first)
        assert leader in {1, 2, 3} - {first}
        cluster[first].resume()
        cluster.wait_for("all brokers", lambda: has_brokers(cluster, 1, 2, 3))
        # Node 1 serves what needs the active controller, which is another node now.
        with cluster.admin(1) as admin:
            admin.create_topics([NewTopic("after", 3, 3)]).check()
        for partition in range(3):
            cluster.wait_for_isr("after", partition)


def test_the_broker_of_the_only_controller_keeps_its_session_when_brokers_join(tmp_path: Path) -> None:
    with Cluster(tmp_path, [Spec(), Spec(roles=BROKER)], voters=Voters.STATIC) as cluster:
        cluster.create_topic("t", 2, 2)
        before = cluster.partition("t")
        cluster.wait_for("all brokers", lambda: has_brokers(cluster, 1, 2))
        # Longer than a session: the first controlled shutdown below would never end without heartbeats of node 1.
        cluster[2].stop()
        cluster.start([2])
        cluster.wait_for("all brokers", lambda: has_brokers(cluster, 1, 2))
        assert set(cluster.wait_for_isr("t").isr) == set(before.replicas)


def has_brokers(cluster: Cluster, *node_ids: int) -> bool:
    with cluster.admin() as admin:
        return {broker.node_id for broker in admin.describe_cluster().brokers} == set(node_ids)
