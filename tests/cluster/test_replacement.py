"""New nodes of kafkapy replace three nodes of Apache Kafka, one at a time, under producers and a chain.

The courses on the same directories, and back to Apache Kafka, are in tests/full/test_replacement_full.py.
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


def test_new_nodes_replace_the_old_ones(tmp_path: Path) -> None:
    with (
        Cluster(tmp_path, three(Flavour.KAFKA_43), properties=UNHURRIED) as cluster,
        Course(cluster, is_transactional=False, make_chain=KafkapyChain) as course,
    ):
        scenarios.replace_by_new_nodes(course, Flavour.KAFKAPY)
