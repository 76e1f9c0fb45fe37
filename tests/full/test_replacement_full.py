"""Longer replacements of a cluster of Apache Kafka, by kafkapy and back; see tests/cluster/test_replacement.py.

The clusters have static voters, or nodes of 3.9; the traffic comes from librdkafka's transactional producer and a
chain.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import scenarios
from tests.cluster.chain import Chain, KafkapyChain, LibrdkafkaChain
from tests.cluster.cluster import UNHURRIED, Cluster, Voters, three
from tests.cluster.nodes import Flavour
from tests.cluster.scenarios import Course

pytestmark = [pytest.mark.peer, pytest.mark.full, pytest.mark.timeout(1800)]


@pytest.mark.parametrize(
    ("theirs", "release"), [(Flavour.KAFKA_43, "4.3-IV0"), (Flavour.KAFKA_39, "3.9-IV0")], ids=["4.3", "3.9"]
)
@pytest.mark.parametrize("voters", [Voters.STATIC, Voters.INITIAL])
@pytest.mark.parametrize("make_chain", [KafkapyChain, LibrdkafkaChain])
def test_the_programs_change_on_the_same_directories(
    tmp_path: Path, theirs: Flavour, release: str, voters: Voters, make_chain: type[Chain]
) -> None:
    flags = ["--release-version", release]
    with (
        Cluster(tmp_path, three(theirs), voters=voters, properties=UNHURRIED, flags=flags) as cluster,
        Course(cluster, make_chain=make_chain) as course,
    ):
        scenarios.roll(course, Flavour.KAFKAPY, theirs)


@pytest.mark.parametrize("make_chain", [KafkapyChain, LibrdkafkaChain])
def test_new_nodes_replace_the_old_ones(tmp_path: Path, make_chain: type[Chain]) -> None:
    with (
        Cluster(tmp_path, three(Flavour.KAFKA_43), properties=UNHURRIED) as cluster,
        Course(cluster, make_chain=make_chain) as course,
    ):
        scenarios.replace_by_new_nodes(course, Flavour.KAFKAPY)
        scenarios.replace_by_new_nodes(course, Flavour.KAFKA_43)
