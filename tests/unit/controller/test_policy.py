"""The administrator's policies, called by CreateTopics and (Incremental)AlterConfigs as by Apache Kafka 4.3."""

import logging

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.controller.policy import AlterConfigRequest, CreateTopicRequest, Policies
from kafkapy.errors import ConfigError, Error
from kafkapy.metadata.image import BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, TOPIC_RESOURCE
from kafkapy.protocol.messages.alter_configs import AlterConfigsRequest
from kafkapy.protocol.messages.create_partitions import CreatePartitionsRequest
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkapy.server.auto_topic_creation import create_missing_topic
from kafkapy.server.handlers.configs import handle_alter_configs, handle_incremental_alter_configs
from kafkapy.server.handlers.topics import handle_create_partitions, handle_create_topics
from tests.harness.admin import AdminHarness, error_of
from tests.policies import FailsToConfigure, NamePolicy, RetentionPolicy

SET, DELETE, APPEND = 0, 1, 2
REFUSED = {
    "violation": (Error.POLICY_VIOLATION, "not like this"),
    "api": (Error.INVALID_TOPIC_EXCEPTION, "another error"),
    "broken": (Error.UNKNOWN_SERVER_ERROR, None),
}
POLICIES = {
    "create.topic.policy.class.name": "tests.policies:NamePolicy",
    "alter.config.policy.class.name": "tests.policies.RetentionPolicy",
    "my.key": "seven",
}


@pytest.fixture
def harness(tmp_path):
    harness = AdminHarness(tmp_path / "data", **POLICIES)
    harness.create_topic("t")
    yield harness
    harness.loop.stop()


def create(harness, name, partitions=1, replication_factor=1, configs=(), assignments=(), version=7, **fields):
    topic = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in configs],
        assignments=[
            CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
            for index, replicas in assignments
        ],
    )
    [answer] = harness.send(handle_create_topics, CreateTopicsRequest(topics=[topic], **fields), version).topics
    return error_of(answer)


def alter(harness, kind, name, *changes, **fields):
    """Applies changes (key, operation, value)."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], **fields)
    [answer] = harness.send(handle_incremental_alter_configs, request, 1).responses
    return error_of(answer)


def alter_all(harness, *entries):
    resource = AlterConfigsRequest.AlterConfigsResource(
        resource_type=TOPIC_RESOURCE,
        resource_name="t",
        configs=[AlterConfigsRequest.AlterableConfig(name=key, value=value) for key, value in entries],
    )
    [answer] = harness.send(handle_alter_configs, AlterConfigsRequest(resources=[resource]), 2).responses
    return error_of(answer)


@pytest.mark.parametrize("version", [2, 7])
@pytest.mark.parametrize("word", REFUSED)
@pytest.mark.parametrize("validate_only", [False, True])
def test_a_topic_that_the_policy_refuses(harness, word, version, validate_only):
    assert create(harness, f"{word}-topic", version=version, validate_only=validate_only) == REFUSED[word]
    assert f"{word}-topic" not in harness.metadata.image.topics.by_name


def test_what_the_policy_of_topics_sees(harness):
    assert create(harness, "counted", 2, 1, [("retention.ms", "5000")])[0] == Error.NONE
    assert create(harness, "defaults", -1, -1)[0] == Error.NONE
    assert create(harness, "assigned", -1, -1, assignments=[(0, [1]), (1, [1])])[0] == Error.NONE
    assert create(harness, "violation-too", 1, 3)[0] == Error.INVALID_REPLICATION_FACTOR
    assert create(harness, "violation too")[0] == Error.INVALID_TOPIC_EXCEPTION
    assert NamePolicy.seen == [
        CreateTopicRequest("counted", 2, 1, None, {"retention.ms": "5000"}),
        CreateTopicRequest("defaults", 1, 1, None, {}),
        CreateTopicRequest("assigned", None, None, {0: (1,), 1: (1,)}, {}),
    ]
    # The configuration of a new topic is shown to the other policy too.
    assert RetentionPolicy.seen == [AlterConfigRequest(TOPIC_RESOURCE, "counted", {"retention.ms": "5000"})]


def test_a_topic_whose_configuration_is_refused(harness):
    assert create(harness, "topic", configs=[("retention.ms", "666")]) == REFUSED["violation"]


def test_a_topic_that_would_be_created_by_itself(harness, caplog):
    create_missing_topic(harness.services, "violation-topic")
    assert create(harness, "after")[0] == Error.NONE  # The controller calls the policies.
    assert "violation-topic" not in harness.metadata.image.topics.by_name


def test_more_partitions_are_not_asked_about(harness):
    topic = CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=3, assignments=None)
    [answer] = harness.send(handle_create_partitions, CreatePartitionsRequest(topics=[topic]), 3).results
    assert (answer.error_code, NamePolicy.seen) == (0, [])


@pytest.mark.parametrize("value", RetentionPolicy.WORDS)
def test_a_change_that_the_policy_refuses(harness, value):
    refused = REFUSED[RetentionPolicy.WORDS[value]]
    assert alter(harness, TOPIC_RESOURCE, "t", ("retention.ms", SET, value)) == refused
    assert alter(harness, TOPIC_RESOURCE, "t", ("retention.ms", SET, value), validate_only=True) == refused
    assert alter_all(harness, ("retention.ms", value)) == refused
    assert not harness.metadata.image.config(TOPIC_RESOURCE, "t")


def test_what_the_policy_of_changes_sees(harness):
    assert (
        alter(harness, TOPIC_RESOURCE, "t", ("segment.bytes", SET, "2000000"), ("retention.ms", DELETE, None))[0] == 0
    )
    assert alter(harness, TOPIC_RESOURCE, "t", ("cleanup.policy", APPEND, "compact"))[0] == 0
    assert alter(harness, BROKER_RESOURCE, "", ("num.io.threads", SET, "9"))[0] == 0
    assert alter(harness, CLIENT_METRICS_RESOURCE, "sub", ("interval.ms", SET, "1000"))[0] == 0
    assert alter_all(harness, ("max.message.bytes", "2001"))[0] == 0
    assert alter(harness, TOPIC_RESOURCE, "t", ("segment.bytes", SET, "x"))[0] == Error.INVALID_CONFIG
    assert RetentionPolicy.seen == [
        AlterConfigRequest(TOPIC_RESOURCE, "t", {"segment.bytes": "2000000", "retention.ms": None}),
        AlterConfigRequest(TOPIC_RESOURCE, "t", {"cleanup.policy": "delete,compact"}),
        AlterConfigRequest(BROKER_RESOURCE, "", {"num.io.threads": "9"}),
        AlterConfigRequest(CLIENT_METRICS_RESOURCE, "sub", {"interval.ms": "1000"}),
        AlterConfigRequest(TOPIC_RESOURCE, "t", {"max.message.bytes": "2001"}),
    ]


def test_configured_and_closed():
    policies = Policies.from_config(BrokerConfig(POLICIES))
    policies.close()
    assert NamePolicy.calls == RetentionPolicy.calls == ["configure seven", "close"]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("tests.policies.WithoutValidate", "it has no method validate"),
        ("tests.policies.FailsToConfigure", "LookupError: no my.key"),
        ("tests.policies.Absent", "tests.policies has no class Absent"),
        ("tests.policies:REFUSED", "has no class REFUSED"),
        ("com.example.Policy", "No module named 'com'"),
        ("Policy", "neither package.module:Class nor package.module.Class"),
        (".policies:Policy", "neither"),
    ],
)
@pytest.mark.parametrize("key", ["create.topic.policy.class.name", "alter.config.policy.class.name"])
def test_a_class_that_cannot_be_a_policy(key, name, complaint):
    with pytest.raises(ConfigError) as caught:
        Policies.from_config(BrokerConfig({key: name}))
    assert str(caught.value).startswith(f"{key}={name}: ")
    assert complaint in str(caught.value)


def test_a_policy_that_fails_to_close(caplog):
    with caplog.at_level(logging.ERROR):
        Policies(FailsToConfigure()).close()
    assert "The policy FailsToConfigure failed to close" in caplog.text
