"""Runs the thread that accepts the clients of a listener with TLS, without a reactor."""

from __future__ import annotations

import os
import socket
import time

from kafkapy._core.tls.tls_acceptor import Refused, TlsAcceptor
from kafkapy._core.tls.tls_context import BegunSession, TlsContext
from kafkapy.readable import is_readable
from tests.reactor_harness import TIMEOUT

Taken = tuple[int, str, int, str, int, BegunSession | None]


class RunningAcceptor:
    def __init__(
        self,
        host: str = "127.0.0.1",
        refusal_delay_ms: int = 0,
        waiting_ms: int = 300,
        context: TlsContext | None = None,
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listening = socket.create_server((host, 0), family=family, backlog=1024)
        self.listening.setblocking(False)
        self.acceptor = TlsAcceptor(self.listening.fileno(), refusal_delay_ms, waiting_ms)
        if context is not None:
            self.acceptor.use(context)
        self.acceptor.start("tls-acceptor-test")
        self.clients: list[socket.socket] = []
        self.taken: list[int] = []

    def connect(self, first: bytes = b"") -> socket.socket:
        client = socket.create_connection(self.listening.getsockname()[:2], TIMEOUT)
        self.clients.append(client)
        client.sendall(first)
        return client

    def wait_readable(self) -> None:
        assert is_readable(self.acceptor.event_fd, TIMEOUT)

    def take(self) -> Taken:
        """Waits for the next client that is passed on. Its descriptor is closed at the end."""
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            if (client := self.acceptor.take()) is not None:
                self.taken.append(client[0])
                return client
            self.wait_readable()
        raise TimeoutError

    def refused(self, wanted: int, *, is_stranger: bool = True) -> tuple[int, list[Refused]]:
        """Waits until `wanted` clients were refused: strangers, which do not speak TLS, or those that failed.

        Returns their number, and those of them that are named.
        """
        count, named = 0, []
        deadline = time.monotonic() + TIMEOUT
        while count < wanted and time.monotonic() < deadline:
            self.wait_readable()
            assert self.acceptor.take() is None
            strangers, failures, error = self.acceptor.take_report()
            assert error == 0
            wanted_ones, others = (strangers, failures) if is_stranger else (failures, strangers)
            assert others.total == 0
            count += wanted_ones.total
            named += wanted_ones.first
        return count, named

    def close(self) -> None:
        self.acceptor.stop()
        for fd in self.taken:
            os.close(fd)
        for client in self.clients:
            client.close()
        self.listening.close()


def addresses_of(client: socket.socket) -> tuple[str, int, str, int]:
    """Returns the host and port of the client and of the listener, as the acceptor reports them."""
    return (*client.getsockname()[:2], *client.getpeername()[:2])


def has_ended(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True
