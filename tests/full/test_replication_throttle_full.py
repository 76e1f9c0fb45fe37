"""The throttles of reassignments and of moves between directories hold their rates for a minute, as exactly as Apache
Kafka's."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.client.admin import ConfigChange, ConfigResource, Replica, ResourceType
from kafkapy.config.throttle_keys import LOG_DIRS_RATE
from kafkapy.types import TopicPartition
from tests.cluster.cluster import UNHURRIED, Cluster, Spec
from tests.cluster.nodes import BROKER, Flavour
from tests.cluster.reassignments import (
    create_filled_topic,
    growth_per_second,
    is_reassigning,
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
        rate = growth_per_second(lambda: size_on_disk(cluster[2], "moved"), SECONDS)
        print(f"{flavour.name}: {rate:.0f} B/s with a throttle of {RATE} B/s")
        assert is_reassigning(cluster), "too few records"
        assert abs(rate - RATE) <= TOLERANCE * RATE


@pytest.mark.parametrize("flavour", [Flavour.KAFKAPY, Flavour.KAFKA_43])
def test_the_rate_of_a_move_between_directories_is_the_throttle(tmp_path: Path, flavour: Flavour) -> None:
    cluster = Cluster(tmp_path, [Spec(flavour)], properties=UNHURRIED)
    node = cluster[1]
    node.properties["log.dirs"] = f"{node.log_dir},{node.directory / 'more'}"
    node.write_config({"controller.quorum.bootstrap.servers": cluster.bootstrap_controllers})
    with cluster:
        create_filled_topic(cluster, "moved", {0: [1]}, RATE * (SECONDS + 40))
        directories = [node.log_dir, node.directory / "more"]
        source = next(each for each in directories if (each / "moved-0").is_dir())
        target = next(each for each in directories if each != source)
        with cluster.admin() as admin:
            rate_of_node = {ConfigResource(ResourceType.BROKER, "1"): [ConfigChange(LOG_DIRS_RATE, str(RATE))]}
            admin.incremental_alter_configs(rate_of_node).check()
            admin.alter_replica_log_dirs({Replica("moved", 0, 1): str(target)}).check()

        def copied() -> int:
            return sum(path.stat().st_size for path in target.glob("moved-0.*-future/*.log"))

        cluster.wait_for("first records", lambda: copied() > RATE)
        rate = growth_per_second(copied, SECONDS)
        print(f"{flavour.name}: {rate:.0f} B/s between directories with a throttle of {RATE} B/s")
        assert copied(), "too few records"
        # Apache Kafka's was 8 % below its throttle.
        assert flavour is not Flavour.KAFKAPY or abs(rate - RATE) <= TOLERANCE * RATE
