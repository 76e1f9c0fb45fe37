"""Voters that join and leave while the cluster is served: automatic join, growth of one node, Apache Kafka's tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.client.admin import NewTopic
from kafkapy.types import uuid_to_string
from tests.cluster.cluster import Cluster, Spec, Voters, three
from tests.cluster.nodes import BROKER, Flavour
from tests.cluster.quorum_tools import add_controller, directory_id_of, features, finalized, quorum

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


@pytest.mark.parametrize("flavour", [Flavour.KAFKAPY, Flavour.KAFKA_43])
def test_a_static_quorum_of_one_becomes_dynamic_and_grows(tmp_path: Path, flavour: Flavour) -> None:
    with Cluster(tmp_path, [Spec(flavour)], voters=Voters.STATIC) as cluster:
        assert finalized(features(cluster, "describe"), "kraft.version") == 0
        refused = features(cluster, "upgrade", "--feature", "kraft.version=2", fails=True)
        assert "Local controller 1 only supports versions 0-1" in refused
        assert "kraft.version was upgraded to 1" in features(cluster, "upgrade", "--feature", "kraft.version=1")
        assert finalized(features(cluster, "describe"), "kraft.version") == 1
        refused = features(cluster, "downgrade", "--feature", "kraft.version=0", fails=True)
        assert "Can't downgrade the version of this feature" in refused
        assert cluster.wait_for_voters(1).voters[0].directory_id == directory_id_of(cluster[1])
        cluster.use_bootstrap_servers()
        for _ in range(2):
            cluster.start([cluster.add(Spec(), joins_voters=True).node_id])
        cluster.wait_for_voters(1, 2, 3)
        cluster[1].stop()
        cluster.wait_for_quorum_leader(other_than=1)
        cluster.start([1])
        cluster.create_topic("t", 3)


def test_apache_kafkas_tool_adds_and_removes_our_controllers(tmp_path: Path) -> None:
    with Cluster(tmp_path, [Spec()], voters=Voters.STANDALONE) as cluster:
        for _ in range(2):
            cluster.start([cluster.add(Spec()).node_id])
        for node_id in (2, 3):
            cluster.wait_for("observer", lambda node_id=node_id: node_id in observers(cluster))
            assert f"Added controller {node_id} with" in add_controller(cluster, cluster[node_id])
        cluster.wait_for_voters(1, 2, 3)
        described = quorum(cluster, "describe", "--status")
        assert uuid_to_string(directory_id_of(cluster[3])) in described
        directory = uuid_to_string(directory_id_of(cluster[2]))
        remove = ["remove-controller", "--controller-id", "2", "--controller-directory-id", directory]
        assert "KRaft controller 2 with" in quorum(cluster, *remove, through_controllers=True)
        cluster.wait_for_voters(1, 3)
        assert "VoterNotFoundException" in quorum(cluster, *remove, fails=True)
        # The removed voter is an observer, and returns when it is added again.
        cluster.wait_for("observer", lambda: 2 in observers(cluster))
        assert "Added controller 2 with" in add_controller(cluster, cluster[2])
        cluster.wait_for_voters(1, 2, 3)


def observers(cluster: Cluster) -> set[int]:
    return {observer.node_id for observer in cluster.quorum().observers}


@pytest.mark.parametrize("flavour", [Flavour.KAFKAPY, Flavour.KAFKA_43])
def test_a_voter_that_was_removed_while_it_was_down_returns_as_an_observer(tmp_path: Path, flavour: Flavour) -> None:
    """Its own log says that it is a voter, until it has fetched the removal."""
    with Cluster(tmp_path, three(flavour), voters=Voters.INITIAL) as cluster:
        cluster.wait_for_voters(1, 2, 3)
        leader = cluster.wait_for_quorum_leader()
        removed = next(node for node in cluster.nodes.values() if node.node_id != leader)
        removed.stop()
        cluster.remove_voter(removed)
        remaining = {1, 2, 3} - {removed.node_id}
        before = cluster.wait_for_voters(*remaining)
        cluster.start([removed.node_id])
        cluster.wait_for("observer", lambda: removed.node_id in observers(cluster))
        cluster.wait_for("all brokers", lambda: has_brokers(cluster, 1, 2, 3))
        after = cluster.wait_for_voters(*remaining)
        assert (after.leader, after.leader_epoch) == (before.leader, before.leader_epoch)
