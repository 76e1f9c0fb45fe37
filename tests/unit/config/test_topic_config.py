"""Topic configuration: overrides, inherited values and refusals."""

import pytest

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.topic_config import TopicConfig, validate_topic_override, validate_topic_overrides
from kafkapy.errors import ApiError, ConfigError, Error


def topic(broker=None, overrides=None):
    return TopicConfig(BrokerConfig(broker or {}), overrides or {})


@pytest.mark.parametrize(
    ("broker", "key", "value"),
    [
        ({}, "retention.ms", 604_800_000),
        ({"log.retention.hours": "1"}, "retention.ms", 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, "retention.ms", 120_000),
        ({"log.retention.minutes": "2", "log.retention.ms": "3"}, "retention.ms", 3),
        ({"log.retention.hours": "-1"}, "retention.ms", -1),
        ({"log.roll.hours": "2"}, "segment.ms", 7_200_000),
        ({"log.roll.ms": "5"}, "segment.ms", 5),
        ({"log.roll.jitter.hours": "1"}, "segment.jitter.ms", 3_600_000),
        ({"log.flush.scheduler.interval.ms": "7"}, "flush.ms", 7),
        ({"log.flush.scheduler.interval.ms": "7", "log.flush.interval.ms": "8"}, "flush.ms", 8),
        ({"message.max.bytes": "9"}, "max.message.bytes", 9),
        ({"log.cleanup.policy": "compact"}, "cleanup.policy", ["compact"]),
        ({}, "leader.replication.throttled.replicas", []),
        ({}, "flush.ms", 2**63 - 1),
    ],
)
def test_values_are_inherited_from_the_broker(broker, key, value):
    assert topic(broker)[key] == value


def test_an_override_replaces_the_brokers_value():
    config = topic({"log.segment.bytes": "2000000"}, {"segment.bytes": "3000000"})
    assert config["segment.bytes"] == 3_000_000
    assert not config.is_default("segment.bytes")
    assert config.is_default("retention.ms")


def test_unknown_override_is_refused():
    with pytest.raises(ConfigError, match="Unknown topic config name: foo"):
        topic({}, {"foo": "1"})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("foo", "1", "Unknown topic config name: foo"),
        ("retention.ms", "-2", "Invalid value -2 for configuration retention.ms: Value must be at least -1"),
        ("retention.ms", "x", "Invalid value x for configuration retention.ms: Not a number of type LONG"),
        ("segment.bytes", "10", "Invalid value 10 for configuration segment.bytes: Value must be at least 1048576"),
        ("retention.ms", None, "Null value not supported for topic configs: retention.ms"),
    ],
)
def test_bad_override(name, value, message):
    with pytest.raises(ApiError) as raised:
        validate_topic_override(name, value)
    assert raised.value.error is Error.INVALID_CONFIG
    assert raised.value.message == message


def test_a_good_override_is_accepted_and_parsed():
    validate_topic_override("cleanup.policy", "compact,delete")
    config = TopicConfig(BrokerConfig({}), {"cleanup.policy": "compact,delete"})
    assert config["cleanup.policy"] == ["compact", "delete"]


def test_tiered_storage_is_refused():
    with pytest.raises(ApiError, match="Tiered Storage functionality is disabled"):
        validate_topic_override("remote.storage.enable", "true")


def test_overrides_beside_each_other():
    with pytest.raises(ApiError, match=r"conflict topic config setting min.compaction.lag.ms \(10\) > max.* \(5\)"):
        validate_topic_overrides(BrokerConfig({}), {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})
