"""kafkapy.compat.kafka with TLS and SASL, by kafka-python's options."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

import kafkapy.compat.kafka as kafka
from kafkapy.compat.kafka.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from tests.harness.certificates import CertificateAuthority
from tests.oauth_tokens import unsecured_token
from tests.proxy_server import ProxyServer
from tests.security.client_matrix import Form
from tests.security.matrix_servers import MatrixServer, running
from tests.security.secured_kafka import USERS

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]
USER = "alice"
TOPIC = "drop-in"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, authority: CertificateAuthority) -> Iterator[MatrixServer]:
    with running(tmp_path_factory.mktemp("server"), authority, None) as started:
        started.new_topic(TOPIC)
        yield started


class Provider:
    """A provider of tokens, as kafka-python's AbstractTokenProvider."""

    def token(self) -> str:
        return unsecured_token()


def options(form: Form, authority: CertificateAuthority, password: str = USERS[USER]) -> dict[str, Any]:
    found: dict[str, Any] = {"security_protocol": form.protocol}
    if form.has_tls:
        found["ssl_cafile"] = str(authority.certificate_file)
    if form.mechanism:
        found["sasl_mechanism"] = form.mechanism
    if form.mechanism == "OAUTHBEARER":
        found["sasl_oauth_token_provider"] = Provider()
    elif form.mechanism:
        found |= {"sasl_plain_username": USER, "sasl_plain_password": password}
    return found


def produce(server: MatrixServer, form: Form, chosen: dict[str, Any]) -> None:
    with kafka.KafkaProducer(bootstrap_servers=server.address(form), **chosen) as producer:
        assert producer.send(TOPIC, b"v").get(60).topic == TOPIC


@pytest.mark.parametrize(
    "form",
    [
        Form("SASL_SSL", "PLAIN"),
        Form("SASL_PLAINTEXT", "SCRAM-SHA-256"),
        Form("SASL_SSL", "SCRAM-SHA-512"),
        Form("SASL_SSL", "OAUTHBEARER"),
    ],
    ids=str,
)
def test_sasl(server: MatrixServer, authority: CertificateAuthority, form: Form) -> None:
    produce(server, form, options(form, authority))


def test_a_client_certificate_and_socket_options(server: MatrixServer, authority: CertificateAuthority) -> None:
    issued = authority.issue("client", subject=f"/O=Test/CN={USER}", names=())
    chosen = {
        **options(Form("SSL"), authority),
        "ssl_certfile": str(issued.chain_file),
        "ssl_keyfile": str(issued.key_file),
        "ssl_ciphers": "ECDHE+AESGCM",
        "socket_options": [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)],
    }
    produce(server, Form("SSL"), chosen)


def test_a_context_of_the_application(server: MatrixServer, authority: CertificateAuthority) -> None:
    form = Form("SASL_SSL", "PLAIN")
    context = ssl.create_default_context(cafile=str(authority.certificate_file))
    chosen = {**options(form, authority), "ssl_context": context}
    chosen.pop("ssl_cafile")
    produce(server, form, chosen)


def test_tls_through_a_proxy(server: MatrixServer, authority: CertificateAuthority) -> None:
    form = Form("SASL_SSL", "PLAIN")
    with ProxyServer("me:secret") as proxy:
        produce(server, form, {**options(form, authority), "proxy_url": f"socks5h://me:secret@{proxy.address}"})
        assert proxy.targets


def test_a_wrong_password(server: MatrixServer, authority: CertificateAuthority) -> None:
    form = Form("SASL_SSL", "SCRAM-SHA-512")
    with pytest.raises(SaslAuthenticationFailedError):
        produce(server, form, options(form, authority, 'wrong "quoted" \\ password'))


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ({"proxy_url": "ftp://localhost:1"}, "proxy_url cannot be used"),
        ({"socks5_proxy": "socks5://localhost:none"}, "proxy_url cannot be used"),
        ({"client_dns_lookup": "resolve_canonical_bootstrap_servers_only"}, "cannot honour client_dns_lookup"),
        ({"kafka_client": object}, "cannot honour kafka_client"),
        ({"api_version": (0, 9)}, "before 0.10"),
        ({"security_protocol": "SASL_PLAINTEXT"}, "sasl_mechanism is missing"),
        ({"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}, "sasl_plain_username"),
        ({"security_protocol": "SSL", "ssl_cafile": "/no/such/file"}, "cannot be used"),
        ({"metric_reporters": [object]}, "cannot honour metric_reporters"),
    ],
)
def test_options_that_cannot_be_honoured(chosen: dict[str, Any], text: str) -> None:
    for client in (kafka.KafkaProducer, kafka.KafkaConsumer, kafka.KafkaAdminClient):
        with pytest.raises(KafkaConfigurationError, match=text):
            client(**chosen)
