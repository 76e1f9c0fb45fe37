"""Reassignments of 100 partitions under load, with kills and a cancellation; see tests/cluster/reassignments.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster.cluster import UNHURRIED, Cluster, Spec
from tests.cluster.nodes import BROKER, Flavour
from tests.cluster.reassignments import move_many_under_load
from tests.cluster.scenarios import Course
from tests.peers import kafka_directory
from tests.tools.tool_host import ToolHost, run_ours

pytestmark = [pytest.mark.peer, pytest.mark.full, pytest.mark.timeout(1200)]
OURS, THEIRS = Flavour.KAFKAPY, Flavour.KAFKA_43
CLUSTERS = {
    "ours": [Spec(OURS), Spec(OURS), Spec(OURS), Spec(OURS, BROKER)],
    "mixed": [Spec(OURS), Spec(OURS), Spec(THEIRS), Spec(OURS, BROKER)],
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_hundred_partitions_move_under_load(tmp_path: Path, name: str) -> None:
    """At the end both tools report the same."""
    with (
        Cluster(tmp_path / "nodes", CLUSTERS[name], properties=UNHURRIED) as cluster,
        Course(cluster, is_transactional=False) as course,
    ):
        targets = move_many_under_load(course, partitions=100, size=100_000, rate=1_000_000)
        plan = {
            "version": 1,
            "partitions": [
                {"topic": each.topic, "partition": each.partition, "replicas": targets[each]} for each in targets
            ],
        }
        path = tmp_path / "plan.json"
        path.write_text(json.dumps(plan))
        (tmp_path / "host").mkdir()
        words = ("--bootstrap-server", cluster.bootstrap, "--verify", "--reassignment-json-file", str(path))
        with ToolHost(kafka_directory("4.3.0"), tmp_path / "host") as host:
            theirs = host.run("reassign-partitions", *words, "--preserve-throttles")
        ours = run_ours("reassign-partitions", *words, "--preserve-throttles")
        assert ours == theirs
        assert ours.out.count("is completed.") == len(targets)
