"""The page of a share group shows the deliveries that its coordinator has stored."""

from __future__ import annotations

import re
import time

import pytest

from kafkapy.client import AcknowledgeType, Admin, Producer, ShareConsumer
from kafkapy.client.admin import ConfigChange, ConfigResource, NewTopic, ResourceType
from kafkapy.console.share_state import ACKNOWLEDGED, ARCHIVED, AVAILABLE, Deliveries, _Partition
from tests.broker_process import BrokerProcess
from tests.console_process import ConsoleProcess

PROPERTIES = {
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "offsets.topic.num.partitions": "1",
}


@pytest.fixture(scope="module")
def share_broker(tmp_path_factory):
    with BrokerProcess(tmp_path_factory.mktemp("share-broker"), PROPERTIES) as running:
        yield running


def acknowledge(bootstrap: str, outcomes: dict[bytes, AcknowledgeType], most: int) -> None:
    """Reads records in the group until each was delivered `most` times, or is finished by its outcome."""
    settings = {"share.acknowledgement.mode": "explicit", "group.id": "workers", "bootstrap.servers": bootstrap}
    with ShareConsumer(settings) as consumer:
        consumer.subscribe("tasks")
        counts: dict[bytes, int] = {}
        while any(
            counts.get(value, 0) < (most if each is AcknowledgeType.RELEASE else 1) for value, each in outcomes.items()
        ):
            for record in consumer.poll(1.0):
                counts[record.value] = record.delivery_count
                consumer.acknowledge(record, outcomes[record.value])
            consumer.commit(30)


def test_the_page_shows_deliveries(share_broker, tmp_path):
    bootstrap = share_broker.bootstrap
    with Admin(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic("tasks", 1, 1)]).check()
        resource = ConfigResource(ResourceType.GROUP, "workers")
        admin.incremental_alter_configs({resource: [ConfigChange("share.auto.offset.reset", "earliest")]}).check()
    with Producer(bootstrap_servers=bootstrap, linger_ms=1000) as producer:
        for value in ("slow", "bad", "good"):
            producer.send("tasks", value)
    outcomes = {b"slow": AcknowledgeType.RELEASE, b"bad": AcknowledgeType.REJECT, b"good": AcknowledgeType.ACCEPT}
    acknowledge(bootstrap, outcomes, most=3)
    with ConsoleProcess(tmp_path, "--bootstrap-server", bootstrap, "--name", "test") as console:
        visitor = console.visitor()
        pattern = re.compile(r"tasks 0 0 3 1 1 (\d+) 1 Deliveries are those that the coordinator has stored")
        found, plain, end_s = None, "", time.monotonic() + 90
        while found is None:  # values are shown for up to ten seconds after they were read
            assert time.monotonic() < end_s, plain
            plain = visitor.get("/c/test/group?id=workers").plain
            found = pattern.search(plain)
        assert int(found[1]) >= 2


def test_updates_replace_parts_of_earlier_ranges():
    partition = _Partition()
    partition.apply(0, [(0, 99, AVAILABLE, 1)], is_snapshot=True)
    partition.apply(-1, [(10, 19, ACKNOWLEDGED, 1), (50, 50, ARCHIVED, 5), (60, 60, AVAILABLE, 3)], is_snapshot=False)
    assert partition.deliveries() == Deliveries(again=89, acknowledged=10, archived=1, most_deliveries=3)
    partition.apply(20, [], is_snapshot=False)
    assert partition.deliveries() == Deliveries(again=79, acknowledged=0, archived=1, most_deliveries=3)
    partition.apply(55, [(55, 99, AVAILABLE, 0)], is_snapshot=True)
    assert partition.deliveries() == Deliveries(again=0, acknowledged=0, archived=0, most_deliveries=0)
