"""The leadership of a quorum of kafkapy and Apache Kafka passes from node to node."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import scenarios
from tests.cluster.cluster import Cluster, Spec
from tests.cluster.nodes import Flavour
from tests.cluster.scenarios import Course

pytestmark = [pytest.mark.peer, pytest.mark.full, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    ("theirs", "release"),
    [(Flavour.KAFKA_43, "4.3-IV0"), (Flavour.KAFKA_39, "3.9-IV0")],
    ids=["one of 4.3", "one of 3.9"],
)
def test_the_quorum_passes_from_node_to_node(tmp_path: Path, theirs: Flavour, release: str) -> None:
    """Each node of three is the active controller once, after a clean stop or a kill of the one before."""
    specs = [Spec(Flavour.KAFKAPY), Spec(theirs), Spec(Flavour.KAFKAPY)]
    flags = ["--release-version", release]
    with Cluster(tmp_path, specs, flags=flags) as cluster, Course(cluster, is_transactional=False) as course:
        scenarios.pass_the_quorum_around(course, cluster.nodes)
        course.await_progress()
