"""Frames over TLS, divided at any byte, in both directions, and handshakes that fail."""

from __future__ import annotations

import random
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy._core.client.tls_frame_socket import TlsFrameSocket
from tests.harness.certificates import CertificateAuthority

MOST = 1 << 24


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server_context(authority: CertificateAuthority) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("server", subject="/CN=localhost").pem_file)
    return context


def client_context(trusted: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(trusted)
    return context


class Server:
    """The other end: a non-blocking TLS socket that is read and written as far as possible."""

    def __init__(self, end: socket.socket, context: ssl.SSLContext) -> None:
        end.setblocking(False)
        self.tls = context.wrap_socket(end, server_side=True, do_handshake_on_connect=False)
        self.received = bytearray()
        self._to_send = bytearray()

    def step(self) -> None:
        try:
            self.tls.do_handshake()
            while self._to_send:
                del self._to_send[: self.tls.send(self._to_send[:50_000])]
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        try:
            while data := self.tls.recv(100_000):
                self.received += data
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return

    def send(self, data: bytes) -> None:
        self._to_send += data


class Pair:
    """A client and its server on a pair of sockets."""

    def __init__(self, context: ssl.SSLContext, server_context: ssl.SSLContext, host: str = "localhost") -> None:
        self.ours, theirs = socket.socketpair()
        self.ours.setblocking(False)
        self.client = TlsFrameSocket(self.ours.fileno(), MOST, context, host)
        self.server = Server(theirs, server_context)

    def handshake(self) -> None:
        for _ in range(10):
            if self.client.handshake():
                return
            self.server.step()
        raise AssertionError("the handshake does not end")

    def close(self) -> None:
        self.ours.close()
        self.server.tls.close()


@pytest.fixture(params=["TLSv1_2", "TLSv1_3"])
def pair(
    request: pytest.FixtureRequest, authority: CertificateAuthority, server_context: ssl.SSLContext
) -> Iterator[Pair]:
    context = client_context(authority.certificate_file)
    context.maximum_version = ssl.TLSVersion[request.param]
    made = Pair(context, server_context)
    made.handshake()
    assert made.client.tls_object.version() == request.param.replace("_", ".")
    yield made
    made.close()


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def test_chunks_make_one_frame(pair: Pair) -> None:
    pair.client.put([b"head", memoryview(b"body"), b""])
    assert pair.client.is_sending and pair.client.send() and not pair.client.is_sending
    pair.server.step()
    assert pair.server.received == framed(b"headbody")


def test_large_frames_are_sent_as_the_socket_accepts_them(pair: Pair) -> None:
    chance = random.Random(3)
    payloads = [chance.randbytes(size) for size in (10, 3_000_000, 0, 131_072 - 8, 70_000)]
    for payload in payloads:
        pair.client.put([payload[:5], payload[5:]])
    assert pair.client.queued == sum(len(payload) + 4 for payload in payloads)
    while not pair.client.send():
        pair.server.step()
    pair.server.step()
    assert pair.server.received == b"".join(map(framed, payloads))
    assert not pair.client.queued


def test_frames_arrive_however_the_stream_is_divided(pair: Pair) -> None:
    chance = random.Random(4)
    payloads = [chance.randbytes(chance.choice([0, 1, 5, 3000, 16_384, 70_000, 400_000])) for _ in range(40)]
    stream = b"".join(map(framed, payloads))
    frames: list[bytes] = []
    at = 0
    assert not pair.client.has_received
    while len(frames) < len(payloads):
        size = chance.choice([1, 3, 100, 10_000, 60_000, 300_000])
        pair.server.send(stream[at : at + size])
        at += size
        pair.server.step()
        frames += pair.client.receive()
    assert frames == payloads
    assert pair.client.receive() == []
    assert pair.client.has_received


def test_bytes_that_the_kernel_has_delivered_are_not_left_behind(pair: Pair) -> None:
    """A call ends after some megabytes; the rest of the last system call must not wait for another event."""
    payloads = [bytes(100_000)] * 90
    pair.server.send(b"".join(map(framed, payloads)))
    frames: list[bytes] = []
    while len(frames) < len(payloads):
        pair.server.step()
        frames += pair.client.receive()
        assert not pair.client.tls_object.pending()
    assert frames == payloads


def test_the_end_of_the_stream_is_a_lost_connection(pair: Pair) -> None:
    pair.server.tls.close()
    with pytest.raises(ConnectionError):
        pair.client.receive()


def test_a_close_notify_is_sent(pair: Pair) -> None:
    pair.client.send_close_notify()
    assert pair.server.tls.recv(10) == b""


@pytest.mark.parametrize(("host", "reason"), [("other.example", "Hostname mismatch"), ("::1", "IP address mismatch")])
def test_another_host_is_refused(
    authority: CertificateAuthority, server_context: ssl.SSLContext, host: str, reason: str
) -> None:
    made = Pair(client_context(authority.certificate_file), server_context, host)
    with pytest.raises(ssl.SSLCertVerificationError, match=reason):
        made.handshake()
    with pytest.raises(ssl.SSLError, match="ALERT"):
        made.server.tls.do_handshake()  # the server is told why
    made.close()


def test_an_unknown_authority_is_refused(server_context: ssl.SSLContext, tmp_path: Path) -> None:
    made = Pair(client_context(CertificateAuthority(tmp_path, "Other CA").certificate_file), server_context)
    with pytest.raises(ssl.SSLCertVerificationError):
        made.handshake()
    made.close()


def test_a_server_without_tls_is_refused(authority: CertificateAuthority) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        client = TlsFrameSocket(ours.fileno(), MOST, client_context(authority.certificate_file), "localhost")
        assert not client.handshake()
        theirs.send(b"HTTP/1.1 400 Bad Request\r\n")
        with pytest.raises(ssl.SSLError, match="WRONG_VERSION_NUMBER"):
            client.handshake()


def test_a_connection_that_ends_in_the_handshake_is_lost(authority: CertificateAuthority) -> None:
    ours, theirs = socket.socketpair()
    with ours:
        ours.setblocking(False)
        client = TlsFrameSocket(ours.fileno(), MOST, client_context(authority.certificate_file), "localhost")
        assert not client.handshake()
        theirs.close()
        with pytest.raises(ConnectionError):
            client.handshake()
