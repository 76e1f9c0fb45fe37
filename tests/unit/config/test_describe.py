"""Descriptions of configurations: values, sources and synonyms."""

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.describe import describe_broker, describe_broker_defaults, describe_topic
from kafkapy.config.row import ConfigSource, ConfigType


def by_name(entries):
    return {entry.name: entry for entry in entries}


def test_untouched_topic_key_has_its_default_by_the_brokers_synonym():
    entry = by_name(describe_topic(BrokerConfig({}), {}))["max.message.bytes"]
    assert entry.value == "1048588"
    assert entry.source is ConfigSource.DEFAULT
    assert entry.synonyms == [("message.max.bytes", "1048588", ConfigSource.DEFAULT)]
    assert not entry.read_only
    assert entry.type == ConfigType.INT


def test_weaker_synonyms_alone_do_not_describe_a_key():
    """The response of Apache Kafka 4.3.0: the value of log.roll.hours, and no synonyms."""
    entry = by_name(describe_topic(BrokerConfig({"log.roll.hours": "2"}), {}))["segment.ms"]
    assert entry.value == "7200000"
    assert entry.source is ConfigSource.DEFAULT
    assert entry.synonyms == []


def test_synonyms_from_the_strongest_to_the_default():
    config = BrokerConfig({"log.retention.hours": "1", "log.retention.minutes": "5"})
    config.apply_dynamic({"log.retention.ms": "100"}, {"log.retention.ms": "200"})
    entry = by_name(describe_topic(config, {"retention.ms": "300"}))["retention.ms"]
    assert entry.value == "300"
    assert entry.source is ConfigSource.TOPIC
    assert entry.synonyms == [
        ("retention.ms", "300", ConfigSource.TOPIC),
        ("log.retention.ms", "200", ConfigSource.DYNAMIC_BROKER),
        ("log.retention.ms", "100", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ("log.retention.minutes", "5", ConfigSource.STATIC_BROKER),
        ("log.retention.hours", "1", ConfigSource.STATIC_BROKER),
        ("log.retention.hours", "168", ConfigSource.DEFAULT),
    ]
    hours = by_name(describe_broker(config))["log.retention.hours"]
    assert hours.value == "168"
    assert [synonym.source for synonym in hours.synonyms] == [ConfigSource.STATIC_BROKER, ConfigSource.DEFAULT]


def test_keys_of_our_own_are_described_when_they_are_set():
    config = BrokerConfig(
        {
            "zookeeper.listener": "localhost:2181",
            "zookeeper.listener.max.request.bytes": "2048",
            "kafkapy.metrics.username": "prometheus",
            "kafkapy.metrics.password": "pa55",
        }
    )
    entries = by_name(describe_broker(config))
    assert entries["zookeeper.listener"][:5] == (
        "zookeeper.listener", "localhost:2181", True, ConfigSource.STATIC_BROKER, False,
    )  # fmt: skip
    limit = entries["zookeeper.listener.max.request.bytes"]
    assert (limit.value, limit.type, limit.synonyms[0].value) == ("2048", ConfigType.INT, "2048")
    assert limit.documentation
    assert entries["kafkapy.metrics.password"].sensitive
    assert "pa55" not in repr(entries)
    assert "zookeeper.mirror.connect" not in entries


def test_broker_keys():
    config = BrokerConfig({"num.io.threads": "+4", "ssl.key.password": "pa55", "unheard.of": "pa55"})
    entries = by_name(describe_broker(config))
    assert entries["num.io.threads"][:4] == ("num.io.threads", "4", False, ConfigSource.STATIC_BROKER)
    assert entries["num.io.threads"].synonyms == [
        ("num.io.threads", "+4", ConfigSource.STATIC_BROKER),
        ("num.io.threads", "8", ConfigSource.DEFAULT),
    ]
    assert entries["node.id"].read_only
    for hidden in ("ssl.key.password", "unheard.of"):
        assert entries[hidden].sensitive
        assert entries[hidden].value is None
    assert "pa55" not in repr(entries)
    assert entries["unheard.of"].type == 0


def test_cluster_wide_defaults():
    config = BrokerConfig({"message.max.bytes": "7"})
    config.apply_dynamic({"message.max.bytes": "5"}, {"message.max.bytes": "6"})
    (entry,) = describe_broker_defaults(config)
    assert entry.value == "5"
    assert entry.synonyms == [("message.max.bytes", "5", ConfigSource.DYNAMIC_DEFAULT_BROKER)]
    assert entry.source is ConfigSource.DYNAMIC_DEFAULT_BROKER
