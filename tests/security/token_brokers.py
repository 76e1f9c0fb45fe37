"""Brokers of Apache Kafka 4.3 and kafkapy that serve delegation tokens."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka, kafka_directory
from tests.ports import free_ports
from tests.security.secured_brokers import secured

USERS = ("ann", "bob", "eve")
PLAIN = "PLAINTEXT://localhost:{}"


def properties(port: int, controller_port: int, plain_port: int) -> dict[str, str]:
    """Returns the properties of a node with tokens, and with a listener on which nobody authenticates."""
    found = secured(port, controller_port, USERS)
    for key in ("listeners", "advertised.listeners"):
        found[key] += "," + PLAIN.format(plain_port)
    found["listener.security.protocol.map"] += ",PLAINTEXT:PLAINTEXT"
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    return {
        **found,
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": scram,
        "delegation.token.secret.key": "token-secret",
    }


class Kafka(ApacheKafka):
    def __init__(self, directory: Path) -> None:
        (self.plain_port,) = free_ports(1)
        super().__init__(kafka_directory("4.3.0"), directory, heap=("-Xmx512M",))

    def _settings(self, given: Mapping[str, str]) -> dict[str, str]:
        return super()._settings(properties(self.port, self.controller_port, self.plain_port))


class Kafkapy(BrokerProcess):
    def __init__(self, directory: Path) -> None:
        port, controller_port, self.plain_port = free_ports(3)
        super().__init__(directory, properties(port, controller_port, self.plain_port), port=port)


def eventually(is_true: Callable[[], bool]) -> None:
    """Waits until the condition holds."""
    deadline = time.monotonic() + 30
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.05)
