"""The harness on clusters of Apache Kafka alone, which must pass every check.

This shows that a failed check on a cluster of kafkapy is not caused by the harness. The longer courses are in
tests/full/test_apache_clusters_full.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, Spec, Voters
from tests.cluster.nodes import BROKER, CONTROLLER, Flavour
from tests.cluster.scenarios import TOPIC

pytestmark = [pytest.mark.peer, pytest.mark.timeout(900)]


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
