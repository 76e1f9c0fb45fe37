"""Our clients with TLS against Apache Kafka: all forms of key stores, refused certificates, and SASL on top."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkapy.client import ApiError, AuthenticationError, ConfigError, Consumer, Producer
from kafkapy.client.admin import Admin, NewTopic
from kafkapy.errors import Error
from tests.harness.certificates import PASSWORD, CertificateAuthority, Identity
from tests.security.secured_kafka import SecuredKafka, sasl_client

TIMEOUT_S = 30.0
LARGE = 700_000  # bytes of a record, more than TLS records and system calls carry


@pytest.fixture(scope="module")
def identity(authority: CertificateAuthority) -> Identity:
    return authority.issue("client", subject="/CN=alice/OU=clients/O=Test", names=())


def trusting(authority: CertificateAuthority) -> dict[str, Any]:
    return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(authority.certificate_file)}


def client(kafka: SecuredKafka, protocol: str, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": kafka.address(protocol), "security.protocol": protocol, **more}


def pass_records(properties: dict[str, Any]) -> None:
    """Creates a topic, and writes and reads small and large records."""
    topic = f"tls-{uuid.uuid4()}"
    with Admin(properties) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
    values = [b"small", bytes(range(256)) * (LARGE // 256), b"last"]
    with Producer(properties) as producer:
        for value in values:
            producer.send(topic, value)
        assert producer.flush(TIMEOUT_S)
    received: list[bytes | None] = []
    with Consumer(properties, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        for record in consumer:
            received.append(record.value)
            if len(received) == len(values):
                break
    assert received == values


def pem_file(identity: Identity) -> dict[str, str]:
    return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(identity.pem_file)}


def inline_pem(identity: Identity) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": identity.encrypted_key_file.read_text(),
        "ssl.key.password": PASSWORD,
        "ssl.keystore.certificate.chain": identity.chain_file.read_text(),
    }


def pkcs12(identity: Identity) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(identity.pkcs12_file),
        "ssl.keystore.password": PASSWORD,
    }


def jks(identity: Identity) -> dict[str, str]:
    path = identity.key_file.with_suffix(".jks")
    if not path.exists():
        words = ["keytool", "-importkeystore", "-srckeystore", identity.pkcs12_file, "-srcstorepass", PASSWORD]
        words += ["-destkeystore", path, "-deststoretype", "JKS", "-deststorepass", PASSWORD, "-noprompt"]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
    return {"ssl.keystore.location": str(path), "ssl.keystore.password": PASSWORD}  # the type by default


@pytest.mark.parametrize("store", [pem_file, inline_pem, pkcs12, jks])
def test_a_certificate_of_every_kind_of_store_is_accepted(
    secured_kafka: SecuredKafka,
    authority: CertificateAuthority,
    identity: Identity,
    store: Callable[[Identity], dict[str, str]],
) -> None:
    pass_records(client(secured_kafka, "SSL", **trusting(authority), **store(identity)))


@pytest.mark.parametrize(
    ("mechanism", "tls"),
    [
        ("PLAIN", {"ssl.enabled.protocols": "TLSv1.2"}),
        ("SCRAM-SHA-512", {"ssl.enabled.protocols": "TLSv1.3"}),
        ("SCRAM-SHA-512", {"ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"}),
    ],
)
def test_sasl_passes_over_tls(
    secured_kafka: SecuredKafka, authority: CertificateAuthority, mechanism: str, tls: dict[str, str]
) -> None:
    trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authority.certificate_file.read_text()}
    pass_records(client(secured_kafka, "SASL_SSL", **trusted, **sasl_client(mechanism), **tls))


def refusal(properties: dict[str, Any]) -> str:
    """Returns the message of the AuthenticationError with which every client fails."""
    with Producer(properties) as producer, pytest.raises(AuthenticationError):
        producer.send("any", "a")
    with Consumer(properties, group_id="any") as consumer:
        consumer.subscribe(["any"])
        with pytest.raises(AuthenticationError):
            consumer.poll(TIMEOUT_S)
    with Admin(properties) as admin, pytest.raises(AuthenticationError) as caught:
        admin.list_topics()
    return caught.value.message


def test_a_certificate_of_an_unknown_authority_is_refused(secured_kafka: SecuredKafka, tmp_path: Path) -> None:
    other = trusting(CertificateAuthority(tmp_path, "Other CA"))
    properties = client(secured_kafka, "SASL_SSL", **other, **sasl_client("PLAIN"))
    expected = f"SSL handshake with bootstrap server {secured_kafka.address('SASL_SSL')} failed: the certificate of the"
    assert refusal(properties).startswith(expected)


def test_the_name_of_the_host_is_checked_unless_that_is_turned_off(
    secured_kafka: SecuredKafka, authority: CertificateAuthority
) -> None:
    by_address = {"bootstrap.servers": secured_kafka.address("SASL_SSL").replace("localhost", "127.0.0.1")}
    properties = {**client(secured_kafka, "SASL_SSL"), **by_address, **trusting(authority), **sasl_client("PLAIN")}
    assert "IP address mismatch" in refusal(properties)
    with Admin({**properties, "ssl.endpoint.identification.algorithm": ""}) as admin:
        assert admin.describe_cluster().cluster_id


def test_a_missing_or_unknown_client_certificate_is_refused(
    secured_kafka: SecuredKafka, authority: CertificateAuthority, tmp_path: Path
) -> None:
    properties = client(secured_kafka, "SSL", **trusting(authority))
    assert "alert" in refusal(properties)
    stranger = CertificateAuthority(tmp_path, "Other CA").issue("client", subject="/CN=mallory", names=())
    assert "alert" in refusal({**properties, **pem_file(stranger)})


def test_a_wrong_password_over_tls_is_that_of_sasl(
    secured_kafka: SecuredKafka, authority: CertificateAuthority
) -> None:
    properties = client(secured_kafka, "SASL_SSL", **trusting(authority), **sasl_client("PLAIN", password="wrong"))
    assert "Invalid username or password" in refusal(properties)


def test_a_mechanism_that_the_listener_does_not_enable_is_named(
    secured_kafka: SecuredKafka, authority: CertificateAuthority
) -> None:
    properties = client(secured_kafka, "SASL_SSL", **trusting(authority), **sasl_client("SCRAM-SHA-256"))
    expected = "'SCRAM-SHA-256' not enabled in the server, enabled mechanisms are [PLAIN, SCRAM-SHA-512]"
    assert expected in refusal(properties)


def test_a_listener_without_tls_is_a_lost_connection(
    secured_kafka: SecuredKafka, authority: CertificateAuthority
) -> None:
    properties = client(secured_kafka, "SSL", **trusting(authority), default_api_timeout_ms="2000")
    properties = {key.replace("_", "."): value for key, value in properties.items()}
    properties["bootstrap.servers"] = secured_kafka.address("PLAINTEXT")
    with Admin({**properties, "request.timeout.ms": "1000"}) as admin, pytest.raises(ApiError) as caught:
        admin.list_topics()
    assert caught.value.error is Error.REQUEST_TIMED_OUT


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"ssl.truststore.location": "/missing.pem"}, r"ssl\.truststore\.location=/missing\.pem"),
        ({"ssl.truststore.type": "ZIP"}, "Invalid value ZIP"),
        ({"ssl.enabled.protocols": "TLSv9"}, "unknown protocol"),
        ({"ssl.cipher.suites": "ECDHE-RSA-AES128-SHA"}, "did you mean TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused(
    authority: CertificateAuthority, change: dict[str, str], expected: str
) -> None:
    properties = {"bootstrap.servers": "localhost:1", "security.protocol": "SSL", **trusting(authority), **change}
    with pytest.raises(ConfigError, match=expected):
        Admin(properties)


def test_a_wrong_password_of_a_key_store_does_not_show_it(authority: CertificateAuthority, identity: Identity) -> None:
    wrong = {**pkcs12(identity), "ssl.keystore.password": "not-the-password"}
    with pytest.raises(ConfigError) as caught:
        Admin({"bootstrap.servers": "localhost:1", "security.protocol": "SSL", **trusting(authority), **wrong})
    assert "password" in str(caught.value) and "not-the-password" not in str(caught.value)
