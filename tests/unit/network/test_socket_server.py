"""Listeners on loopback: ports, connection limits, log lines, clean close."""

from __future__ import annotations

import gc
import logging
import re
import resource
import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

from kafkapy._core.reactor.reactor import Request
from kafkapy.config import BrokerConfig
from kafkapy.config.listener import Listener
from kafkapy.network.listener_tls import TlsListeners
from kafkapy.network.socket_server import SocketServer, create_reactor
from tests.reactor_harness import TIMEOUT, frame, receive_frame

PLAINTEXT = Listener("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 0)
EXTERNAL = Listener("EXTERNAL", "PLAINTEXT", "127.0.0.1", 0)


def echo(requests: list[Request]) -> None:
    for request in requests:
        request.connection.respond([bytes(request.payload)])


class RunningServer:
    def __init__(self, listeners: list[Listener], tls: TlsListeners | None = None, **keys: str) -> None:
        self.config = BrokerConfig(
            {
                "node.id": "1",
                "process.roles": "broker,controller",
                "controller.quorum.voters": "1@localhost:9093",
                "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
                "controller.listener.names": "CONTROLLER",
                **{key.replace("_", "."): value for key, value in keys.items()},
            }
        )
        self.reactor = create_reactor(self.config)
        self.reactor.dispatch = echo
        self.server = SocketServer(listeners, self.config, self.reactor, tls)
        self.server.start([listener.name for listener in listeners])
        self.thread = threading.Thread(target=self.reactor.run)
        self.thread.start()
        self.clients: list[socket.socket] = []

    def connect(self, listener: int = 0) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.server.endpoints[listener].port), TIMEOUT)
        self.clients.append(client)
        return client

    def close(self) -> None:
        self.reactor.post(self.server.close)
        self.reactor.stop()
        self.thread.join(TIMEOUT)
        assert not self.thread.is_alive()
        for client in self.clients:
            client.close()
        assert self.server.connection_count == 0


@pytest.fixture
def serve() -> Iterator[Callable[..., RunningServer]]:
    servers: list[RunningServer] = []

    def start(listeners: list[Listener] | None = None, **keys: str) -> RunningServer:
        servers.append(RunningServer(listeners or [PLAINTEXT], **keys))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def ask(client: socket.socket, text: bytes = b"a request") -> bytes:
    client.sendall(frame(text))
    return receive_frame(client)


def test_several_listeners_with_free_ports(serve: Callable[..., RunningServer]) -> None:
    server = serve([PLAINTEXT, EXTERNAL])
    assert [listener.name for listener in server.server.endpoints] == ["PLAINTEXT", "EXTERNAL"]
    assert all(listener.port for listener in server.server.endpoints)
    assert ask(server.connect(0)) == ask(server.connect(1)) == b"a request"


def test_every_interface_and_a_name(serve: Callable[..., RunningServer]) -> None:
    server = serve([PLAINTEXT._replace(host=""), EXTERNAL._replace(host="localhost")])
    assert ask(server.connect(0)) == ask(server.connect(1)) == b"a request"
    hosts = [connection.peer_host for connection in server.reactor.idle_order()]
    assert hosts == ["127.0.0.1", "127.0.0.1"]


def test_a_port_in_use_is_named(serve: Callable[..., RunningServer]) -> None:
    port = serve().server.endpoints[0].port
    with pytest.raises(
        OSError,
        match=rf"failed to bind to EXTERNAL://127\.0\.0\.1:{port}: Address already in use\. .*--override listeners=",
    ):
        RunningServer([PLAINTEXT, EXTERNAL._replace(port=port)])


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b"])
def test_a_host_that_does_not_exist_is_named(host: str) -> None:
    with pytest.raises(OSError, match=rf"failed to bind to PLAINTEXT://{re.escape(host)}:0"):
        RunningServer([PLAINTEXT._replace(host=host)])


def test_the_connection_beyond_max_connections_waits_for_a_place(serve: Callable[..., RunningServer]) -> None:
    server = serve(max_connections="2")
    first, second = server.connect(), server.connect()
    assert ask(first) == ask(second) == b"a request"
    third = server.connect()  # the system's backlog takes it
    third.sendall(frame(b"I can wait"))
    third.settimeout(0.2)
    with pytest.raises(TimeoutError):
        third.recv(1)
    third.settimeout(TIMEOUT)
    first.close()
    assert receive_frame(third) == b"I can wait"


def test_one_address_too_often_is_closed_at_once(
    serve: Callable[..., RunningServer], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server = serve(max_connections_per_ip="2")
    first, second = server.connect(), server.connect()
    assert ask(first) == ask(second) == b"a request"
    assert server.connect().recv(1) == b""
    assert "Rejected connection from /127.0.0.1, address already has the configured maximum of 2" in caplog.text


def test_a_creation_rate_delays_and_loses_nobody(serve: Callable[..., RunningServer]) -> None:
    server = serve(max_connection_creation_rate="20")
    clients = [server.connect() for _ in range(30)]
    assert [ask(client) for client in clients] == [b"a request"] * 30


def test_no_more_descriptors_neither_spins_nor_ends_the_listener(
    serve: Callable[..., RunningServer], caplog: pytest.LogCaptureFixture
) -> None:
    server = serve()
    gc.collect()  # what earlier tests left behind must not give descriptors back in the middle of this one
    waiting = [socket.socket() for _ in range(3)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (waiting[-1].fileno() + 1, hard))
    gc.disable()
    try:
        for client in waiting:
            client.settimeout(TIMEOUT)
            client.connect(("127.0.0.1", server.server.endpoints[0].port))
        waiting[0].settimeout(0.3)
        waiting[0].sendall(frame(b"a request"))
        with pytest.raises(TimeoutError):
            waiting[0].recv(1)
        wakeups = server.reactor.counters()["wakeups"]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        gc.enable()
    assert wakeups < 100
    waiting[0].settimeout(TIMEOUT)
    assert receive_frame(waiting[0]) == b"a request"
    assert caplog.text.count("Error while accepting connection") == 1
    for client in waiting:
        client.close()


def test_what_a_client_did_wrong_is_one_line_with_its_address_and_size(
    serve: Callable[..., RunningServer], caplog: pytest.LogCaptureFixture
) -> None:
    server = serve(socket_request_max_bytes="1000")
    good, bad = server.connect(), server.connect()
    bad.sendall(struct.pack(">i", 2**31 - 1))
    assert bad.recv(1) == b""
    assert ask(good) == b"a request"
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    address = f"127.0.0.1:{bad.getsockname()[1]}"
    assert len(lines) == 1
    assert f"/{address}" in lines[0]
    assert "Invalid receive (size = 2147483647 larger than 1000)" in lines[0]


def test_idle_connections_go(serve: Callable[..., RunningServer]) -> None:
    server = serve(connections_max_idle_ms="101")
    assert server.connect().recv(1) == b""


def test_connections_that_come_and_go_leave_nothing(serve: Callable[..., RunningServer]) -> None:
    server = serve()
    for _ in range(300):
        client = socket.create_connection(("127.0.0.1", server.server.endpoints[0].port), TIMEOUT)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    assert ask(server.connect()) == b"a request"
