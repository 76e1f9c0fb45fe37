"""Clusters of kafkapy and Apache Kafka 4.3 or 3.9: traffic passes between them and every promise is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, Spec, Voters
from tests.cluster.nodes import BROKER, CONTROLLER, Flavour
from tests.cluster.scenarios import Course

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
OURS, THEIRS, OLDER = Flavour.KAFKAPY, Flavour.KAFKA_43, Flavour.KAFKA_39
CLUSTERS = {
    "two of ours and one of theirs": [Spec(OURS), Spec(OURS), Spec(THEIRS)],
    "our brokers under their controller": [Spec(THEIRS, CONTROLLER), Spec(OURS, BROKER), Spec(OURS, BROKER)],
    "a broker of theirs under our controller": [Spec(OURS, CONTROLLER), Spec(THEIRS, BROKER), Spec(OURS, BROKER)],
}
CLUSTERS_WITH_3_9 = {
    "two of ours and one of 3.9": [Spec(OURS), Spec(OLDER), Spec(OURS)],
    "our brokers under a controller of 3.9": [Spec(OLDER, CONTROLLER), Spec(OURS, BROKER), Spec(OURS, BROKER)],
    "a broker of 3.9 under our controller": [Spec(OURS, CONTROLLER), Spec(OLDER, BROKER), Spec(OURS, BROKER)],
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_records_pass_through_a_mixed_cluster(tmp_path: Path, name: str) -> None:
    with Cluster(tmp_path, CLUSTERS[name]) as cluster, Course(cluster, is_transactional=False) as course:
        course.await_progress()


@pytest.mark.parametrize("name", CLUSTERS_WITH_3_9)
@pytest.mark.parametrize(("release", "voters"), [("3.9-IV0", Voters.INITIAL), ("3.3-IV3", Voters.STATIC)])
def test_records_pass_through_a_cluster_with_3_9(tmp_path: Path, name: str, release: str, voters: Voters) -> None:
    """The releases are the highest metadata version of 3.9 and the lowest of 4.x. Voters in the log need 3.9-IV0."""
    flags = ["--release-version", release]
    with Cluster(tmp_path, CLUSTERS_WITH_3_9[name], voters=voters, flags=flags) as cluster, Course(cluster) as course:
        course.await_progress()
