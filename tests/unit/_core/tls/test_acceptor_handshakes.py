"""Handshakes on the thread that accepts the clients of a listener with TLS, and how the reactor takes them over."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from kafkapy._core.tls.tls_context import CLIENT_AUTH_REQUIRED
from tests.harness.certificates import CertificateAuthority, Identity
from tests.reactor_harness import TIMEOUT, frame, receive_frame
from tests.tls_harness import TlsHarness, client_context, running, server_context
from tests.unit._core.tls.running_acceptor import RunningAcceptor, addresses_of, has_ended

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
ALERT = 0x15


@pytest.fixture
def accept() -> Iterator[Callable[..., RunningAcceptor]]:
    opened: list[RunningAcceptor] = []

    def start(identity: Identity, waiting_ms: int = TIMEOUT * 1000, **options: object) -> RunningAcceptor:
        opened.append(RunningAcceptor(waiting_ms=waiting_ms, context=server_context(identity, **options)))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


class Handshake:
    """A client's side of a handshake, step by step."""

    def __init__(self, plain: socket.socket, context: ssl.SSLContext) -> None:
        self.plain = plain
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    def step(self) -> bytes:
        """Handles what has arrived, and returns the bytes to be sent; none when the handshake is complete."""
        with suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.outgoing.read()

    def receive(self) -> None:
        received = self.plain.recv(65536)
        assert received
        self.incoming.write(received)

    def finish(self) -> None:
        while True:
            try:
                self.tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self.plain.sendall(self.outgoing.read())
                self.receive()
        self.plain.sendall(self.outgoing.read())

    def ask(self, text: bytes) -> bytes:
        """Sends a frame and returns the answer."""
        self.tls.write(frame(text))
        self.plain.sendall(self.outgoing.read())
        answer = b""
        while len(answer) < 4 + len(text):
            try:
                answer += self.tls.read()
            except ssl.SSLWantReadError:
                self.receive()
        return answer[4:]


def adopt(harness: TlsHarness, acceptor: RunningAcceptor) -> None:
    """Passes the next client of the acceptor to the reactor, which then owns its descriptor."""
    fd, host, port, _, _, session = acceptor.take()
    acceptor.taken.remove(fd)
    tls = harness.context if session is None else session
    harness.connections.append(harness.call(lambda: harness.reactor.adopt(fd, None, host, port, f"{fd}", tls=tls)))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_reactor_serves_a_client_whose_handshake_is_complete(
    accept: Callable[..., RunningAcceptor], authority: CertificateAuthority, broker: Identity, version: ssl.TLSVersion
) -> None:
    acceptor = accept(broker)
    context = client_context(authority)
    context.maximum_version = version
    client = context.wrap_socket(acceptor.connect(), server_hostname="localhost")
    with running(server_context(broker)) as harness:
        adopt(harness, acceptor)
        client.sendall(frame(b"a request"))
        assert receive_frame(client) == b"a request"
        connection, error = harness.wait_handshake()
        assert error is None
        assert connection.tls_protocol == client.version()
        client.close()
        assert harness.wait_closed(connection)[1] == "closed by the peer"


def test_the_certificate_of_a_client_is_known_to_the_reactor(
    accept: Callable[..., RunningAcceptor], authority: CertificateAuthority, broker: Identity
) -> None:
    options = {"client_auth": CLIENT_AUTH_REQUIRED, "trusted_pem": authority.certificate_pem}
    acceptor = accept(broker, **options)
    alice = authority.issue("alice")
    client = client_context(authority, alice).wrap_socket(acceptor.connect(), server_hostname="localhost")
    with running(server_context(broker, **options)) as harness:
        adopt(harness, acceptor)
        connection, error = harness.wait_handshake()
        assert error is None
        assert connection.peer_certificate() == ssl.PEM_cert_to_DER_cert(alice.chain_pem.decode())
        client.close()


def test_requests_that_come_with_the_last_flight_are_served(
    accept: Callable[..., RunningAcceptor], authority: CertificateAuthority, broker: Identity
) -> None:
    acceptor = accept(broker)
    client = Handshake(acceptor.connect(), client_context(authority))
    client.plain.sendall(client.step())
    client.receive()
    last = client.step()
    payloads = [b"%06d" % number * 500 for number in range(40)]
    client.tls.write(b"".join(map(frame, payloads)))
    client.plain.sendall(last + client.outgoing.read())
    with running(server_context(broker)) as harness:
        adopt(harness, acceptor)
        received = bytearray()
        while len(received) < 40 * 3004:
            try:
                received += client.tls.read(65536)
            except ssl.SSLWantReadError:
                client.receive()
        assert bytes(received) == b"".join(map(frame, payloads))


def test_the_reactor_continues_a_handshake_that_takes_long(
    accept: Callable[..., RunningAcceptor], authority: CertificateAuthority, broker: Identity
) -> None:
    """The client is passed on in the middle of its first flight, and after it."""
    acceptor = accept(broker, waiting_ms=1)
    with running(server_context(broker)) as harness:
        for sent in (1, 20, None):
            client = Handshake(acceptor.connect(), client_context(authority))
            first = client.step()
            client.plain.sendall(first[:sent])
            adopt(harness, acceptor)
            client.plain.sendall(b"" if sent is None else first[sent:])
            client.receive()
            client.finish()
            assert client.ask(b"a request") == b"a request"
        assert [error for _, error in harness.handshakes] == [None] * 3


def test_a_handshake_that_the_reactor_continues_may_fail(
    accept: Callable[..., RunningAcceptor], authority: CertificateAuthority, broker: Identity
) -> None:
    acceptor = accept(broker, waiting_ms=1)
    client = Handshake(acceptor.connect(), client_context(authority))
    client.plain.sendall(client.step())
    with running(server_context(broker)) as harness:
        adopt(harness, acceptor)
        client.plain.sendall(b"\x16\x03\x03\x00\x04\x7f\0\0\0")
        assert harness.wait_handshake()[1] is not None
        assert acceptor.acceptor.take_report() == ((0, []), (0, []), 0)


def test_a_failed_handshake_is_reported_with_its_reason(
    accept: Callable[..., RunningAcceptor], authority: CertificateAuthority, broker: Identity
) -> None:
    acceptor = accept(broker)
    plain = acceptor.connect()
    addresses = addresses_of(plain)
    with pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(plain, server_hostname="localhost")
    count, [refused] = acceptor.refused(1, is_stranger=False)
    assert count == 1
    assert refused[1:] == addresses
    assert "alert unknown ca" in refused.reason


def test_a_client_without_a_certificate_gets_an_alert(
    accept: Callable[..., RunningAcceptor], authority: CertificateAuthority, broker: Identity
) -> None:
    acceptor = accept(broker, client_auth=CLIENT_AUTH_REQUIRED, trusted_pem=authority.certificate_pem)
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
        client_context(authority).wrap_socket(acceptor.connect(), server_hostname="localhost").recv(1)
    _, [refused] = acceptor.refused(1, is_stranger=False)
    assert refused.reason == "peer did not return a certificate"


def test_damaged_handshakes_are_refused_with_an_alert_and_closed(
    accept: Callable[..., RunningAcceptor], broker: Identity
) -> None:
    acceptor = accept(broker)
    client = acceptor.connect(b"\x16\x03\x01\x00\x05abcde")
    assert client.recv(100)[0] == ALERT
    assert has_ended(client)
    assert acceptor.refused(1, is_stranger=False)[0] == 1


def test_of_a_flood_of_failures_some_are_named(accept: Callable[..., RunningAcceptor], broker: Identity) -> None:
    acceptor = accept(broker)
    for _ in range(300):
        assert acceptor.connect(b"\x16\x03\x01\x00\x05abcde").recv(100)[0] == ALERT
    count, named = acceptor.refused(300, is_stranger=False)
    assert count == 300
    assert 0 < len(named) < count
    assert all(each.reason for each in named)


def test_a_handshake_of_too_many_bytes_is_refused(accept: Callable[..., RunningAcceptor], broker: Identity) -> None:
    message = b"\x01\x01\xff\xff".ljust(100_000, b"\0")
    acceptor = accept(broker)
    with suppress(ConnectionError):
        acceptor.connect(b"".join(b"\x16\x03\x01\x00\x01%c" % each for each in message))
    _, [refused] = acceptor.refused(1, is_stranger=False)
    assert refused.reason == "the handshake has too many bytes"


def test_clients_that_leave_during_the_handshake_are_forgotten(
    accept: Callable[..., RunningAcceptor], authority: CertificateAuthority, broker: Identity
) -> None:
    acceptor = accept(broker)
    for number in range(100):
        client = Handshake(acceptor.connect(), client_context(authority))
        client.plain.sendall(client.step())
        if number % 2:
            client.receive()
        if number % 4 > 1:  # a reset instead of an end
            client.plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.plain.close()
    good = acceptor.connect()
    addresses = addresses_of(good)
    client_context(authority).wrap_socket(good, server_hostname="localhost").close()
    while acceptor.take()[1:5] != addresses:
        pass
    assert acceptor.acceptor.take_report() == ((0, []), (0, []), 0)


def test_no_handshake_begins_while_the_acceptor_is_held(
    accept: Callable[..., RunningAcceptor], authority: CertificateAuthority, broker: Identity
) -> None:
    acceptor = accept(broker)
    acceptor.acceptor.hold(True)
    client = Handshake(acceptor.connect(), client_context(authority))
    client.plain.sendall(client.step())
    with running(server_context(broker)) as harness:
        fd, host, port, _, _, session = acceptor.take()
        assert session is None
        acceptor.taken.remove(fd)
        harness.call(lambda: harness.reactor.adopt(fd, None, host, port, "held", tls=harness.context))
        client.receive()
        client.finish()
        assert client.ask(b"a request") == b"a request"
    acceptor.acceptor.hold(False)
    client_context(authority).wrap_socket(acceptor.connect(), server_hostname="localhost")
    assert acceptor.take()[5] is not None


def test_later_clients_see_a_changed_certificate(
    accept: Callable[..., RunningAcceptor], authority: CertificateAuthority, broker: Identity
) -> None:
    acceptor = accept(broker)

    def shown() -> bytes | None:
        with client_context(authority).wrap_socket(acceptor.connect(), server_hostname="localhost") as client:
            return client.getpeercert(binary_form=True)

    other = authority.issue("other")
    before = shown()
    acceptor.acceptor.use(server_context(other))
    assert before == ssl.PEM_cert_to_DER_cert(broker.chain_pem.decode())
    assert shown() == ssl.PEM_cert_to_DER_cert(other.chain_pem.decode())


def test_stopping_ends_handshakes(
    accept: Callable[..., RunningAcceptor], authority: CertificateAuthority, broker: Identity
) -> None:
    acceptor = accept(broker)
    client = Handshake(acceptor.connect(), client_context(authority))
    client.plain.sendall(client.step())
    client.receive()
    complete = client_context(authority).wrap_socket(acceptor.connect(), server_hostname="localhost")
    acceptor.wait_readable()
    acceptor.acceptor.stop()
    assert has_ended(client.plain)
    with suppress(ssl.SSLError):
        complete.settimeout(TIMEOUT)
        assert has_ended(complete)


def test_a_session_serves_once(
    accept: Callable[..., RunningAcceptor], authority: CertificateAuthority, broker: Identity
) -> None:
    acceptor = accept(broker)
    client_context(authority).wrap_socket(acceptor.connect(), server_hostname="localhost")
    fd, host, port, _, _, session = acceptor.take()
    acceptor.taken.remove(fd)
    with running(server_context(broker)) as harness:

        def adopt_twice() -> None:
            harness.reactor.adopt(fd, None, host, port, "once", tls=session)
            with pytest.raises(RuntimeError, match="in use"):
                harness.reactor.adopt(fd, None, host, port, "twice", tls=session)

        harness.call(adopt_twice)


def test_many_clients_at_once_are_served(
    accept: Callable[..., RunningAcceptor], authority: CertificateAuthority, broker: Identity
) -> None:
    acceptor = accept(broker)
    context = client_context(authority)

    def use(plain: list[socket.socket]) -> None:
        for each in plain:
            client = context.wrap_socket(each, server_hostname="localhost")
            client.sendall(frame(b"a request"))
            assert receive_frame(client) == b"a request"

    with running(server_context(broker)) as harness:
        plain = [acceptor.connect() for _ in range(40)]
        threads = [threading.Thread(target=use, args=(plain[first::4],)) for first in range(4)]
        for thread in threads:
            thread.start()
        for _ in plain:
            adopt(harness, acceptor)
        for thread in threads:
            thread.join()
        assert [error for _, error in harness.handshakes] == [None] * 40
