"""Clusters of kafkapy and Apache Kafka 4.3: traffic passes between them and every promise is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, Spec
from tests.cluster.nodes import BROKER, CONTROLLER, Flavour
from tests.cluster.scenarios import Course

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
OURS, THEIRS = Flavour.KAFKAPY, Flavour.KAFKA_43
CLUSTERS = {
    "two of ours and one of theirs": [Spec(OURS), Spec(OURS), Spec(THEIRS)],
    "our brokers under their controller": [Spec(THEIRS, CONTROLLER), Spec(OURS, BROKER), Spec(OURS, BROKER)],
    "a broker of theirs under our controller": [Spec(OURS, CONTROLLER), Spec(THEIRS, BROKER), Spec(OURS, BROKER)],
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_records_pass_through_a_mixed_cluster(tmp_path: Path, name: str) -> None:
    with Cluster(tmp_path, CLUSTERS[name]) as cluster, Course(cluster, is_transactional=False) as course:
        course.await_progress()
