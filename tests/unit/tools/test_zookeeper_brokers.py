"""The addresses in brokers' registrations, in the versions that Kafka 0.8 to 3.9 wrote."""

from __future__ import annotations

import pytest

from kafkapy.tools.option import ToolError
from kafkapy.tools.zookeeper.brokers import endpoints, servers_in_zookeeper
from tests.ports import free_port

OLDEST = {"version": 1, "host": "h", "port": 9092, "jmx_port": -1}
NAMED = {
    "version": 4,
    "listener_security_protocol_map": {"INSIDE": "PLAINTEXT", "OUTSIDE": "SASL_SSL"},
    "endpoints": ["INSIDE://h:1", "OUTSIDE://h:2"],
}


@pytest.mark.parametrize(
    ("registration", "protocol", "expected"),
    [
        (OLDEST, "PLAINTEXT", ["h:9092"]),
        (OLDEST, "SSL", []),
        ({"version": 2, "endpoints": ["PLAINTEXT://h:1", "SSL://h:2"], "host": "h", "port": 1}, "SSL", ["h:2"]),
        ({"version": 3, "endpoints": ["SSL://[::1]:2"], "host": None, "port": -1, "rack": "a"}, "SSL", ["[::1]:2"]),
        (NAMED, "PLAINTEXT", ["h:1"]),
        (NAMED, "SASL_SSL", ["h:2"]),
        (NAMED, "SSL", []),
        ({"version": 5}, "PLAINTEXT", []),
    ],
)
def test_a_registration_has_the_addresses_of_a_protocol(registration, protocol, expected):
    assert endpoints(registration, protocol) == expected


def test_an_address_without_a_server_is_one_line():
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(ToolError, match=f"Connection to ZooKeeper at {address} could not be established .*refused"):
        servers_in_zookeeper(address, patience_s=0)
    with pytest.raises(ToolError, match="'x:y' in 'x:y' is not host:port"):
        servers_in_zookeeper("x:y")
