"""DescribeConfigs of kafkapy compared with Apache Kafka: the same file and changes lead to the same responses."""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka

PROPERTIES = {
    "log.retention.hours": "1",
    "log.roll.hours": "2",
    "log.flush.scheduler.interval.ms": "77",
    "num.io.threads": "+4",
    "ssl.key.password": "pa55",
    "a.custom.key": "pa55",
}
RESOURCES = (
    (ResourceType.BROKER, "1"),
    (ResourceType.TOPIC, "plain"),
    (ResourceType.TOPIC, "own"),
)
# type and name of a resource, and the values that are set while the broker runs
CHANGES = (
    (ResourceType.BROKER, "1", {"log.retention.ms": "100", "listener.name.plaintext.max.connections": "5"}),
    (ResourceType.TOPIC, "own", {"retention.ms": "300", "cleanup.policy": "compact,delete"}),
)
# keys whose values depend on the directory or the port
LOCAL = {"advertised.listeners", "controller.quorum.voters", "listeners", "log.dirs"}


def answers(bootstrap: str) -> dict[tuple[str, str], dict[str, tuple[object, ...]]]:
    """Makes the changes; returns value, source, flags and synonyms by resource and key."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic("plain", 1, 1), NewTopic("own", 1, 1)]
    for future in admin.create_topics(topics).values():
        future.result(30)
    for kind, name, settings in CHANGES:
        changes = [
            ConfigEntry(key, text, incremental_operation=AlterConfigOpType.SET) for key, text in settings.items()
        ]
        resource = ConfigResource(kind, name, incremental_configs=changes)
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(30)
    deadline = time.monotonic() + 30
    while True:  # a broker applies changes after it has acknowledged them
        found = {(kind.name, name): describe(admin, kind, name) for kind, name in RESOURCES}
        if found["BROKER", "1"]["log.retention.ms"][0] == "100" and found["TOPIC", "own"]["retention.ms"][0] == "300":
            return found
        assert time.monotonic() < deadline, "the changes do not show"
        time.sleep(0.05)


def describe(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, tuple[object, ...]]:
    (future,) = admin.describe_configs([ConfigResource(kind, name)]).values()
    return {key: _shown(entry) for key, entry in future.result(30).items() if key not in LOCAL}


def _shown(entry: ConfigEntry) -> tuple[object, ...]:
    synonyms = [(each.name, each.value, each.source) for each in entry.synonyms.values()]
    return (entry.value, entry.source, entry.is_read_only, entry.is_sensitive, entry.is_default, synonyms)


def test_same_answers_as_apache_kafka(tmp_path: Path, kafka_43: Path) -> None:
    peer = ApacheKafka(kafka_43, tmp_path / "peer", properties=PROPERTIES)
    config = tmp_path / "server.properties"
    config.write_text(peer.config.read_text().replace(str(peer.log_dirs[0]), str(tmp_path / "data")))
    with peer:
        theirs = answers(peer.bootstrap)
    with BrokerProcess(tmp_path / "kafkapy", config=config, port=peer.port) as broker:
        ours = answers(broker.bootstrap)
    for resource, entries in theirs.items():
        assert entries.keys() == ours[resource].keys()
        pairs = [(key, entry, ours[resource][key]) for key, entry in entries.items()]
        different = [(key, their_entry, our_entry) for key, their_entry, our_entry in pairs if their_entry != our_entry]
        assert not different, "\n".join(map(str, different))
