"""Connections that the reactor opens as a client of TLS: frames, the check of the server's name, refusals."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kafkapy._core.reactor.reactor import OutgoingConnection, Request
from kafkapy._core.tls.tls_context import TlsContext
from kafkapy.network.outgoing import OutgoingConnector
from tests.harness.certificates import CertificateAuthority, Identity
from tests.reactor_harness import TIMEOUT, ReactorHarness, frame, receive_frame
from tests.tls_harness import server_context


class TlsPeer:
    """A server of Python's `ssl`, and the reactor's connections to it."""

    def __init__(self, identity: Identity, trusted: bytes, identity_of_client: Identity | None, **options: Any) -> None:
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.load_cert_chain(identity.chain_file, identity.key_file)
        own = {}
        if identity_of_client is not None:
            own = {
                "certificate_chain_pem": identity_of_client.chain_pem,
                "private_key_pem": identity_of_client.key_pem,
            }
        context = TlsContext(is_server=False, trusted_pem=trusted, **own)
        self.harness = ReactorHarness(lambda requests: None)
        self.connector = OutgoingConnector(self.harness.reactor, lambda work: work(), tls=lambda: context, **options)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.listening.settimeout(TIMEOUT)
        self.responses: list[bytes] = []
        self.closed: list[str] = []
        self.event = threading.Condition()

    def connect(self, host: str = "localhost", first: bytes | None = None) -> OutgoingConnection:
        opened: list[Any] = []

        def note_opened(connection: OutgoingConnection | OSError) -> None:
            opened.append(connection)
            if first is not None and not isinstance(connection, OSError):
                connection.send([first])

        port = self.listening.getsockname()[1]
        self.harness.call(
            lambda: self.connector.connect(
                host, port, attempt=0, max_response_bytes=8 << 20, on_opened=note_opened,
                on_response=self._note_response, on_closed=self._note_closed,
            )
        )  # fmt: skip
        self.harness.call(lambda: None)  # a host name has been resolved
        assert isinstance(opened[0], OutgoingConnection)
        return opened[0]

    def accept(self) -> ssl.SSLSocket:
        accepted, _ = self.listening.accept()
        accepted.settimeout(TIMEOUT)
        return self.server.wrap_socket(accepted, server_side=True, suppress_ragged_eofs=False)

    def _note_response(self, response: Request) -> None:
        with self.event:
            self.responses.append(bytes(response.payload))
            self.event.notify_all()

    def _note_closed(self, connection: OutgoingConnection) -> None:
        with self.event:
            self.closed.append(connection.describe_close())
            self.event.notify_all()

    def wait_responses(self, count: int) -> list[bytes]:
        with self.event:
            assert self.event.wait_for(lambda: len(self.responses) >= count, TIMEOUT)
            return self.responses

    def wait_closed(self) -> str:
        with self.event:
            assert self.event.wait_for(lambda: bool(self.closed), TIMEOUT)
            return self.closed[0]


@contextmanager
def running(identity: Identity, trusted: bytes, *, client: Identity | None = None, **options: Any) -> Iterator[TlsPeer]:
    peer = TlsPeer(identity, trusted, client, **options)
    try:
        yield peer
    finally:
        peer.harness.close()
        peer.listening.close()
    assert peer.harness.errors == []


def refused(peer: TlsPeer, host: str = "localhost") -> str:
    """Connects to a server that the reactor must refuse, and returns its reason."""
    peer.connect(host, first=b"a request that must not be sent")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        receive_frame(peer.accept())
    return peer.wait_closed()


def test_requests_before_the_handshake_are_sent_after_it(authority: CertificateAuthority, broker: Identity) -> None:
    with running(broker, authority.certificate_pem) as peer:
        connection = peer.connect(first=b"request 1")
        accepted = peer.accept()
        assert receive_frame(accepted) == b"request 1"
        payload = os.urandom(3_000_000)
        accepted.sendall(frame(b"response 1") + frame(payload))
        assert peer.wait_responses(2) == [b"response 1", payload]
        peer.harness.call(lambda: connection.send([b"request", b" ", b"2"]))
        assert receive_frame(accepted) == b"request 2"
        assert connection.tls_protocol == "TLSv1.3"
        assert connection.peer_certificate() == ssl.PEM_cert_to_DER_cert(broker.chain_pem.decode())
        accepted.close()


def test_a_server_is_told_the_host_name(authority: CertificateAuthority, broker: Identity) -> None:
    names: list[str | None] = []
    for host, expected in (("localhost", "localhost"), ("127.0.0.1", None)):
        with running(broker, authority.certificate_pem) as peer:
            peer.server.sni_callback = lambda _, name, __: names.append(name)
            peer.connect(host, first=b"a request")
            assert receive_frame(peer.accept()) == b"a request"
            assert names.pop() == expected


def test_a_certificate_for_another_host_is_refused(authority: CertificateAuthority) -> None:
    other = authority.issue("elsewhere", names=("DNS:elsewhere.example", "IP:127.0.0.2"))
    for host, reason in (
        ("localhost", "hostname mismatch"),
        ("127.0.0.1", "IP address mismatch"),
        ("127.1", "hostname mismatch"),  # the system resolves this as 127.0.0.1
    ):
        with running(other, authority.certificate_pem) as peer:
            expected = f"TLS failed: certificate verify failed: {reason} in the certificate of /CN=elsewhere"
            assert refused(peer, host).lower() == expected.lower()
    with running(other, authority.certificate_pem, verifies_name=False) as peer:
        peer.connect(first=b"a request")
        assert receive_frame(peer.accept()) == b"a request"


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.1"])
def test_a_certificate_has_to_be_for_an_unusual_form_of_an_address(
    authority: CertificateAuthority, broker: Identity, host: str
) -> None:
    with running(broker, authority.certificate_pem) as peer:
        assert "hostname mismatch" in refused(peer, host).lower()


def test_the_common_name_counts_where_no_alternative_names_exist(authority: CertificateAuthority) -> None:
    old = authority.issue("old", subject="/CN=localhost", names=())
    with running(old, authority.certificate_pem) as peer:
        peer.connect(first=b"a request")
        assert receive_frame(peer.accept()) == b"a request"


def test_a_server_of_another_authority_is_refused(
    authority: CertificateAuthority, broker: Identity, tmp_path: Any
) -> None:
    stranger = CertificateAuthority(tmp_path, "Stranger")
    with running(broker, stranger.certificate_pem) as peer:
        assert "unable to get local issuer certificate" in refused(peer)


def test_an_expired_server_is_refused(authority: CertificateAuthority) -> None:
    with running(authority.issue("late", days=(-9, -2)), authority.certificate_pem) as peer:
        assert "certificate has expired in the certificate of /CN=late" in refused(peer)


def test_the_client_shows_its_certificate(authority: CertificateAuthority, broker: Identity) -> None:
    with running(broker, authority.certificate_pem, client=authority.issue("node")) as peer:
        peer.server.load_verify_locations(authority.certificate_file)
        peer.server.verify_mode = ssl.CERT_REQUIRED
        peer.connect(first=b"a request")
        accepted = peer.accept()
        assert receive_frame(accepted) == b"a request"
        assert accepted.getpeercert()["subject"] == ((("commonName", "node"),),)


def test_a_server_that_refuses_the_client_closes_the_connection(
    authority: CertificateAuthority, broker: Identity
) -> None:
    with running(broker, authority.certificate_pem) as peer:
        peer.server.load_verify_locations(authority.certificate_file)
        peer.server.verify_mode = ssl.CERT_REQUIRED
        peer.connect(first=b"a request")
        with pytest.raises(ssl.SSLError):
            peer.accept()
        reason = peer.wait_closed()  # the alert may be lost, because the server did not read the request
        assert "alert certificate required" in reason or reason == "Connection reset by peer"


def test_a_server_without_tls_is_described(authority: CertificateAuthority, broker: Identity) -> None:
    with running(broker, authority.certificate_pem) as peer:
        peer.connect(first=b"a request")
        accepted, _ = peer.listening.accept()
        accepted.sendall(frame(b"\0\0\0\1 a response in plaintext"))
        assert peer.wait_closed() == "TLS failed: wrong version number: the peer may not speak TLS"
        accepted.close()


def test_two_sides_of_the_reactor_understand_each_other(authority: CertificateAuthority, broker: Identity) -> None:
    def echo(requests: list[Request]) -> None:
        for request in requests:
            request.connection.respond([bytes(request.payload)])

    serving = ReactorHarness(echo)
    with running(broker, authority.certificate_pem) as peer:
        connection = peer.connect()
        accepted, address = peer.listening.accept()
        accepted.setblocking(False)
        descriptor = accepted.detach()
        context = server_context(broker)
        serving.call(lambda: serving.reactor.adopt(descriptor, None, *address, "other", tls=context))
        payloads = [os.urandom(50_000) for _ in range(20)]
        for payload in payloads:
            peer.harness.call(lambda payload=payload: connection.send([payload]))
        assert peer.wait_responses(20) == payloads
    serving.close()
