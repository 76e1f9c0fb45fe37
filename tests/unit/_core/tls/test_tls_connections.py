"""TLS connections of the reactor with Python's `ssl` as the peer: handshakes, frames, ends, refusals."""

from __future__ import annotations

import os
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kafkapy._core.reactor import reactor as reactor_module
from kafkapy._core.reactor.reactor import Connection, Request
from kafkapy._core.tls.tls_context import TlsContext
from tests.harness.certificates import CertificateAuthority, Identity
from tests.reactor_harness import TIMEOUT, ReactorHarness, frame, receive_exactly, receive_frame


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def broker(authority: CertificateAuthority) -> Identity:
    return authority.issue("broker")


def server(identity: Identity, **options: Any) -> TlsContext:
    return TlsContext(
        certificate_chain_pem=identity.chain_pem, private_key_pem=identity.key_pem, is_server=True, **options
    )


def client(authority: CertificateAuthority, identity: Identity | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.certificate_pem.decode())
    if identity is not None:
        context.load_cert_chain(identity.chain_file, identity.key_file)
    return context


def echo(requests: list[Request]) -> None:
    for request in requests:
        request.connection.respond([bytes(request.payload)])


class TlsHarness(ReactorHarness):
    """A reactor with TLS clients. The connections of failed handshakes are closed at once."""

    def __init__(self, context: TlsContext, dispatch: Any = echo, **options: Any) -> None:
        self.context = context
        self.handshakes: list[tuple[Connection, str | None]] = []
        self.handshake_event = threading.Condition()
        super().__init__(dispatch, on_handshake=self.note_handshake, **options)

    def note_handshake(self, connection: Connection, error: str | None) -> None:
        if error is not None:
            connection.close(error)
        with self.handshake_event:
            self.handshakes.append((connection, error))
            self.handshake_event.notify_all()

    def wait_handshake(self) -> tuple[Connection, str | None]:
        with self.handshake_event:
            assert self.handshake_event.wait_for(lambda: self.handshakes, TIMEOUT)
            return self.handshakes[-1]

    def connect_tls(self, context: ssl.SSLContext, **options: Any) -> ssl.SSLSocket:
        plain = self.connect(tls=self.context, **options)
        return context.wrap_socket(plain, server_hostname="localhost")


@contextmanager
def running(context: TlsContext, dispatch: Any = echo, **options: Any) -> Iterator[TlsHarness]:
    harness = TlsHarness(context, dispatch, **options)
    try:
        yield harness
    finally:
        harness.close()
    assert harness.errors == []


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("size", [8, 1000, 16384, 65531, 262_144, 5_000_001])
def test_frames_of_every_size_come_through(
    authority: CertificateAuthority, broker: Identity, version: ssl.TLSVersion, size: int
) -> None:
    context = client(authority)
    context.maximum_version = version
    with running(server(broker)) as harness:
        connected = harness.connect_tls(context)
        payload = os.urandom(size)
        connected.sendall(frame(payload) + frame(b"a small one"))
        assert receive_frame(connected) == payload
        assert receive_frame(connected) == b"a small one"
        connection, error = harness.wait_handshake()
        assert error is None
        assert connection.tls_protocol == connected.version()
        assert connection.is_encrypted
        assert connection.peer_certificate() is None


def test_the_peer_of_a_plaintext_connection_has_no_certificate() -> None:
    harness = ReactorHarness(echo)
    harness.connect()
    (connection,) = harness.connections
    facts = (connection.is_encrypted, connection.tls_protocol, connection.tls_cipher, connection.peer_certificate())
    harness.close()
    assert facts == (False, None, None, None)


def test_plaintext_is_answered_by_an_alert_and_the_end(broker: Identity) -> None:
    with running(server(broker)) as harness:
        for data in (frame(b"\x00\x12\x00\x03 a request of Kafka"), b"GET / HTTP/1.1\r\n\r\n"):
            connected = harness.connect(tls=harness.context)
            connected.sendall(data)
            assert receive_exactly(connected, 7) == b"\x15\x03\x03\x00\x02\x02\x0a"
            assert connected.recv(1) == b""
            _, error = harness.wait_handshake()
            assert error is not None
            assert "does not speak TLS" in error


def test_an_older_protocol_is_refused_with_the_reason(authority: CertificateAuthority, broker: Identity) -> None:
    context = client(authority)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with running(server(broker, protocols=("TLSv1.3",))) as harness:
        with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
            harness.connect_tls(context)
        connection, error = harness.wait_handshake()
        assert error == "unsupported protocol: the peer offers no protocol of ssl.enabled.protocols"
        assert harness.wait_closed(connection)[0] == reactor_module.CLOSED_LOCALLY
