"""A client's configuration: types, warnings, invalid values, and values derived from others."""

from __future__ import annotations

import pytest

from kafkapy.client.configuration import admin_config, consumer_config, producer_config
from kafkapy.errors import ConfigError

SERVERS = {"bootstrap.servers": "localhost:9092"}


def test_text_and_typed_values_are_the_same():
    config = producer_config({**SERVERS, "linger.ms": "20", "enable.idempotence": "false"}, batch_size=100)
    assert (config["linger.ms"], config["enable.idempotence"], config["batch.size"]) == (20, False, 100)
    assert config["bootstrap.servers"] == ["localhost:9092"]
    assert producer_config(bootstrap_servers=["a:1", "b:2"])["bootstrap.servers"] == ["a:1", "b:2"]


def test_an_unknown_key_is_warned_of_with_the_nearest():
    config = producer_config({**SERVERS, "lingr.ms": 5, "ssl.provider": "x"})
    assert config.warnings == [
        "The configuration key lingr.ms is unknown and is ignored; did you mean linger.ms?",
        "The configuration key ssl.provider has no effect in kafkapy's client.",
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"linger.ms": -1}, "Invalid value -1 for configuration linger.ms: Value must be at least 0"),
        ({"linger.ms": "x"}, "Invalid value x for configuration linger.ms: Not a number of type LONG"),
        ({"acks": 2}, "Invalid value 2 for configuration acks: String must be one of: all, -1, 0, 1"),
        ({"transactional.id": "t", "enable.idempotence": False}, "Cannot set a transactional.id without also"),
        ({"enable.idempotence": True, "acks": 1}, "Must set acks to all in order to use the idempotent producer"),
        ({"transactional.id": "t", "retries": 0}, "Must set retries to non-zero when using the idempotent producer"),
        ({"max.in.flight.requests.per.connection": 6}, "must be set to at most 5. Current value is 6"),
        ({"delivery.timeout.ms": 10}, "should be equal to or larger than linger.ms"),
        ({"security.protocol": "TLS"}, "security.protocol"),
        ({"bootstrap.servers": ""}, 'Missing required configuration "bootstrap.servers"'),
    ],
)
def test_refused(settings, message):
    with pytest.raises(ConfigError) as refused:
        producer_config({**SERVERS, **settings})
    assert message in str(refused.value)


def test_idempotence_gives_way_if_it_was_not_asked_for():
    assert producer_config(SERVERS)["enable.idempotence"]
    assert not producer_config(SERVERS, acks="1")["enable.idempotence"]
    assert not producer_config(SERVERS, retries=0)["enable.idempotence"]


def test_delivery_takes_at_least_as_long_as_a_request():
    assert producer_config(SERVERS, request_timeout_ms=200_000)["delivery.timeout.ms"] == 200_005


def test_a_consumer_without_a_group_does_not_commit():
    assert not consumer_config(SERVERS)["enable.auto.commit"]
    assert consumer_config(SERVERS, group_id="g")["enable.auto.commit"]
    with pytest.raises(ConfigError, match="default group id"):
        consumer_config(SERVERS, enable_auto_commit=True)


@pytest.mark.parametrize("value", ["latest", "earliest", "none", "by_duration:P1DT2H", "by_duration:PT0.5S"])
def test_where_to_begin(value):
    assert consumer_config(SERVERS, auto_offset_reset=value)["auto.offset.reset"] == value


@pytest.mark.parametrize("value", ["", "smallest", "by_duration:", "by_duration:P", "by_duration:1D"])
def test_where_not_to_begin(value):
    with pytest.raises(ConfigError, match=r"auto\.offset\.reset"):
        consumer_config(SERVERS, auto_offset_reset=value)


def test_an_admin_needs_an_address():
    with pytest.raises(ConfigError, match=r"bootstrap\.controllers"):
        admin_config()
    assert admin_config(bootstrap_controllers="c:1")["bootstrap.controllers"] == ["c:1"]


def test_default_client_ids_are_numbered_as_in_java():
    def number(text, prefix):
        assert text.startswith(prefix)
        return int(text.removeprefix(prefix))

    servers = {"bootstrap.servers": "localhost:9092"}
    first, second = (producer_config(servers)["client.id"] for _ in range(2))
    assert number(second, "producer-") == number(first, "producer-") + 1
    first, second = (consumer_config(servers, group_id="g")["client.id"] for _ in range(2))
    assert number(second, "consumer-g-") == number(first, "consumer-g-") + 1
    assert number(consumer_config(servers)["client.id"], "consumer-null-") == number(second, "consumer-g-") + 1
    first, second = (admin_config(servers)["client.id"] for _ in range(2))
    assert number(second, "adminclient-") == number(first, "adminclient-") + 1


def test_default_client_ids_have_the_names_of_static_clients():
    servers = {"bootstrap.servers": "localhost:9092"}
    assert producer_config(servers, transactional_id="x")["client.id"] == "producer-x"
    assert consumer_config(servers, group_id="g", group_instance_id="i")["client.id"] == "consumer-g-i"
    assert consumer_config(servers, client_id="mine")["client.id"] == "mine"
