"""A listener with TLS: clients that do not speak TLS, and the limits on connections."""

from __future__ import annotations

import logging
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkapy._core.tls import tls_acceptor
from kafkapy._core.tls.tls_acceptor import TlsAcceptor
from kafkapy.config import BrokerConfig
from kafkapy.config.listener import Listener
from kafkapy.network.listener_tls import TlsListeners
from tests.certificates import authority, server_certificate
from tests.reactor_harness import TIMEOUT
from tests.unit.network.test_socket_server import RunningServer, ask

ENCRYPTED = Listener("SSL", "SSL", "127.0.0.1", 0)
GARBAGE = b"\x00\x00\x00\x10 a request"
ALERT = b"\x15\x03\x03\x00\x02\x02\x50"


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., RunningServer]]:
    issued = server_certificate()
    store = tmp_path / "server.pem"
    store.write_bytes(issued.private_key + issued.certificate)
    settings = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(store)}
    servers: list[RunningServer] = []

    def start(**keys: str) -> RunningServer:
        tls = TlsListeners(BrokerConfig({"node.id": "1", "listeners": "SSL://localhost:0", **settings}))
        servers.append(RunningServer([ENCRYPTED], tls, **keys))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def connect_tls(server: RunningServer) -> ssl.SSLSocket:
    context = ssl.create_default_context(cadata=authority().certificate.decode())
    client = context.wrap_socket(server.connect(), server_hostname="localhost")
    server.clients.append(client)
    return client


def refused(server: RunningServer) -> socket.socket:
    client = server.connect()
    client.sendall(GARBAGE)
    assert client.recv(100) == ALERT
    return client


def wait_failed(server: RunningServer, count: int) -> None:
    """Waits until the server has counted so many failed handshakes."""
    deadline = time.monotonic() + TIMEOUT
    while server.server.handshakes_by_listener().get("SSL", (0, 0))[1] < count and time.monotonic() < deadline:
        time.sleep(0.01)
    assert server.server.handshakes_by_listener()["SSL"] == (0, count)


def test_a_client_that_does_not_speak_tls_is_logged_and_counted(
    serve: Callable[..., RunningServer], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server = serve()
    client = refused(server)
    wait_failed(server, 1)
    (line,) = (record.getMessage() for record in caplog.records if "Failed authentication" in record.getMessage())
    host, port = server.server.endpoints[0].host, server.server.endpoints[0].port
    assert line == (
        f"Failed authentication with /127.0.0.1 (channelId={host}:{port}-127.0.0.1:{client.getsockname()[1]}-0-0) "
        "(SSL handshake failed: the client does not speak TLS: it may be configured with security.protocol=PLAINTEXT)"
    )
    assert server.server.connection_count == 0


def test_of_a_flood_each_client_is_counted_and_some_are_named(
    serve: Callable[..., RunningServer], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server = serve()
    good = connect_tls(server)
    for client in [server.connect() for _ in range(200)]:
        client.sendall(GARBAGE)
        assert client.recv(100) == ALERT
    assert ask(good) == b"a request"
    deadline = time.monotonic() + TIMEOUT
    while server.server.handshakes_by_listener()["SSL"] != (1, 200) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert server.server.handshakes_by_listener()["SSL"] == (1, 200)
    named = len(re.findall(r"Failed authentication with /127\.0\.0\.1 ", caplog.text))
    others = sum(map(int, re.findall(r"Failed authentication with (\d+) more clients of SSL://", caplog.text)))
    assert named > 0
    assert named + others == 200


def test_refused_clients_count_in_no_limit(serve: Callable[..., RunningServer]) -> None:
    server = serve(max_connections="1", max_connections_per_ip="1", max_connection_creation_rate="1")
    for _ in range(20):
        refused(server)
    assert ask(connect_tls(server)) == b"a request"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps handshakes on the acceptor's thread, however long they take on a loaded machine."""

    def make(listening_fd: int, refusal_delay_ms: int) -> TlsAcceptor:
        return TlsAcceptor(listening_fd, refusal_delay_ms, TIMEOUT * 1000)

    monkeypatch.setattr(tls_acceptor, "TlsAcceptor", make)


def fail_handshake(server: RunningServer) -> socket.socket:
    """Connects a client that does not trust the server's certificate, and returns its socket."""
    context = ssl.create_default_context()
    wrapped = context.wrap_socket(server.connect(), do_handshake_on_connect=False, server_hostname="localhost")
    server.clients.append(wrapped)
    with pytest.raises(ssl.SSLCertVerificationError):
        wrapped.do_handshake()
    return wrapped


@pytest.mark.usefixtures("patient")
def test_a_failed_handshake_is_logged_and_counted(
    serve: Callable[..., RunningServer], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server = serve()
    client = fail_handshake(server)
    wait_failed(server, 1)
    host, port = server.server.endpoints[0].host, server.server.endpoints[0].port
    (line,) = (record.getMessage() for record in caplog.records if "Failed authentication" in record.getMessage())
    assert line.startswith(
        f"Failed authentication with /127.0.0.1 (channelId={host}:{port}-127.0.0.1:{client.getsockname()[1]}-0-0) "
        "(SSL handshake failed: "
    )
    assert "alert unknown ca" in line
    assert server.server.connection_count == 0


@pytest.mark.usefixtures("patient")
def test_of_many_failed_handshakes_each_is_counted_and_some_are_named(
    serve: Callable[..., RunningServer], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server = serve()
    for client in [server.connect() for _ in range(200)]:
        client.sendall(b"\x16\x03\x01\x00\x05abcde")
        assert client.recv(100)
    wait_failed(server, 200)
    named = len(re.findall(r"Failed authentication with /127\.0\.0\.1 .*\(SSL handshake failed: .+\)", caplog.text))
    others = sum(map(int, re.findall(r"with (\d+) more clients of SSL://.* \(SSL handshake failed\)", caplog.text)))
    assert named > 0
    assert named + others == 200


@pytest.mark.usefixtures("patient")
def test_failed_handshakes_count_in_the_rate_of_new_connections_and_in_no_other_limit(
    serve: Callable[..., RunningServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(max_connections="1", max_connections_per_ip="1")
    spent: list[tuple[str, int]] = []
    monkeypatch.setattr(server.server.quotas, "spend_rate", lambda name, count=1: spent.append((name, count)))
    for number in range(1, 4):
        fail_handshake(server)
        wait_failed(server, number)
    assert ask(connect_tls(server)) == b"a request"
    assert spent == [("SSL", 1)] * 4


def test_the_client_beyond_max_connections_waits_for_a_place(serve: Callable[..., RunningServer]) -> None:
    server = serve(max_connections="1")
    first = connect_tls(server)
    assert ask(first) == b"a request"
    context = ssl.create_default_context(cadata=authority().certificate.decode())
    second = server.connect()
    second.settimeout(0.3)
    with pytest.raises(TimeoutError):
        context.wrap_socket(second, server_hostname="localhost")
    first.close()
    assert ask(connect_tls(server)) == b"a request"


def test_one_address_too_often_is_closed_at_once(
    serve: Callable[..., RunningServer], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server = serve(max_connections_per_ip="1")
    assert ask(connect_tls(server)) == b"a request"
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask(connect_tls(server))
    assert "Rejected connection from /127.0.0.1, address already has the configured maximum of 1" in caplog.text


def test_a_client_that_sends_nothing_ends_when_it_is_idle(serve: Callable[..., RunningServer]) -> None:
    assert serve(connections_max_idle_ms="101").connect().recv(1) == b""
