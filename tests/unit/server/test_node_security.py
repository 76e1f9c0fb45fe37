"""The security of connections between nodes: which keys count for which listener, and stores that are replaced."""

from __future__ import annotations

import logging
import os
import ssl
from pathlib import Path

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.errors import ConfigError
from kafkapy.server.node_security import ListenerClientTls, NodeClients, node_clients
from kafkapy.server.other_nodes import OtherNodes
from tests.certificates import authority, client_certificate, server_certificate, write_pkcs12

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
BASE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://localhost:1,NODES://localhost:2,CONTROLLER://localhost:3",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,NODES:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "inter.broker.listener.name": "NODES",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.bootstrap.servers": "localhost:3",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.nodes.scram-sha-256.sasl.jaas.config": f'{SCRAM} username="n" password="p";',
    "listener.name.controller.plain.sasl.jaas.config": f'{PLAIN} username="c" password="q" user_c="q";',
}


def clients(**changes: str | None) -> NodeClients:
    changed = {key.replace("__", "-").replace("_", "."): value for key, value in changes.items()}
    properties = {key: value for key, value in {**BASE, **changed}.items() if value is not None}
    return node_clients(BrokerConfig(properties))


def mechanism_names(found: NodeClients) -> list[str | None]:
    names: list[str | None] = []
    for each in found.of_channels:
        mechanism = None if each is None else each.mechanism("localhost")
        names.append(None if mechanism is None else mechanism.name)
    return names


def test_each_listener_has_its_mechanism_and_its_credentials() -> None:
    found = clients()
    assert mechanism_names(found) == ["SCRAM-SHA-256", "PLAIN"]
    controllers = found.of_channels.controllers
    assert controllers is not None and not controllers.has_tls
    mechanism = controllers.mechanism("localhost")
    assert mechanism is not None and mechanism.step(None) == b"\0c\0q"


@pytest.mark.parametrize(
    "context",
    [
        f'{PLAIN} username="n" password="p" user_n="p";',
        f'{PLAIN} user_n="p"; {SCRAM} username="n" password="p";',
        f'com.sun.security.auth.module.Krb5LoginModule required keyTab=k; {SCRAM} username="n" password="p";',
    ],
)
def test_the_credentials_may_be_in_the_jaas_file_of_the_configuration(context: str, tmp_path: Path) -> None:
    path = tmp_path / "jaas.conf"
    path.write_text(f"KafkaServer {{ {context} }};")
    key = "listener.name.nodes.scram-sha-256.sasl.jaas.config"
    properties = {name: value for name, value in BASE.items() if name != key}
    brokers = node_clients(BrokerConfig({**properties, "kafkapy.jaas.config.file": str(path)})).of_channels.brokers
    mechanism = None if brokers is None else brokers.mechanism("localhost")
    first = None if mechanism is None else mechanism.step(None)
    assert first is not None and first.startswith(b"n,,n=n,r=")


def test_plaintext_listeners_need_nothing() -> None:
    plaintext = "PLAINTEXT:PLAINTEXT,NODES:PLAINTEXT,CONTROLLER:PLAINTEXT"
    assert mechanism_names(clients(listener_security_protocol_map=plaintext)) == [None, None]
    config = BrokerConfig({**BASE, "listener.security.protocol.map": plaintext})
    assert OtherNodes(config).broker_client is None


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"listener_name_nodes_scram__sha__256_sasl_jaas_config": None}, "KafkaServer"),
        ({"listener_name_nodes_scram__sha__256_sasl_jaas_config": f"{SCRAM};"}, "no username"),
        ({"sasl_mechanism_controller_protocol": "GSSAPI"}, "GSSAPI|KafkaServer"),
    ],
)
def test_missing_credentials_prevent_the_start(change: dict[str, str | None], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        clients(**change)


def test_a_replaced_key_store_is_used_for_the_next_connection(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    store = write_pkcs12(tmp_path, server_certificate(), "node")
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(authority().certificate)
    tls = ListenerClientTls(
        BrokerConfig(
            {
                **BASE,
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,NODES:SSL,CONTROLLER:SASL_PLAINTEXT",
                "listener.name.nodes.ssl.keystore.type": "PKCS12",
                "listener.name.nodes.ssl.keystore.location": str(store),
                "listener.name.nodes.ssl.keystore.password": "store-password",
                "listener.name.nodes.ssl.truststore.type": "PEM",
                "listener.name.nodes.ssl.truststore.location": str(trusted),
            }
        ),
        "NODES",
    )
    first, first_of_reactor = tls.context(), tls.reactor_context()
    assert tls.verifies_name and first.check_hostname and first.verify_mode is ssl.CERT_REQUIRED
    assert tls.context() is first and tls.reactor_context() is first_of_reactor
    again = write_pkcs12(tmp_path, client_certificate(), "node")
    os.utime(again, ns=(1, 1))
    second = tls.context()
    assert second is not first and tls.reactor_context() is not first_of_reactor
    store.write_bytes(b"damaged")
    assert tls.context() is second
    assert "The stores for connections to NODES are not changed" in caplog.text
    assert "store-password" not in caplog.text
