"""Runs a reactor in a thread for tests, with connected client sockets and the reactor's Connection objects."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

from kafkapy._core.reactor.reactor import Connection, Reactor, Request
from kafkapy._core.tls.tls_context import TlsContext

TIMEOUT = 20


class ReactorHarness:
    """Owns a running reactor and the clients' sockets. `dispatch` runs on the reactor's thread."""

    def __init__(self, dispatch: Callable[[list[Request]], None], **options: Any) -> None:
        self.closed: dict[str, tuple[int, str]] = {}
        self.closed_event = threading.Condition()
        self.errors: list[BaseException] = []
        options.setdefault("on_close", self.note_close)
        self.reactor = Reactor(dispatch, on_callback_error=self.errors.append, **options)
        self.sockets: list[socket.socket] = []
        self.connections: list[Connection] = []
        self.thread = threading.Thread(target=self.reactor.run)
        self.thread.start()

    def note_close(self, connection: Connection, kind: int) -> None:
        with self.closed_event:
            self.closed[connection.id] = (kind, connection.describe_close())
            self.closed_event.notify_all()

    def wait_closed(self, connection: Connection) -> tuple[int, str]:
        with self.closed_event:
            assert self.closed_event.wait_for(lambda: connection.id in self.closed, TIMEOUT)
            return self.closed[connection.id]

    def connect(self, send_buffer: int = 0, receive_buffer: int = 0, tls: TlsContext | None = None) -> socket.socket:
        """Returns a client's socket, whose other end the reactor has adopted; with `tls` as a server of TLS."""
        with socket.socket() as listening:
            if send_buffer:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
            listening.bind(("127.0.0.1", 0))
            listening.listen(1)
            client = socket.socket()
            if receive_buffer:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            client.settimeout(TIMEOUT)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.connect(listening.getsockname())
            accepted, address = listening.accept()
        accepted.setblocking(False)
        descriptor = accepted.detach()
        name = f"c{len(self.sockets)}"
        self.connections.append(
            self.call(lambda: self.reactor.adopt(descriptor, None, address[0], address[1], name, tls=tls))
        )
        self.sockets.append(client)
        return client

    def call(self, function: Callable[[], Any]) -> Any:
        """Runs `function` on the reactor's thread and returns its result."""
        done = threading.Event()
        answer: list[Any] = []

        def run() -> None:
            try:
                answer.append(function())
            finally:
                done.set()

        self.reactor.post(run)
        assert done.wait(TIMEOUT)
        return answer[0]

    def close(self) -> None:
        self.reactor.stop()
        self.thread.join(TIMEOUT)
        assert not self.thread.is_alive()
        for client in self.sockets:
            client.close()


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def receive_exactly(client: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = client.recv(min(size - len(parts), 1 << 20))
        if not part:
            raise ConnectionResetError(f"the connection ended after {len(parts)} of {size} bytes")
        parts += part
    return bytes(parts)


def receive_frame(client: socket.socket) -> bytes:
    return receive_exactly(client, struct.unpack(">i", receive_exactly(client, 4))[0])
