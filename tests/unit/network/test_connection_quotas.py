"""Connection limits as numbers, without sockets."""

from __future__ import annotations

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.errors import ConfigError
from kafkapy.network.connection_quotas import ConnectionQuotas

LISTENERS = ["PLAINTEXT", "EXTERNAL"]


def broker_config(**keys: str) -> BrokerConfig:
    properties = {
        "node.id": "1",
        "process.roles": "broker,controller",
        "controller.quorum.voters": "1@localhost:9093",
        "listeners": "PLAINTEXT://localhost:9092,EXTERNAL://localhost:9094,CONTROLLER://localhost:9093",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,EXTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        **{key.replace("_", "."): value for key, value in keys.items()},
    }
    return BrokerConfig(properties)


def test_the_broker_is_full_for_all_but_the_listener_of_brokers() -> None:
    quotas = ConnectionQuotas(broker_config(max_connections="2"), LISTENERS, monotonic_ms=0)
    assert quotas.has_room("EXTERNAL")
    quotas.add("EXTERNAL", "10.0.0.1")
    quotas.add("EXTERNAL", "10.0.0.2")
    assert quotas.is_full()
    assert not quotas.has_room("EXTERNAL")
    assert quotas.has_room("PLAINTEXT")
    quotas.remove("EXTERNAL", "10.0.0.1")
    assert quotas.has_room("EXTERNAL")
    assert quotas.total == 1


def test_a_single_listener_is_not_protected() -> None:
    quotas = ConnectionQuotas(broker_config(max_connections="0"), ["PLAINTEXT"], monotonic_ms=0)
    assert not quotas.has_room("PLAINTEXT")


@pytest.mark.parametrize(
    ("keys", "protected"),
    [
        ({"security.inter.broker.protocol": "SASL_PLAINTEXT"}, "SASL_PLAINTEXT"),
        ({"inter.broker.listener.name": "plaintext"}, "PLAINTEXT"),
        ({}, "PLAINTEXT"),
    ],
)
def test_the_protected_listener_is_the_one_that_brokers_use(keys: dict[str, str], protected: str) -> None:
    listeners = "PLAINTEXT://localhost:9092,SASL_PLAINTEXT://localhost:9094"
    quotas = ConnectionQuotas(
        BrokerConfig({"listeners": listeners, **keys}), ["PLAINTEXT", "SASL_PLAINTEXT"], monotonic_ms=0
    )
    assert [name for name in ("PLAINTEXT", "SASL_PLAINTEXT") if quotas.is_protected(name)] == [protected]


def test_a_listener_has_a_limit_of_its_own() -> None:
    quotas = ConnectionQuotas(
        broker_config(**{"listener.name.plaintext.max.connections": "1"}), LISTENERS, monotonic_ms=0
    )
    quotas.add("PLAINTEXT", "10.0.0.1")
    assert not quotas.has_room("PLAINTEXT")
    assert quotas.has_room("EXTERNAL")


@pytest.mark.parametrize("key", ["max.connections", "max.connection.creation.rate"])
def test_a_bad_limit_of_a_listener_prevents_the_start(key: str) -> None:
    config = broker_config(**{f"listener.name.external.{key}": "many"})
    with pytest.raises(ConfigError, match=f"Invalid value many for configuration {key}"):
        ConnectionQuotas(config, LISTENERS, monotonic_ms=0)


def test_addresses_and_their_overrides() -> None:
    config = broker_config(
        **{"max.connections.per.ip": "1", "max.connections.per.ip.overrides": "127.0.0.5:3, [::1]:2"}
    )
    quotas = ConnectionQuotas(config, LISTENERS, monotonic_ms=0)
    assert (quotas.address_limit("127.0.0.1"), quotas.address_limit("127.0.0.5"), quotas.address_limit("::1")) == (
        1, 3, 2,
    )  # fmt: skip
    quotas.add("PLAINTEXT", "127.0.0.1")
    assert not quotas.has_room_for("127.0.0.1")
    quotas.remove("PLAINTEXT", "127.0.0.1")
    assert quotas.has_room_for("127.0.0.1")


def test_the_creation_rate_of_broker_and_listener() -> None:
    config = broker_config(
        **{"max.connection.creation.rate": "5", "listener.name.external.max.connection.creation.rate": "2"}
    )
    quotas = ConnectionQuotas(config, LISTENERS, monotonic_ms=0)
    for _ in range(2):
        assert quotas.delay_ms("EXTERNAL", 0) == 0
        quotas.spend_rate("EXTERNAL")
    assert quotas.delay_ms("EXTERNAL", 0) > 0
    assert quotas.delay_ms("EXTERNAL", 501) == 0
