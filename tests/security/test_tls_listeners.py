"""A broker with TLS listeners: stores of every format, client certificates, principals, changes while it runs."""

from __future__ import annotations

import http.client
import os
import re
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from kafkapy.client.admin import Admin, ConfigChange, ConfigResource, ResourceType
from kafkapy.security.tls.authority import CLIENT_AUTH, SERVER_AUTH, IssuedCertificate
from kafkapy.security.tls.certificate import parse_certificate
from kafkapy.security.tls.pem import parse_blocks
from tests.broker_process import BrokerProcess
from tests.certificates import (
    CLIENT_NAME,
    PASSWORD,
    SERVER_NAME,
    authority,
    client_certificate,
    server_certificate,
    write_pkcs12,
)
from tests.jks_writer import jks_file, key_entry
from tests.ports import free_port
from tests.security.token_brokers import eventually

TIMEOUT_S = 30


def der(pem: bytes) -> bytes:
    return parse_blocks(pem.decode())[0].content


def new_server_certificate(
    name: Any = SERVER_NAME, hosts: tuple[str, ...] = ("localhost", "127.0.0.1")
) -> IssuedCertificate:
    return authority().issue(name, 30, hosts=hosts, usages=(SERVER_AUTH, CLIENT_AUTH))


class TlsBroker(BrokerProcess):
    """A broker with the listeners PLAINTEXT and SSL, whose key store is in PEM."""

    def __init__(self, directory: Path, properties: dict[str, str] | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.tls_port = free_port()
        self.store = directory / "server.pem"
        self.trust_store = directory / "ca.crt"
        self.trust_store.write_bytes(authority().certificate)
        self.write_store(server_certificate())
        super().__init__(
            directory,
            port=(port := free_port()),
            properties={
                "listeners": f"PLAINTEXT://localhost:{port},SSL://localhost:{self.tls_port}",
                "listener.name.ssl.ssl.keystore.type": "PEM",
                "listener.name.ssl.ssl.keystore.location": str(self.store),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.trust_store),
                **(properties or {}),
            },
        )

    def write_store(self, issued: IssuedCertificate) -> None:
        self.store.write_bytes(issued.private_key + issued.certificate)

    def librdkafka(self, identity: IssuedCertificate | None = None) -> dict[str, str]:
        """Returns the settings of a client of librdkafka on the TLS listener."""
        settings = {
            "bootstrap.servers": f"localhost:{self.tls_port}",
            "security.protocol": "SSL",
            "ssl.ca.pem": authority().certificate.decode(),
        }
        if identity is not None:
            settings["ssl.certificate.pem"] = identity.certificate.decode()
            settings["ssl.key.pem"] = identity.private_key.decode()
        return settings

    def shown_certificate(self) -> bytes:
        """Returns the certificate that a new connection gets, in DER."""
        context = ssl.create_default_context(cadata=authority().certificate.decode())
        with (
            socket.create_connection(("localhost", self.tls_port), TIMEOUT_S) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as encrypted,
        ):
            found = encrypted.getpeercert(binary_form=True)
            assert found is not None
            return found


def round_trip(settings: dict[str, str], topic: str = "topic") -> None:
    """Sends a record and reads it again."""
    failures: list[object] = []
    producer = Producer({**settings, "message.timeout.ms": TIMEOUT_S * 1000})
    producer.produce(topic, b"value", on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(TIMEOUT_S) == 0
    assert not failures
    consumer = Consumer({**settings, "group.id": "group", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        record = consumer.poll(TIMEOUT_S)
        assert record is not None
        assert record.value() == b"value"
    finally:
        consumer.close()


def handshake(broker: TlsBroker, identity: IssuedCertificate | None, folder: Path) -> None:
    """Connects with Python's `ssl` and reads until the broker closes; raises SSLError after an alert of the broker."""
    context = ssl.create_default_context(cadata=authority().certificate.decode())
    if identity is not None:
        (folder / "identity").write_bytes(identity.certificate + identity.private_key)
        context.load_cert_chain(folder / "identity")
    with (
        socket.create_connection(("localhost", broker.tls_port), TIMEOUT_S) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as encrypted,
    ):
        encrypted.sendall(b"\0\0\0\0")  # an invalid size, which ends an accepted connection
        while encrypted.recv(100):
            pass


def stores(folder: Path) -> dict[str, dict[str, str]]:
    """Returns the keys of the server's key store in every format."""
    issued = server_certificate()
    chain = [der(issued.certificate), der(authority().certificate)]
    jks = folder / "server.jks"
    jks.write_bytes(jks_file(PASSWORD, key_entry("server", der(issued.private_key), PASSWORD, chain)))
    inline = {
        "ssl.keystore.certificate.chain": issued.certificate.decode().replace("\n", " "),
        "ssl.keystore.key": issued.private_key.decode().replace("\n", " "),
    }
    location = "listener.name.ssl.ssl.keystore.location"
    return {
        "JKS": {"listener.name.ssl.ssl.keystore.type": "JKS", location: str(jks), "ssl.keystore.password": PASSWORD},
        "PKCS12": {
            "listener.name.ssl.ssl.keystore.type": "PKCS12",
            location: str(write_pkcs12(folder, issued, "server")),
            "ssl.keystore.password": PASSWORD,
        },
        "PEM in the configuration": {location: "", **inline},
        "PEM": {},
    }


@pytest.mark.parametrize("kind", ["PEM", "PEM in the configuration", "PKCS12", "JKS"])
def test_clients_are_served_with_a_store_of_each_format(tmp_path: Path, kind: str) -> None:
    with TlsBroker(tmp_path / "broker", stores(tmp_path)[kind]) as broker:
        round_trip(broker.librdkafka())
        assert broker.shown_certificate() == der(server_certificate().certificate)
    assert PASSWORD not in broker.log()


def test_clients_without_a_certificate_are_refused_where_it_is_required(tmp_path: Path) -> None:
    with TlsBroker(tmp_path / "broker", {"listener.name.ssl.ssl.client.auth": "required"}) as broker:
        round_trip(broker.librdkafka(client_certificate()))
        with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
            handshake(broker, None, tmp_path)
        expired = authority().issue(CLIENT_NAME, -1)
        with pytest.raises(ssl.SSLError, match="CERTIFICATE_EXPIRED"):
            handshake(broker, expired, tmp_path)
        expected = re.compile(r"Failed authentication with /127\.0\.0\.1 .*certificate.*expired")
        eventually(lambda: expected.search(broker.log()) is not None)
        assert not [line for line in broker.log().splitlines() if "WARN" in line and "Unexpected error" in line
                    and "SSL" in line]  # fmt: skip


def test_handshakes_are_counted_as_authentications(tmp_path: Path) -> None:
    port = free_port()
    properties = {"ssl.client.auth": "required", "kafkapy.metrics.listener": f"localhost:{port}"}
    with TlsBroker(tmp_path / "broker", properties) as broker:
        for identity in (client_certificate(), None, None):
            with suppress(ssl.SSLError):
                handshake(broker, identity, tmp_path)
        labels = '{listener="SSL",networkProcessor="0"}'

        def has_counted() -> bool:
            connection = http.client.HTTPConnection("localhost", port, timeout=TIMEOUT_S)
            connection.request("GET", "/metrics")
            page = connection.getresponse().read().decode()
            connection.close()
            return (
                f"kafka_server_socket_server_metrics_successful_authentication_total{labels} 1" in page
                and f"kafka_server_socket_server_metrics_failed_authentication_total{labels} 2" in page
            )

        eventually(has_counted)


def test_a_revoked_client_is_refused_and_a_new_list_is_read_at_sighup(tmp_path: Path) -> None:
    lists = tmp_path / "crl.pem"
    lists.write_bytes(authority().revocation_list([], 3))
    issued = authority().issue(CLIENT_NAME, 3)
    properties = {"ssl.client.auth": "required", "kafkapy.ssl.crl.location": str(lists)}
    with TlsBroker(tmp_path / "broker", properties) as broker:
        handshake(broker, issued, tmp_path)
        lists.write_bytes(authority().revocation_list([parse_certificate(der(issued.certificate)).serial], 3))
        position = len(broker.log())
        os.kill(broker.pid, 1)
        while "were read again" not in broker.log(position):
            assert broker.is_running
        with pytest.raises(ssl.SSLError, match="CERTIFICATE_REVOKED"):
            handshake(broker, issued, tmp_path)


def test_the_principal_is_the_subject_of_the_certificate(tmp_path: Path) -> None:
    properties = {
        "listener.name.ssl.ssl.client.auth": "requested",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:CN=alice,OU=clients,O=Test",
    }
    with TlsBroker(tmp_path / "broker", properties) as broker:
        round_trip(broker.librdkafka(client_certificate()))
        producer = Producer({**broker.librdkafka(), "message.timeout.ms": 2000, "allow.auto.create.topics": "true"})
        failures: list[Any] = []
        producer.produce("secret", b"x", on_delivery=lambda error, _: failures.append(error))
        producer.flush(TIMEOUT_S)
        assert failures[0] is not None
        assert "User:ANONYMOUS" in broker.log()


def test_rules_map_the_subject_to_the_principal(tmp_path: Path) -> None:
    properties = {
        "listener.name.ssl.ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]*),OU=clients,.*$/$1/U",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ALICE",
    }
    with TlsBroker(tmp_path / "broker", properties) as broker:
        round_trip(broker.librdkafka(client_certificate()))
        other = authority().issue((("CN", "mallory"),), 3)
        with suppress(ssl.SSLError, ConnectionResetError):
            handshake(broker, other, tmp_path)
        assert "No rules apply to CN=mallory, rules [RULE:" in broker.log()


def test_sasl_works_over_tls(tmp_path: Path) -> None:
    port = free_port()
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="planted-secret";'
    properties = {
        "listeners": f"PLAINTEXT://localhost:{free_port()},SASL_SSL://localhost:{port}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(tmp_path / "broker" / "server.pem"),
        "ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": jaas,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:alice",
    }
    with TlsBroker(tmp_path / "broker", properties) as broker:
        client = {
            **broker.librdkafka(),
            "bootstrap.servers": f"localhost:{port}",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "planted-secret",
        }
        round_trip(client)
        assert "planted-secret" not in broker.log()
        assert "The configuration key ssl.client.auth has no effect on the SASL_SSL listener SASL_SSL" in broker.log()


def change(broker: TlsBroker, **values: str) -> str:
    """Sets dynamic keys of the SSL listener, and returns the text of the error, or nothing."""
    keys = {f"listener.name.ssl.ssl.{name.replace('_', '.')}": value for name, value in values.items()}
    resource = ConfigResource(ResourceType.BROKER, "1")
    with Admin({"bootstrap.servers": broker.bootstrap}) as admin:
        changes = [ConfigChange(key, value) for key, value in keys.items()]
        done = admin.incremental_alter_configs({resource: changes})
    return str(done.errors.get(resource, ""))


def test_stores_change_while_the_broker_runs(tmp_path: Path) -> None:
    with TlsBroker(tmp_path / "broker") as broker:
        new = new_server_certificate()
        broker.write_store(new)
        assert broker.shown_certificate() == der(server_certificate().certificate)
        assert change(broker, keystore_location=str(broker.store)) == ""
        assert broker.shown_certificate() == der(new.certificate)
        broker.write_store(new_server_certificate((("CN", "other"), ("O", "Test"))))
        assert "Keystore DistinguishedName does not match" in change(broker, keystore_location=str(broker.store))
        broker.write_store(new_server_certificate(hosts=("localhost",)))
        assert "Keystore SubjectAltNames do not match" in change(broker, keystore_location=str(broker.store))
        assert "the file cannot be read" in change(broker, keystore_location="/nowhere")
        assert broker.shown_certificate() == der(new.certificate)
        round_trip(broker.librdkafka())


def test_a_wrong_store_prevents_the_start_with_one_line(tmp_path: Path) -> None:
    properties = {"listener.name.ssl.ssl.keystore.location": "/nowhere/server.pem"}
    expected = r"listener\.name\.ssl\.ssl\.keystore\.location=/nowhere/server\.pem: the file cannot be read"
    with pytest.raises(AssertionError, match=expected):
        TlsBroker(tmp_path / "broker", properties).start()
