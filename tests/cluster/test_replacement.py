"""Three nodes of Apache Kafka are replaced by kafkapy's and back, one at a time, under producers and a chain.

The longer courses are in tests/full/test_replacement_full.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import scenarios
from tests.cluster.chain import KafkapyChain
from tests.cluster.cluster import UNHURRIED, Cluster, three
from tests.cluster.nodes import Flavour
from tests.cluster.scenarios import Course

pytestmark = [pytest.mark.peer, pytest.mark.timeout(600)]
OURS, THEIRS = Flavour.KAFKAPY, Flavour.KAFKA_43


def test_the_programs_change_on_the_same_directories(tmp_path: Path) -> None:
    with (
        Cluster(tmp_path, three(THEIRS), properties=UNHURRIED) as cluster,
        Course(cluster, is_transactional=False, make_chain=KafkapyChain) as course,
    ):
        scenarios.roll(course, OURS, THEIRS)


def test_new_nodes_replace_the_old_ones(tmp_path: Path) -> None:
    with (
        Cluster(tmp_path, three(THEIRS), properties=UNHURRIED) as cluster,
        Course(cluster, is_transactional=False, make_chain=KafkapyChain) as course,
    ):
        scenarios.replace_by_new_nodes(course, OURS)
