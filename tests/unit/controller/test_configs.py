"""Changes of configuration: operations, validation, records."""

import pytest

from kafkapy.controller.configs import (
    ConfigChange,
    OperationType,
    incremental_alter_configs,
    legacy_alter_configs,
)
from kafkapy.controller.settings import ControllerSettings, effective_min_isr, may_elect_uncleanly
from kafkapy.controller.topics import NewTopic, create_topics
from kafkapy.errors import Error
from kafkapy.metadata.image import BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from tests.harness.metadata import bootstrapped, broker_config, commit, rules, with_brokers, with_topic

CONFIG = broker_config()
TOPIC = (TOPIC_RESOURCE, "t")
IMAGE = with_topic(with_brokers(bootstrapped(), 1), "t")
SET, DELETE, APPEND, SUBTRACT = OperationType


def alter(image, resource, *changes, **options):
    result = incremental_alter_configs(
        image, CONFIG, {resource: [ConfigChange(*change) for change in changes]}, **options
    )
    error = result.response[resource]
    return commit(image, result), Error(error.error), error.message


def overrides(image, resource, *changes):
    image, error, message = alter(image, resource, *changes)
    assert error is Error.NONE, message
    return image.config(*resource)


def test_a_key_is_set_and_deleted():
    image, _, _ = alter(IMAGE, TOPIC, ("retention.ms", SET, "5"))
    assert image.config(*TOPIC) == {"retention.ms": "5"}
    assert overrides(image, TOPIC, ("retention.ms", DELETE, None)) == {}
    assert overrides(image, TOPIC, ("segment.bytes", SET, "1048576")) == {
        "retention.ms": "5", "segment.bytes": "1048576",
    }  # fmt: skip


def test_lists_grow_from_the_default_and_shrink():
    assert overrides(IMAGE, TOPIC, ("cleanup.policy", APPEND, "compact")) == {"cleanup.policy": "delete,compact"}
    image, _, _ = alter(IMAGE, TOPIC, ("cleanup.policy", SET, "compact,delete"))
    assert overrides(image, TOPIC, ("cleanup.policy", SUBTRACT, "delete")) == {"cleanup.policy": "compact"}
    assert overrides(image, TOPIC, ("cleanup.policy", APPEND, "delete")) == {"cleanup.policy": "compact,delete"}


def test_unchanged_values_of_topics_write_nothing_those_of_brokers_do():
    image, _, _ = alter(IMAGE, TOPIC, ("retention.ms", SET, "5"))
    change = [ConfigChange("retention.ms", SET, "5")]
    assert not incremental_alter_configs(image, CONFIG, {TOPIC: change}).records
    resource = (BROKER_RESOURCE, "")
    image, _, _ = alter(IMAGE, resource, ("log.cleaner.threads", SET, "2"))
    change = [ConfigChange("log.cleaner.threads", SET, "2")]
    assert len(incremental_alter_configs(image, CONFIG, {resource: change}).records) == 1


@pytest.mark.parametrize(
    ("resource", "change", "error", "message"),
    [
        (TOPIC, ("foo", SET, "1"), Error.INVALID_CONFIG, "Unknown topic config name: foo"),
        (TOPIC, ("retention.ms", APPEND, "1"), Error.INVALID_CONFIG,
         "Can't APPEND to key retention.ms because its type is not LIST."),
        (TOPIC, ("retention.ms", 9, "1"), Error.INVALID_REQUEST, "Unknown AlterConfigOp op type 9"),
        ((TOPIC_RESOURCE, "x"), ("retention.ms", SET, "1"), Error.UNKNOWN_TOPIC_OR_PARTITION,
         "The topic 'x' does not exist."),
        ((BROKER_RESOURCE, "7"), ("log.retention.ms", SET, "1"), Error.BROKER_ID_NOT_REGISTERED,
         "Broker ID 7 is not registered."),
        ((BROKER_RESOURCE, "1"), ("min.insync.replicas", SET, "1"), Error.INVALID_CONFIG,
         "Broker-level min.insync.replicas cannot be altered while ELR is enabled."),
        ((BROKER_RESOURCE, ""), ("min.insync.replicas", DELETE, None), Error.INVALID_CONFIG,
         "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."),
        ((GROUP_RESOURCE, "g"), ("foo", SET, "1"), Error.INVALID_CONFIG, "Unknown group config name: foo"),
        ((GROUP_RESOURCE, ""), ("foo", SET, "1"), Error.INVALID_REQUEST, "Default group resources are not allowed."),
        ((CLIENT_METRICS_RESOURCE, "m"), ("foo", SET, "1"), Error.INVALID_REQUEST,
         "Unknown client metrics configuration: foo"),
        ((99, "m"), ("foo", SET, "1"), Error.INVALID_REQUEST, "Unexpected resource type 99."),
    ],
)  # fmt: skip
def test_invalid_changes_are_refused_in_kafkas_words(resource, change, error, message):
    after, *found = alter(IMAGE, resource, change)
    assert found == [error, message] and after.configs == IMAGE.configs


def test_validate_only_writes_nothing():
    after, error, _ = alter(IMAGE, TOPIC, ("retention.ms", SET, "5"), validate_only=True)
    assert error is Error.NONE and after.configs == IMAGE.configs


def test_legacy_replaces_everything():
    image, _, _ = alter(IMAGE, TOPIC, ("retention.ms", SET, "5"), ("segment.bytes", SET, "1048576"))
    result = legacy_alter_configs(image, CONFIG, {TOPIC: {"retention.ms": "6", "flush.ms": "7"}})
    assert commit(image, result).config(*TOPIC) == {"retention.ms": "6", "flush.ms": "7"}


def test_a_changed_min_isr_clears_the_eligible_leader_replicas():
    """Compares with the records that Apache Kafka wrote, for a topic and for the cluster's default."""
    for resource, name in ((TOPIC, "t"), ((BROKER_RESOURCE, ""), "")):
        changes = {resource: [ConfigChange("min.insync.replicas", SET, "2")]}
        records = incremental_alter_configs(IMAGE, CONFIG, changes).records
        assert [type(message).__name__ for message, _ in records] == ["ConfigRecord", "ClearElrRecord"]
        assert records[1][0].topic_name == name
    without_elr = with_topic(with_brokers(bootstrapped(21, elr=False), 1), "t")
    changes = {TOPIC: [ConfigChange("min.insync.replicas", SET, "2")]}
    assert len(incremental_alter_configs(without_elr, CONFIG, changes).records) == 1


def test_the_topic_then_the_controller_then_the_cluster_decide_the_min_isr():
    brokers = with_brokers(bootstrapped(21, elr=False), 1, 2, 3, 4)
    image = with_topic(with_topic(brokers, "t", 1, 4), "one", 1, 1)
    settings = ControllerSettings(7, min_insync_replicas=4)
    assert effective_min_isr(image, "t", settings) == 4
    assert effective_min_isr(image, "one", settings) == 1  # at most the number of replicas
    for resource, value in (((BROKER_RESOURCE, ""), 3), ((BROKER_RESOURCE, "7"), 2), (TOPIC, 1)):
        image = image._replace(configs=image.configs | {resource: {"min.insync.replicas": str(value)}})
        assert effective_min_isr(image, "t", settings) == value


def test_the_topic_then_the_controller_then_the_cluster_allow_unclean_elections():
    key = "unclean.leader.election.enable"
    settings = ControllerSettings(1, unclean_leader_election=True)
    assert may_elect_uncleanly(IMAGE, "t", settings) and not may_elect_uncleanly(IMAGE, "t")
    image = IMAGE
    for resource, value in (((BROKER_RESOURCE, ""), False), ((BROKER_RESOURCE, "1"), True), (TOPIC, False)):
        image = image._replace(configs=image.configs | {resource: {key: str(value).lower()}})
        assert may_elect_uncleanly(image, "t", settings) is value


def test_a_new_topic_with_a_min_isr_clears_its_eligible_leader_replicas():
    new = [NewTopic("u", 1, 1, configs={"min.insync.replicas": "1"})]
    records = create_topics(IMAGE, new, rules()).records
    assert [type(message).__name__ for message, _ in records] == [
        "TopicRecord", "ConfigRecord", "ClearElrRecord", "PartitionRecord",
    ]  # fmt: skip
