"""Clusters of kafkapy: nothing is lost, duplicated or out of order while nodes fail and restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import scenarios
from tests.cluster.cluster import Cluster, Voters, three
from tests.cluster.nodes import Flavour
from tests.cluster.scenarios import Course

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("voters", [Voters.INITIAL, Voters.STATIC])
def test_nothing_is_lost_while_nodes_are_killed_and_paused(tmp_path: Path, voters: Voters) -> None:
    with Cluster(tmp_path, three(Flavour.KAFKAPY), voters=voters) as cluster:
        cluster.wait_for_voters(1, 2, 3)
        with Course(cluster, is_transactional=False) as course:
            scenarios.kill_the_leader(course)
            scenarios.pause_the_controller(course)


def test_nothing_is_lost_in_a_rolling_restart(tmp_path: Path) -> None:
    with Cluster(tmp_path, three(Flavour.KAFKAPY)) as cluster, Course(cluster, is_transactional=False) as course:
        scenarios.roll(course, None)
