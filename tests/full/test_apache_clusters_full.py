"""Long courses of changes on clusters of Apache Kafka alone, which prove the harness; see tests/cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import scenarios
from tests.cluster.cluster import Cluster, Voters, three
from tests.cluster.nodes import Flavour
from tests.cluster.scenarios import Course

pytestmark = [pytest.mark.peer, pytest.mark.full, pytest.mark.timeout(900)]


def test_a_cluster_of_3_9_is_replaced_by_4_3_node_by_node(tmp_path: Path) -> None:
    """Static voters, and the metadata version of 3.9: the directories stay, the program changes."""
    flags = ["--release-version", "3.9"]
    with Cluster(tmp_path, three(Flavour.KAFKA_39), voters=Voters.STATIC, flags=flags) as cluster:
        cluster.wait_for_quorum_leader()
        with Course(cluster) as course:
            scenarios.roll(course, Flavour.KAFKA_43)


def test_nothing_is_lost_while_nodes_are_killed_and_paused(tmp_path: Path) -> None:
    with Cluster(tmp_path, three(Flavour.KAFKA_43)) as cluster:
        cluster.wait_for_voters(1, 2, 3)
        with Course(cluster) as course:
            scenarios.kill_the_leader(course)
            scenarios.pause_the_controller(course)


def test_every_node_leads_the_quorum(tmp_path: Path) -> None:
    with Cluster(tmp_path, three(Flavour.KAFKA_43)) as cluster, Course(cluster) as course:
        scenarios.pass_the_quorum_around(course, cluster.nodes)


def test_a_cluster_is_replaced_by_new_nodes(tmp_path: Path) -> None:
    with Cluster(tmp_path, three(Flavour.KAFKA_43)) as cluster, Course(cluster) as course:
        scenarios.replace_by_new_nodes(course, Flavour.KAFKA_43)
