"""Runs a reactor whose clients use TLS, with Python's `ssl` or the command `openssl s_client` as the peer."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kafkapy._core.reactor.reactor import Connection, Request
from kafkapy._core.tls.tls_context import TlsContext
from tests.harness.certificates import CertificateAuthority, Identity
from tests.reactor_harness import TIMEOUT, ReactorHarness


def server_context(identity: Identity, **options: Any) -> TlsContext:
    return TlsContext(
        certificate_chain_pem=identity.chain_pem, private_key_pem=identity.key_pem, is_server=True, **options
    )


def client_context(authority: CertificateAuthority, identity: Identity | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.certificate_pem.decode())
    if identity is not None:
        context.load_cert_chain(identity.chain_file, identity.key_file)
    return context


def echo(requests: list[Request]) -> None:
    for request in requests:
        request.connection.respond([bytes(request.payload)])


class TlsHarness(ReactorHarness):
    """A reactor with TLS clients. It closes the connections of failed handshakes at once."""

    def __init__(self, context: TlsContext, dispatch: Any = echo, **options: Any) -> None:
        self.context = context
        self.handshakes: list[tuple[Connection, str | None]] = []
        self.handshake_event = threading.Condition()
        super().__init__(dispatch, on_handshake=self._note_handshake, **options)

    def _note_handshake(self, connection: Connection, error: str | None) -> None:
        if error is not None:
            connection.close(error)
        with self.handshake_event:
            self.handshakes.append((connection, error))
            self.handshake_event.notify_all()

    def wait_handshake(self, count: int = 1) -> tuple[Connection, str | None]:
        """Waits for the end of `count` handshakes since the start, and returns the last one with its error."""
        with self.handshake_event:
            assert self.handshake_event.wait_for(lambda: len(self.handshakes) >= count, TIMEOUT)
            return self.handshakes[-1]

    def connect_plain(self, **options: Any) -> socket.socket:
        """Returns a client's socket, from which the reactor expects a handshake."""
        return self.connect(tls=self.context, **options)

    def connect_tls(
        self, context: ssl.SSLContext, session: ssl.SSLSession | None = None, **options: Any
    ) -> ssl.SSLSocket:
        plain = self.connect_plain(**options)
        return context.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False, session=session)

    @contextmanager
    def s_client(self, *options: str) -> Iterator[subprocess.Popen[bytes]]:
        """Runs `openssl s_client` with these options, connected to the reactor, until the context's end."""
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            command = ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", *options]
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
            )
            listening.settimeout(TIMEOUT)
            accepted, address = listening.accept()
        accepted.setblocking(False)
        descriptor, name = accepted.detach(), f"s_client-{len(self.connections)}"
        self.connections.append(
            self.call(lambda: self.reactor.adopt(descriptor, None, address[0], address[1], name, tls=self.context))
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


@contextmanager
def running(context: TlsContext, dispatch: Any = echo, **options: Any) -> Iterator[TlsHarness]:
    harness = TlsHarness(context, dispatch, **options)
    try:
        yield harness
    finally:
        harness.close()
    assert harness.errors == []
