"""The doctor's checks of a configuration that the broker accepts."""

from __future__ import annotations

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.tools.diagnosis.configuration import INTERNAL_REPLICATION_KEYS, check_configuration
from tests.diagnosis_machine import complaints

GOOD = {
    "node.id": "1",
    "listeners": "PLAINTEXT://broker.example:9092",
    "log.dirs": "/srv/kafka",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "auto.create.topics.enable": "false",
}


def found_in(**settings: str) -> list[tuple[str, str]]:
    changed = {name.replace("_", "."): value for name, value in settings.items()}
    return complaints(check_configuration(BrokerConfig({**GOOD, **changed})))


def test_a_good_configuration_has_no_findings():
    assert found_in() == []


@pytest.mark.parametrize(
    ("settings", "level", "text"),
    [
        ({"log_retention_hour": "1"}, "warning", "The configuration key log.retention.hour is unknown and is ignored; "
         "did you mean log.retention.hours?"),
        ({"offsets_topic_replication_factor": "3"}, "warning", "offsets.topic.replication.factor is 3, and there is "
         "one broker"),
        ({"share_coordinator_state_topic_replication_factor": "3"}, "warning",
         "share.coordinator.state.topic.replication.factor is 3, and there is one broker"),
        ({"share_coordinator_state_topic_min_isr": "2"}, "warning",
         "share.coordinator.state.topic.min.isr is 2, and there is one broker"),
        ({"min_insync_replicas": "2"}, "warning", "min.insync.replicas is 2, and there is one broker"),
        ({"listeners": "PLAINTEXT://:9092", "advertised_listeners": "PLAINTEXT://localhost:9092"}, "warning",
         "listener PLAINTEXT is open to other machines, which then connect to localhost"),
        ({"listeners": "PLAINTEXT://127.0.0.1:9092"}, "note", "only clients on this machine can connect: "
         "listeners has loopback addresses"),
        ({"log_retention_ms": "-1"}, "warning", "records are retained for ever: there is no limit by time or by size"),
        ({"log_retention_hours": "-1"}, "warning",
         "records are retained for ever: there is no limit by time or by size"),
        ({"auto_create_topics_enable": "true"}, "note", "a misspelt topic name of a client creates a topic"),
        ({"log_dirs": "/tmp/kafka-logs"}, "warning",
         "log directory /tmp/kafka-logs is in a directory that systems clear"),
    ],
)  # fmt: skip
def test_each_mistake_is_one_finding(settings: dict[str, str], level: str, text: str):
    assert found_in(**settings) == [(level, text)]


def test_the_stronger_key_of_retention_takes_effect():
    assert found_in(log_retention_ms="1000", log_retention_hours="-1") == []
    assert found_in(log_retention_ms="-1", log_retention_bytes="1000000") == []


def found_on_a_node(**settings: str) -> list[tuple[str, str]]:
    """Returns the findings on one of three combined nodes, whose internal topics have three replicas."""
    factor = dict.fromkeys(INTERNAL_REPLICATION_KEYS, "3")
    quorum = {
        "process.roles": "broker,controller",
        "listeners": "PLAINTEXT://broker.example:9092,CONTROLLER://broker.example:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@broker.example:9093,2@other.example:9093,3@third.example:9093",
    }
    changed = {name.replace("_", "."): value for name, value in settings.items()}
    return complaints(check_configuration(BrokerConfig({**GOOD, **factor, **quorum, **changed})))


def test_a_node_of_a_cluster_may_have_several_replicas():
    several = {"default_replication_factor": "3", "min_insync_replicas": "2", "transaction_state_log_min_isr": "2"}
    assert found_on_a_node(**several) == []


@pytest.mark.parametrize("key", INTERNAL_REPLICATION_KEYS)
def test_a_node_of_a_cluster_with_one_replica_of_an_internal_topic_is_noted(key: str):
    assert found_on_a_node(**{key.replace(".", "_"): "1"}) == [
        ("note", f"{key} is 1, and this is a node of a cluster: the loss of one broker stops the topic's clients")
    ]


def test_more_replicas_in_sync_than_there_are_replicas_are_reported():
    assert found_on_a_node(min_insync_replicas="2") == [
        ("warning", "min.insync.replicas is 2, and default.replication.factor is 1")
    ]
