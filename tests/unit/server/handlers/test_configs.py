"""Configuration described and changed, in every version."""

import logging

import pytest

from kafkapy._core.gate.data_gate import DataGate
from kafkapy.config.table import TOPIC_ROWS
from kafkapy.errors import Error
from kafkapy.metadata.image import (
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from kafkapy.protocol.messages.alter_configs import AlterConfigsRequest
from kafkapy.protocol.messages.describe_configs import DescribeConfigsRequest
from kafkapy.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkapy.protocol.messages.list_config_resources import ListConfigResourcesRequest
from kafkapy.server.gate_rights import GateRights
from kafkapy.server.handlers.configs import (
    handle_alter_configs,
    handle_describe_configs,
    handle_incremental_alter_configs,
    handle_list_config_resources,
)
from tests.harness.admin import AdminHarness, error_of
from tests.harness.granted_operations import GrantedOperations

SET, DELETE = 0, 1


@pytest.fixture
def harness(tmp_path):
    harness = AdminHarness(tmp_path / "data")
    harness.create_topic("t")
    yield harness
    harness.loop.stop()


def alter(harness, kind, name, *changes, version=1, **fields):
    """Sends `changes`, each (key, operation, value), and returns the error of the resource."""
    configs = [
        IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=[resource], **fields)
    [answer] = harness.send(handle_incremental_alter_configs, request, version).responses
    assert (answer.resource_type, answer.resource_name) == (kind, name)
    return error_of(answer)


def describe(harness, kind, name, version=4, keys=None, **fields):
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    [result] = harness.send(
        handle_describe_configs, DescribeConfigsRequest(resources=[resource], **fields), version
    ).results
    return error_of(result), {entry.name: entry for entry in result.configs}


@pytest.mark.parametrize("version", range(5))
def test_a_topic_is_described_with_its_override(harness, version):
    assert alter(harness, TOPIC_RESOURCE, "t", ("retention.ms", SET, "5")) == (Error.NONE, None)
    error, entries = describe(harness, TOPIC_RESOURCE, "t", version)
    assert error == (Error.NONE, "") and set(entries) == set(TOPIC_ROWS)
    retention, policy = entries["retention.ms"], entries["cleanup.policy"]
    assert retention.value == "5" and not retention.synonyms and not retention.documentation
    if version == 0:
        assert (retention.is_default, policy.is_default) == (False, True)
    else:
        assert (retention.config_source, policy.config_source) == (1, 5)
    if version >= 3:
        assert (retention.config_type, policy.config_type) == (5, 7)


def test_synonyms_and_documentation_when_asked_for(harness):
    alter(harness, TOPIC_RESOURCE, "t", ("max.message.bytes", SET, "2000000"))
    _, entries = describe(
        harness, TOPIC_RESOURCE, "t", keys=["max.message.bytes"], include_synonyms=True, include_documentation=True
    )
    [entry] = entries.values()
    assert [(each.name, each.value, each.source) for each in entry.synonyms] == [
        ("max.message.bytes", "2000000", 1), ("message.max.bytes", "1048588", 5),
    ]  # fmt: skip
    assert entry.documentation


def test_broker_and_cluster_default(harness):
    assert alter(harness, BROKER_RESOURCE, "", ("log.cleaner.threads", SET, "2")) == (Error.NONE, None)
    assert alter(harness, BROKER_RESOURCE, "1", ("log.retention.ms", SET, "7")) == (Error.NONE, None)
    _, defaults = describe(harness, BROKER_RESOURCE, "")
    assert set(defaults) == {"log.cleaner.threads", "min.insync.replicas"}
    _, broker = describe(harness, BROKER_RESOURCE, "1")
    assert (broker["log.retention.ms"].value, broker["log.retention.ms"].config_source) == ("7", 2)
    assert broker["log.cleaner.threads"].config_source == 3
    assert broker["listeners"].config_source == 4 and broker["node.id"].read_only
    assert broker["ssl.keystore.password"].is_sensitive and broker["ssl.keystore.password"].value is None


@pytest.mark.parametrize(
    ("kind", "name", "error", "message"),
    [
        (TOPIC_RESOURCE, "x", Error.UNKNOWN_TOPIC_OR_PARTITION, None),
        (TOPIC_RESOURCE, "a b", Error.INVALID_TOPIC_EXCEPTION, None),
        (
            BROKER_RESOURCE,
            "2",
            Error.INVALID_REQUEST,
            "Unexpected broker id, expected 1 or empty string, but received 2",
        ),
        (BROKER_RESOURCE, "x", Error.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (BROKER_RESOURCE, "²", Error.INVALID_REQUEST, "Broker id must be an integer, but it is: ²"),
        (BROKER_RESOURCE, "--1", Error.INVALID_REQUEST, "Broker id must be an integer, but it is: --1"),
        (BROKER_LOGGER_RESOURCE, "", Error.INVALID_REQUEST, "Broker id must not be empty"),
        (GROUP_RESOURCE, "", Error.INVALID_REQUEST, None),
        (99, "x", Error.INVALID_REQUEST, None),
    ],
)
def test_what_cannot_be_described(harness, kind, name, error, message):
    (found, text), entries = describe(harness, kind, name)
    assert found is error and not entries
    assert message is None or text == message


def test_groups_and_client_metrics(harness):
    alter(harness, GROUP_RESOURCE, "g", ("consumer.session.timeout.ms", SET, "50000"))
    alter(harness, CLIENT_METRICS_RESOURCE, "m", ("interval.ms", SET, "1000"))
    _, group = describe(harness, GROUP_RESOURCE, "g", include_synonyms=True)
    session = group["consumer.session.timeout.ms"]
    assert [(each.name, each.value, each.source) for each in session.synonyms] == [
        ("consumer.session.timeout.ms", "50000", 8), ("group.consumer.session.timeout.ms", "45000", 5),
    ]  # fmt: skip
    assert len(group) == 17
    _, metrics = describe(harness, CLIENT_METRICS_RESOURCE, "m")
    assert {name: entry.value for name, entry in metrics.items()} == {
        "interval.ms": "1000", "match": "", "metrics": "",
    }  # fmt: skip


def test_levels_of_loggers_are_set_and_inherited(harness):
    name = "kafka.test.logger"
    logging.getLogger(name)
    assert alter(harness, BROKER_LOGGER_RESOURCE, "1", (name, SET, "DEBUG")) == (Error.NONE, None)
    assert describe(harness, BROKER_LOGGER_RESOURCE, "1")[1][name].value == "DEBUG"
    assert alter(harness, BROKER_LOGGER_RESOURCE, "1", (name, DELETE, None)) == (Error.NONE, None)
    assert logging.getLogger(name).level == logging.NOTSET
    assert alter(harness, BROKER_LOGGER_RESOURCE, "1", (name, SET, "LOUD"))[0] is Error.INVALID_CONFIG
    assert alter(harness, BROKER_LOGGER_RESOURCE, "1", ("no.such", SET, "INFO"))[0] is Error.INVALID_CONFIG
    assert alter(harness, BROKER_LOGGER_RESOURCE, "1", ("root", DELETE, None))[0] is Error.INVALID_REQUEST


def test_the_gate_serves_nobody_by_stored_permissions_once_permissions_are_logged(harness):
    gate = DataGate(lambda *_: None, lambda *_: None, fetch_max_bytes=1)
    harness.services.gate_rights = GateRights(gate, GrantedOperations())
    before = gate.rights_generation
    name = "kafka.authorizer.logger"
    assert alter(harness, BROKER_LOGGER_RESOURCE, "1", (name, SET, "WARN")) == (Error.NONE, None)
    assert gate.rights_generation == before
    try:
        assert alter(harness, BROKER_LOGGER_RESOURCE, "1", (name, SET, "DEBUG")) == (Error.NONE, None)
    finally:
        logging.getLogger(name).setLevel(logging.NOTSET)
    assert gate.rights_generation > before


@pytest.mark.parametrize("version", [0, 1])
def test_requests_that_make_no_sense(harness, version):
    def refused(*args):
        return alter(harness, *args, version=version)

    assert refused(TOPIC_RESOURCE, "t", ("retention.ms", SET, "1"), ("retention.ms", DELETE, None)) == (
        Error.INVALID_REQUEST, "Error due to duplicate config keys",
    )  # fmt: skip
    assert refused(TOPIC_RESOURCE, "t", ("retention.ms", SET, None)) == (
        Error.INVALID_REQUEST, "Null value not supported for : retention.ms",
    )  # fmt: skip
    assert refused(BROKER_RESOURCE, "2", ("log.retention.ms", SET, "1")) == (
        Error.INVALID_REQUEST, "Unexpected broker id, expected 1, but received 2",
    )  # fmt: skip


@pytest.mark.parametrize("broker", ["", "1"])
@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "max.connections.per.ip",
            "0",
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
        ),
        (
            "log.retention.ms",
            "0",
            "Invalid value 0 for configuration log.retention.ms: log.retention must be unlimited (-1) or, equal or "
            "greater than 1",
        ),
        (
            "max.connections.per.ip.overrides",
            "localhost",
            "Invalid value localhost for configuration max.connections.per.ip.overrides: localhost is not host:limit",
        ),
    ],
)
def test_changes_that_contradict_other_values_of_the_broker_are_refused(harness, broker, key, value, message):
    assert alter(harness, BROKER_RESOURCE, broker, (key, SET, value)) == (Error.INVALID_REQUEST, message)
    assert key not in harness.metadata.image.config(BROKER_RESOURCE, broker)
    configs = [AlterConfigsRequest.AlterableConfig(name=key, value=value)]
    resource = AlterConfigsRequest.AlterConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name=broker, configs=configs
    )
    [answer] = harness.send(handle_alter_configs, AlterConfigsRequest(resources=[resource]), 2).responses
    assert error_of(answer) == (Error.INVALID_REQUEST, message)


def test_a_change_may_set_a_value_and_what_the_value_needs(harness):
    changes = [("max.connections.per.ip", SET, "0"), ("max.connections.per.ip.overrides", SET, "localhost:5")]
    assert alter(harness, BROKER_RESOURCE, "1", *changes) == (Error.NONE, None)
    assert alter(harness, BROKER_RESOURCE, "1", (changes[1][0], DELETE, None))[0] is Error.INVALID_REQUEST


def test_validate_only_changes_nothing(harness):
    assert alter(harness, TOPIC_RESOURCE, "t", ("retention.ms", SET, "5"), validate_only=True) == (Error.NONE, None)
    assert not harness.metadata.image.config(TOPIC_RESOURCE, "t")


@pytest.mark.parametrize("version", range(3))
def test_alter_configs_replaces_all_overrides(harness, version):
    alter(harness, TOPIC_RESOURCE, "t", ("segment.bytes", SET, "1048576"))
    configs = [AlterConfigsRequest.AlterableConfig(name="retention.ms", value="9")]
    resources = [
        AlterConfigsRequest.AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configs=configs)
        for name in ("t", "x")
    ]
    first, second = harness.send(handle_alter_configs, AlterConfigsRequest(resources=resources), version).responses
    assert error_of(first) == (Error.NONE, None) and first.resource_name == "t"
    assert error_of(second)[0] is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert harness.metadata.image.config(TOPIC_RESOURCE, "t") == {"retention.ms": "9"}


def test_resources_are_listed_by_type(harness):
    alter(harness, CLIENT_METRICS_RESOURCE, "m", ("interval.ms", SET, "1000"))

    def listed(version, *types):
        request = ListConfigResourcesRequest(resource_types=list(types))
        response = harness.send(handle_list_config_resources, request, version)
        return response.error_code, {(each.resource_type, each.resource_name) for each in response.config_resources}

    assert listed(0) == (0, {(CLIENT_METRICS_RESOURCE, "m")})
    assert listed(1, TOPIC_RESOURCE) == (0, {(TOPIC_RESOURCE, "t")})
    assert listed(1)[1] >= {(BROKER_RESOURCE, "1"), (TOPIC_RESOURCE, "t"), (CLIENT_METRICS_RESOURCE, "m")}
    assert listed(1, 99) == (Error.UNSUPPORTED_VERSION, set())
