"""The throttle of a reassignment holds its rate for a minute, as exactly as Apache Kafka's."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.types import TopicPartition
from tests.cluster.cluster import UNHURRIED, Cluster, Spec
from tests.cluster.nodes import BROKER, Flavour
from tests.cluster.reassignments import (
    create_filled_topic,
    is_reassigning,
    measured_rate,
    size_on_disk,
    start_throttled,
)

pytestmark = [pytest.mark.peer, pytest.mark.full, pytest.mark.timeout(600)]
RATE = 1_000_000
SECONDS = 60
PARTITIONS = 4
TOLERANCE = 0.05


@pytest.mark.parametrize("flavour", [Flavour.KAFKAPY, Flavour.KAFKA_43])
def test_the_rate_of_a_reassignment_is_the_throttle(tmp_path: Path, flavour: Flavour) -> None:
    """The first second is left out: the first fetch is not limited."""
    with Cluster(tmp_path, [Spec(flavour), Spec(flavour, BROKER)], properties=UNHURRIED) as cluster:
        size = RATE * (SECONDS + 40) // PARTITIONS
        create_filled_topic(cluster, "moved", {number: [1] for number in range(PARTITIONS)}, size)
        with cluster.admin() as admin:
            start_throttled(admin, {TopicPartition("moved", number): [2] for number in range(PARTITIONS)}, RATE)
        cluster.wait_for("first records", lambda: size_on_disk(cluster[2], "moved") > RATE)
        rate = measured_rate(cluster[2], "moved", SECONDS)
        print(f"{flavour.name}: {rate:.0f} B/s with a throttle of {RATE} B/s")
        assert is_reassigning(cluster), "too few records"
        assert abs(rate - RATE) <= TOLERANCE * RATE
