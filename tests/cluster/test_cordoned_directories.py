"""`cordoned.log.dirs` (KIP-1066) on our cluster and on Apache Kafka's: reports, placement and refused values."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.client.admin import Admin, ConfigChange, ConfigResource, NewTopic, ResourceType
from kafkapy.errors import ApiError, Error
from tests.cluster.cluster import Cluster, Spec
from tests.cluster.nodes import BOTH, BROKER, Flavour
from tests.cluster.test_failing_disks import image_of

pytestmark = pytest.mark.timeout(180)
KEY = "cordoned.log.dirs"
BROKER_1 = ConfigResource(ResourceType.BROKER, "1")


def cordon(admin: Admin, value: str) -> None:
    admin.incremental_alter_configs({BROKER_1: [ConfigChange(KEY, value)]}).check()


@pytest.mark.parametrize(
    "flavour", [Flavour.KAFKAPY, pytest.param(Flavour.KAFKA_43, marks=pytest.mark.peer)], ids=lambda each: each.value
)
def test_cordoned_directories_get_no_new_partitions(tmp_path: Path, flavour: Flavour) -> None:
    cluster = Cluster(tmp_path, [Spec(flavour, BOTH), Spec(flavour, BROKER)])
    node = cluster[1]
    first, second = node.directory / "logs", node.directory / "more"
    node.properties["log.dirs"] = f"{first},{second}"
    node.write_config(cluster._quorum)

    def await_cordoned(count: int) -> None:
        def read() -> bool:
            return len(image_of(cluster).brokers[1].cordoned_log_dirs or ()) == count

        cluster.wait_for(f"{count} cordoned directories", read)

    def places(topic: str) -> tuple[int, int]:
        """Creates four partitions on broker 1, and returns how many are in each of its directories."""
        admin.create_topics([NewTopic(topic, assignments={number: [1] for number in range(4)})]).check()
        cluster.wait_for("the logs", lambda: len([*first.glob(f"{topic}-*"), *second.glob(f"{topic}-*")]) == 4)
        found = ([*first.glob(f"{topic}-*")], [*second.glob(f"{topic}-*")])
        return len(found[0]), len(found[1])

    def described() -> dict[Path, bool]:
        return {Path(path): each.is_cordoned for path, each in admin.describe_log_dirs([1])[1].items()}

    with cluster, cluster.admin() as admin:
        cordon(admin, str(second))
        await_cordoned(1)
        assert places("a") == (4, 0)
        cordon(admin, str(first))
        cluster.wait_for("the description", lambda: described() == {first: True, second: False})
        cordon(admin, "*")
        await_cordoned(2)
        with pytest.raises(ApiError, match="some brokers have all their log directories cordoned") as raised:
            admin.create_topics([NewTopic("b", 1, 2)]).check()
        assert raised.value.error is Error.INVALID_REPLICATION_FACTOR
        admin.create_topics([NewTopic("c", 3, 1)]).check()
        assert [each.replicas for each in image_of(cluster).topics.by_name["c"].partitions.values()] == [(2,)] * 3
        for value, reason in (
            (
                "/no",
                "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : /no",
            ),
            (f"*,{first}", "When cordoned.log.dirs is set to *, it must not contain other values"),
        ):
            with pytest.raises(ApiError) as raised:
                cordon(admin, value)
            assert (raised.value.error, raised.value.message) == (
                Error.INVALID_REQUEST,
                f"requirement failed: {reason}",
            )
        cordon(admin, "")
        await_cordoned(0)
        assert places("d") == (0, 4)  # the directory that has fewer partitions
