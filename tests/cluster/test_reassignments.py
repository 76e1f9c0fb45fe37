"""Reassignments under load: a small sample of tests/full/test_reassignments_full.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, Spec
from tests.cluster.nodes import BROKER
from tests.cluster.reassignments import move_many_under_load
from tests.cluster.scenarios import Course


@pytest.mark.timeout(300)
def test_partitions_move_between_four_and_three_brokers_under_load(tmp_path: Path) -> None:
    specs = [Spec(), Spec(), Spec(), Spec(roles=BROKER)]
    with Cluster(tmp_path, specs) as cluster, Course(cluster, is_transactional=False) as course:
        move_many_under_load(course, partitions=8, size=60_000, rate=200_000)
