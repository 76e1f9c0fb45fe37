"""Limits of single addresses: their form, dynamic changes, and host names that cannot be resolved for a while."""

import socket
import threading

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.errors import ConfigError
from kafkapy.network import address_overrides
from kafkapy.network.address_overrides import LOOKUP_RETRY_S, AddressOverrides, parse_address_limits

KEY = "max.connections.per.ip.overrides"


def broker_config(limits):
    return BrokerConfig({KEY: limits, "log.dirs": "/unused"})


class Names:
    """A name server with the addresses of `known`."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}

    def host_addresses(self, host, port=None, flags=0):
        if host[0].isdigit():
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 0))]
        if flags & socket.AI_NUMERICHOST or host not in self.known:
            raise socket.gaierror(f"{host} is not known")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (self.known[host], 0))]


@pytest.fixture
def names(monkeypatch):
    made = Names()
    monkeypatch.setattr(address_overrides, "host_addresses", made.host_addresses)
    return made


def after_lookups(overrides, host="10.0.0.1"):
    overrides.get(host, 9)
    for thread in threading.enumerate():
        if thread.name == "connection-limits":
            thread.join(60)
    return overrides.get(host, 9)


@pytest.mark.parametrize("text", ["127.0.0.1", "127.0.0.1:x", ":5", "127.0.0.1:-1"])
def test_a_value_of_another_form_names_the_key(text):
    with pytest.raises(ConfigError, match=r"max\.connections\.per\.ip\.overrides"):
        parse_address_limits(text)


def test_changed_addresses_apply_at_once_and_names_once_they_are_resolved(names):
    config = broker_config("10.0.0.1:1")
    overrides = AddressOverrides(config)
    config.apply_dynamic({KEY: "10.0.0.1:2"}, {})
    assert [overrides.get("10.0.0.1", 9), overrides.get("10.0.0.2", 9)] == [2, 9]
    names.known["client"] = "10.0.0.1"
    config.apply_dynamic({KEY: "client:3"}, {})
    assert after_lookups(overrides) == 3


def test_names_that_cannot_be_resolved_are_tried_again_later(names, monkeypatch, caplog):
    now_s = [0.0]
    monkeypatch.setattr(address_overrides.time, "monotonic", lambda: now_s[0])
    config = broker_config("10.0.0.1:1")
    overrides = AddressOverrides(config)
    config.apply_dynamic({KEY: "client:3"}, {})
    assert after_lookups(overrides) == 1
    assert caplog.text.count("client is not known") == 1
    names.known["client"] = "10.0.0.1"
    assert after_lookups(overrides) == 1
    now_s[0] += LOOKUP_RETRY_S
    assert after_lookups(overrides) == 3
