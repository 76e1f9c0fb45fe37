"""The metrics of share groups on the page of a running broker, and the doctor's findings about them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkapy.client import AcknowledgeType, Producer, ShareConsumer
from kafkapy.client.admin import Admin, ConfigChange, ConfigResource, NewTopic, ResourceType
from kafkapy.tools.diagnosis.groups import check_groups, read_groups, records_at_limit
from tests.operations.watched_broker import WatchedBroker

PROPERTIES = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.assignment.interval.ms": "0",
}
RECORDS = 150


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedBroker]:
    with WatchedBroker(tmp_path_factory.mktemp("watched"), PROPERTIES) as watched:
        yield watched


def test_a_share_group_is_shown_with_its_lag_and_its_last_deliveries(broker: WatchedBroker) -> None:
    before = broker.page()
    assert before.value("kafka_server_sharesessioncache_sharesessionscount") == 0
    with Admin(bootstrap_servers=broker.bootstrap) as admin, Producer(bootstrap_servers=broker.bootstrap) as producer:
        admin.create_topics([NewTopic("tasks", partitions=1)]).check()
        changes = [ConfigChange("share.auto.offset.reset", "earliest"), ConfigChange("share.delivery.count.limit", "2")]
        admin.incremental_alter_configs({ConfigResource(ResourceType.GROUP, "workers"): changes}).check()
        for number in range(RECORDS):
            producer.send("tasks", str(number))
        producer.flush()
        settings = {"share_acknowledgement_mode": "explicit"}
        with ShareConsumer(bootstrap_servers=broker.bootstrap, group_id="workers", **settings) as consumer:
            consumer.subscribe("tasks")
            released = 0
            while released < RECORDS:
                for record in consumer.poll(60):
                    consumer.acknowledge(record, AcknowledgeType.RELEASE)
                    released += 1
            consumer.commit()
            page = broker.page()
            labels = {"group": "workers", "topic": "tasks", "partition": "0"}
            assert page.value("kafkapy_groups", protocol="share", state="Stable") == 1
            assert page.value("kafka_server_sharesessioncache_sharesessionscount") == 1
            assert page.value("kafka_server_sharesessioncache_sharepartitionscount") == 1
            assert page.value("kafka_server_sharepartitionmetrics_inflightmessagecount", **labels) == RECORDS
            assert page.value("kafka_server_sharepartitionmetrics_inflightbatchcount", **labels) >= 1
            assert page.value("kafka_server_sharepartitionmetrics_acquisitionlocktimeout_total", **labels) == 0
            acknowledged = "kafka_server_sharegroupmetrics_recordacknowledgements_total"
            assert page.value(acknowledged, acktype="Release") == RECORDS
            assert page.value(acknowledged, acktype="Accept") == 0
            assert page.value("kafkapy_sharegroup_lag", **labels) == RECORDS
            assert page.value("kafkapy_sharegroup_last_deliveries", **labels) == RECORDS
            (finding,) = records_at_limit(page.text)
            assert finding.text == f"{RECORDS} records of topic tasks are at the delivery limit of group workers"
        texts = [each.text for each in check_groups(read_groups(admin))]
        assert f"group workers has no members, and {RECORDS} records wait for it" in texts
