"""The counts of a broker whose only listener needs SASL, and whose authorizer gives the audit's user what it needs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.client import Admin, Producer
from kafkapy.client.admin import NewTopic
from kafkapy.client.reliable.audit import APPENDED, AUDIT_TOPIC, unpack_count
from kafkapy.client.reliable.topic_scan import all_partitions, scan
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl import Operation, PatternType, Permission, ResourceType
from tests.broker_process import BrokerProcess
from tests.ports import free_ports
from tests.reliable.running import wait_until
from tests.security.secured_brokers import ADMIN, secured

AUDITOR = "auditor"
AUDITED_TOPIC = "audited"
RECORDS = 200


def account(user: str) -> dict[str, str]:
    """Returns the properties of a client of this user, whose password is its name."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{module} required username="{user}" password="{user}";',
    }


def allowed(operation: Operation, kind: ResourceType, name: str, pattern: PatternType) -> AccessControlEntry:
    return AccessControlEntry(kind, name, pattern, f"User:{AUDITOR}", "*", operation, Permission.ALLOW)


# What docs/reliable.md says that the user needs.
PERMISSIONS = [
    allowed(Operation.CREATE, ResourceType.TOPIC, AUDIT_TOPIC, PatternType.LITERAL),
    allowed(Operation.WRITE, ResourceType.TOPIC, AUDIT_TOPIC, PatternType.LITERAL),
    allowed(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "kafkapy-audit-broker-", PatternType.PREFIXED),
    allowed(Operation.READ, ResourceType.GROUP, "__kafkapy_audit", PatternType.LITERAL),
    allowed(Operation.READ, ResourceType.TOPIC, AUDITED_TOPIC, PatternType.LITERAL),
]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    config = tmp_path / "auditor.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in account(AUDITOR).items()))
    port, controller_port = free_ports(2)
    properties = {
        **secured(port, controller_port, [AUDITOR]),
        "kafkapy.audit.topics": AUDITED_TOPIC,
        "kafkapy.audit.client.config": str(config),
    }
    with BrokerProcess(tmp_path, properties, port=port) as running:
        yield running


def counts(properties: dict[str, str]) -> Counter[tuple[str, str]]:
    """Returns the numbers of appended records that the broker has counted, by topic and client."""
    found: Counter[tuple[str, str]] = Counter()
    for record in scan(properties, dict.fromkeys(all_partitions(properties, AUDIT_TOPIC))):
        count = unpack_count(record.value)
        if count.tier == APPENDED:
            found[count.topic, count.client] += count.number
    return found


def test_records_are_counted_once_although_the_user_gets_its_permissions_late(broker):
    properties = {"bootstrap.servers": broker.bootstrap, **account(ADMIN)}
    with Admin(properties) as admin:
        admin.create_topics([NewTopic(AUDITED_TOPIC, 1, 1)]).check()
        with Producer({**properties, "client.id": "shop"}) as producer:
            for number in range(RECORDS):
                producer.send(AUDITED_TOPIC, b"%d" % number)
        wait_until(lambda: "The audit counts again from its last position on" in broker.log())
        assert AUDIT_TOPIC not in admin.list_topics()
        admin.create_acls(PERMISSIONS).check()
        wait_until(lambda: AUDIT_TOPIC in admin.list_topics())
    wait_until(lambda: counts(properties))
    time.sleep(2)  # a second count of the same records would arrive in this time
    assert counts(properties) == {(AUDITED_TOPIC, "shop"): RECORDS}
