"""A directory with ACLs passes between Apache Kafka and kafkapy: both apply and change the same ACLs."""

from __future__ import annotations

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
from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka
from tests.server_process import ServerProcess
from tests.swap.swap import HEAP, end

PROPERTIES = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "metadata.log.max.record.bytes.between.snapshots": "2000",
}


def entries(turn: int) -> list[AccessControlEntry]:
    """Returns ACLs of every kind. `turn` counts the changes of the broker on one directory; it is part of all names."""
    return [
        AccessControlEntry(
            resource_type, "kafka-cluster" if resource_type is AclResourceType.CLUSTER else f"{turn}.é*", pattern_type,
            f"User:CN=user {turn},O=\\,x", host, operation, permission,
        )
        for resource_type in AclResourceType
        if resource_type > AclResourceType.ANY
        for pattern_type in (AclPatternType.LITERAL, AclPatternType.PREFIXED)
        for host in ("*", f"10.0.0.{turn}")
        for operation in (AclOperation.ALL, AclOperation.DESCRIBE)
        for permission in (AclPermission.ALLOW, AclPermission.DENY)
    ]  # fmt: skip


@pytest.mark.timeout(300)
def test_acls_are_kept_when_the_broker_is_killed_and_replaced(kafka_43: Path, tmp_path: Path) -> None:
    kafka = ApacheKafka(kafka_43, tmp_path, dynamic=True, heap=HEAP, properties=PROPERTIES)
    ours = BrokerProcess(tmp_path, config=kafka.config, port=kafka.port)
    expected: set[AccessControlEntry] = set()
    turns: list[ServerProcess] = [ours, kafka, ours, kafka]
    for turn, server in enumerate(turns, 1):
        server.start()
        try:
            with Admin(bootstrap_servers=server.bootstrap) as admin:
                assert set(admin.describe_acls()) == expected, f"turn {turn}"
                added = entries(turn)
                admin.create_acls(added).check()
                expected |= set(added)
                removed = AclFilter(principal=f"User:CN=user {turn - 1},O=\\,x", permission_type=AclPermission.DENY)
                deleted = set(admin.delete_acls([removed])[removed])
                assert deleted == {each for each in expected if removed.matches(each)}
                assert bool(deleted) == (turn > 1)
                expected -= deleted
                assert set(admin.describe_acls()) == expected
        finally:
            end(server, killed=True)
