"""ACLs in clusters of kafkapy and Apache Kafka: every node knows them, also one that starts from a snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.client.admin import (
    AccessControlEntry,
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    Admin,
)
from tests.cluster.cluster import Cluster, Spec
from tests.cluster.nodes import Flavour

pytestmark = [pytest.mark.timeout(300)]
PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "metadata.log.max.record.bytes.between.snapshots": "2000",
}
OURS, THEIRS = Spec(Flavour.KAFKAPY), Spec(Flavour.KAFKA_43)
MIXED = pytest.param([OURS, THEIRS, OURS], marks=pytest.mark.peer, id="mixed")


TOPICS = [
    AccessControlEntry(
        AclResourceType.TOPIC, f"t{number}", AclPatternType.LITERAL, "User:ada", "*", AclOperation.READ,
        AclPermission.ALLOW,
    )
    for number in range(100)
]  # fmt: skip


@pytest.fixture(params=[pytest.param([OURS] * 3, id="kafkapy"), MIXED])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, request.param, properties=PROPERTIES) as cluster:
        yield cluster


def wait_for_acls(cluster: Cluster, node_id: int, expected: set[AccessControlEntry]) -> None:
    with Admin(bootstrap_servers=cluster[node_id].bootstrap) as admin:
        cluster.wait_for(f"ACLs on node {node_id}", lambda: set(admin.describe_acls()) == expected)


def delete(cluster: Cluster, entry: AccessControlEntry) -> None:
    """Deletes an ACL; tries again while the cluster has no active controller."""
    wanted = AclFilter(entry.resource_type, entry.resource_name)

    def is_deleted() -> bool:
        with Admin(bootstrap_servers=cluster.bootstrap) as admin:
            return not admin.delete_acls([wanted])[wanted] and not admin.describe_acls(wanted)

    cluster.wait_for("the deletion of an ACL", is_deleted)


def test_every_node_has_the_acls(cluster: Cluster):
    expected = set(TOPICS)
    with Admin(bootstrap_servers=cluster[1].bootstrap) as admin:
        admin.create_acls(TOPICS).check()
    for deleted, (node_id, node) in zip(TOPICS, cluster.nodes.items(), strict=False):
        wait_for_acls(cluster, node_id, expected)
        node.stop()
        delete(cluster, deleted)
        expected.discard(deleted)
        node.start()
        wait_for_acls(cluster, node_id, expected)
