"""The socket of the listener for ZooKeeper's clients.

It accepts clients while this broker serves the tree of znodes, and refuses connections otherwise.

accept -> the first four bytes: a four-letter word -> its text, then the end of the connection
                                the size of a frame -> the reactor splits frames from now on
accept, with TLS -> the reactor runs the handshake and splits frames; there are no four-letter words
"""

from __future__ import annotations

import errno
import logging
import socket
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Protocol

from kafkapy._core.reactor.reactor import OutgoingConnection, Reactor, Request, Watch
from kafkapy._core.tls.tls_context import TlsContext
from kafkapy.host_names import host_addresses
from kafkapy.purgatory.delayed_operation import TimerEntry
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.security.tls.certificate import subject_text
from kafkapy.security.tls.der import DerError
from kafkapy.zookeeper.acl import Identity
from kafkapy.zookeeper.client import Client
from kafkapy.zookeeper.server import ZooKeeperServer
from kafkapy.zookeeper.settings import ZooKeeperSettings
from kafkapy.zookeeper.words import WORD_BYTES, WORDS, answer_to

logger = logging.getLogger("kafkapy.zookeeper.Listener")

_MOST_ACCEPTS = 32
_WAITING_CLIENTS = 128
# A connection that has sent no complete request after this time, a TLS handshake included, is closed.
_FIRST_REQUEST_MS = 10_000
# Accepting stops for this time when the process has no descriptor or no memory left for a connection.
_ACCEPT_PAUSE_MS = 500
_NO_RESOURCES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
# With more bytes that wait for a client than the first number, no further request of the connection is read. With more
# unsent bytes than the second one, which only watch events can cause, the connection is closed.
_PAUSE_BYTES = 1 << 20
_MOST_UNSENT_BYTES = 64 << 20
# The interval at which a connection whose client does not read is inspected, and the longest time without inspection.
_UNSENT_INTERVAL_MS = 5
_MUTED_MS = 3_600_000
# The end of a connection that is not logged.
_NORMAL_END = "closed by the peer"
# How long an incomplete beginning of a connection waits for more bytes before it is read again.
_PARTIAL_RETRY_MS = 20


def parse_address(text: str) -> tuple[str, int]:
    """Returns the host and the port in `text`, which is `host:port` or only a port; the host is then localhost.

    The text must be valid.
    """
    host, _, port = text.rpartition(":")
    return host.strip("[]") or "localhost", int(port)


class TlsSource(Protocol):
    """The interface that provides the listener's TLS keys and certificates, which may change while the broker runs."""

    @property
    def context(self) -> TlsContext:
        """The TLS context for connections that are accepted from now on."""


class Listener:
    """The listening socket and the connections that have not sent their first frame. Only the reactor's thread may use
    it.

    The address is bound from the construction on, so that a port in use is found early; connections are refused until
    `serve`, and again after `refuse`.
    """

    def __init__(
        self, address: str, reactor: Reactor, settings: ZooKeeperSettings, tls: TlsSource | None = None
    ) -> None:
        """Binds the address, a text `host:port` or only a port; clients use TLS if `tls` is set.

        Raises OSError, whose text names the configuration key of the address.
        """
        self._host, self.port = parse_address(address)
        self._reactor = reactor
        self._settings = settings
        self._tls = tls
        self._server: ZooKeeperServer | None = None
        self._watch: Watch | None = None
        self._beginnings: dict[_Beginning, None] = {}
        self._addresses: Counter[str] = Counter()
        self._accept_timer: TimerEntry | None = None
        self._numbers = count()
        self._socket = self._bind()
        self.port = self._socket.getsockname()[1]

    def _bind(self) -> socket.socket:
        try:
            found = host_addresses(self._host, self.port)
            family, address = min(((entry[0], entry[4]) for entry in found), key=lambda entry: entry[0])
            bound = socket.socket(family, socket.SOCK_STREAM)
            try:
                bound.setblocking(False)
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                bound.bind(address)
            except OSError:
                bound.close()
                raise
        except OSError as error:
            text = f"zookeeper.listener cannot be bound to {self._host}:{self.port}: {error.strerror}"
            raise OSError(error.errno, text) from error
        return bound

    def serve(self, server: ZooKeeperServer) -> None:
        """Accepts clients, whose requests `server` handles."""
        self._server = server
        self._socket.listen(_WAITING_CLIENTS)
        self._watch = self._reactor.watch(self._socket.fileno(), self._accept_ready)
        logger.info("Awaiting ZooKeeper clients on %s:%d", self._host, self.port)

    def refuse(self) -> None:
        """Refuses connections until the next `serve`. The address stays bound."""
        if self._watch is not None:
            self._server = None
            self._stop_listening()
            self._socket = self._bind()

    def close(self) -> None:
        self._stop_listening()

    def _stop_listening(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if self._accept_timer is not None:
            self._accept_timer.cancel()
            self._accept_timer = None
        self._socket.close()
        for beginning in list(self._beginnings):
            beginning.close()

    # -- connections

    def _accept_ready(self) -> None:
        for _ in range(_MOST_ACCEPTS):
            try:
                accepted, address = self._socket.accept()
            except OSError as error:
                if error.errno in _NO_RESOURCES:
                    self._pause_accepting(error)
                return  # otherwise no client waits, or a client has gone
            host = str(address[0]).removeprefix("::ffff:")
            limit = self._settings.max_connections_per_address
            if limit and self._addresses[host] >= limit:
                logger.warning("Too many connections from /%s - max is %d", host, limit)
                accepted.close()
                continue
            self._addresses[host] += 1
            accepted.setblocking(False)
            if self._tls is not None:
                self._adopt(accepted.detach(), host, int(address[1]), self._tls.context)
                continue
            beginning = _Beginning(accepted, host, int(address[1]), self._reactor, self._begin, self._forget)
            self._beginnings[beginning] = None

    def _pause_accepting(self, error: OSError) -> None:
        """Stops accepting connections for a while, because accepting one has failed with `error`.

        Without this pause, the client that waits would wake the reactor again and again.
        """
        assert self._watch is not None
        logger.warning("Accepting no ZooKeeper client for %d ms: %s", _ACCEPT_PAUSE_MS, error.strerror)
        self._watch.pause()
        self._accept_timer = self._reactor.schedule(_ACCEPT_PAUSE_MS, self._watch.resume)

    def _forget(self, beginning: _Beginning) -> None:
        """Removes a connection that has ended before its first frame from the list of connections."""
        self._beginnings.pop(beginning, None)
        self._release(beginning.host)

    def _release(self, host: str) -> None:
        self._addresses[host] -= 1
        if not self._addresses[host]:
            del self._addresses[host]

    def _begin(self, beginning: _Beginning, first: bytes) -> None:
        """Answers a four-letter word such as `ruok`, or passes a connection that begins otherwise to the server.

        `first` are the first four bytes, which are still unread in the socket.
        """
        server = self._server
        assert server is not None, "connections end before the server does"
        word = first.decode("ascii", "replace")
        if word in WORDS:
            beginning.answer(answer_to(word, server).encode())
            return
        del self._beginnings[beginning]
        self._adopt(beginning.release(), beginning.host, beginning.port, None)

    def _adopt(self, descriptor: int, host: str, port: int, context: TlsContext | None) -> None:
        """Registers an accepted connection with the reactor, so that the server handles its frames.

        `descriptor` is the socket's; the connection begins with a TLS handshake if `context` is set.
        """
        server = self._server
        assert server is not None, "connections end before the server does"

        def receive(frame: Request) -> None:
            if client.received == 0:
                _add_certificate(client, connection.peer_certificate())
            server.receive(client, bytes(frame))

        def ended(_: OutgoingConnection) -> None:
            timer.cancel()
            reason = connection.describe_close()
            if client.received == 0 and context is not None:
                logger.info("The connection of /%s ended without a request: %s", host, reason)
            elif not client.is_closed and reason != _NORMAL_END:
                logger.warning("The connection of /%s has failed: %s", host, reason)
            server.disconnected(client)
            self._release(host)

        connection = self._reactor.adopt_outgoing(
            descriptor,
            host,
            port,
            f"zookeeper-{next(self._numbers)}-{host}:{port}",
            on_response=receive,
            on_closed=ended,
            max_response_bytes=self._settings.max_request_bytes,
            tls=context,
        )
        client = Client(_Frames(connection, self._reactor.schedule))
        server.connected(client)
        timer = self._reactor.schedule(_FIRST_REQUEST_MS, lambda: _close_if_silent(client))


def _add_certificate(client: Client, certificate: bytes | None) -> None:
    """Adds the subject of the client's certificate to the client's identities, with the scheme x509.

    `certificate` is in DER; None means that the client has sent no certificate.
    """
    if certificate is not None:
        try:
            client.identities.append(Identity("x509", subject_text(certificate)))
        except DerError as error:  # OpenSSL accepts more encodings of names
            logger.warning("The certificate of /%s gives it no identity: %s", client.address, error)


def _close_if_silent(client: Client) -> None:
    if client.received == 0:
        client.close("its client has sent no request in time")


class _Frames:
    """The connection to a client, as `Client` uses it.

    While many bytes wait because the client does not read them, or because replies wait for earlier operations, no
    requests of the client are read. If the client does not read too many bytes, the connection is closed.
    """

    __slots__ = ("_connection", "_held", "_is_paused", "_schedule", "peer_host")

    def __init__(self, connection: OutgoingConnection, schedule: Schedule) -> None:
        self._connection = connection
        self._schedule = schedule
        self._is_paused = False
        self._held = 0
        self.peer_host = connection.peer_host

    def send(self, frame: bytes) -> None:
        connection = self._connection
        connection.send((frame,), at_once=False)  # the replies to pipelined requests are written together
        unsent = connection.unsent_bytes
        if unsent > _MOST_UNSENT_BYTES and not connection.is_closed:
            logger.warning("Closing the connection of /%s, which does not read %d bytes", self.peer_host, unsent)
            connection.close("its client does not read")
        elif unsent > _PAUSE_BYTES and not self._is_paused:
            self._is_paused = True
            self._pause()

    def hold(self, size: int) -> None:
        """Counts the bytes of the frames that are to be sent later: `size` more, or less if it is negative."""
        self._held += size
        if self._held > _PAUSE_BYTES and not self._is_paused:
            self._is_paused = True
            self._pause()

    def _pause(self) -> None:
        """Stops reading requests until few bytes wait for the client.

        A timer calls this method again every few milliseconds, until few bytes wait.
        """
        connection = self._connection
        if connection.is_closed or connection.unsent_bytes + self._held <= _PAUSE_BYTES:
            self._is_paused = False
            connection.unmute()
        else:
            connection.mute(_MUTED_MS)
            self._schedule(_UNSENT_INTERVAL_MS, self._pause)

    def close(self, reason: str) -> None:
        self._connection.close(reason)


class _Beginning:
    """An accepted connection whose first four bytes have not arrived yet.

    `on_begin(self, first)` is called when the bytes `first` have arrived. `on_end(self)` is called instead if the
    connection ends before, or if the bytes do not arrive in time.
    """

    def __init__(
        self,
        accepted: socket.socket,
        host: str,
        port: int,
        reactor: Reactor,
        on_begin: Callable[[_Beginning, bytes], None],
        on_end: Callable[[_Beginning], None],
    ) -> None:
        self.host = host
        self.port = port
        self._socket = accepted
        self._reactor = reactor
        self._on_begin = on_begin
        self._on_end = on_end
        self._watch = reactor.watch(accepted.fileno(), self._readable)
        self._timer = reactor.schedule(_FIRST_REQUEST_MS, self.close)

    def _readable(self) -> None:
        try:
            first = self._socket.recv(WORD_BYTES, socket.MSG_PEEK)
        except BlockingIOError:
            return
        except OSError:
            first = b""
        if not first:
            self.close()
        elif len(first) < WORD_BYTES:
            self._watch.pause()  # the watch is level-triggered
            self._reactor.schedule(_PARTIAL_RETRY_MS, self._watch.resume)
        else:
            self._on_begin(self, first)

    def release(self) -> int:
        """Stops waiting for the first bytes, and returns the socket's descriptor, which the caller owns from now on."""
        self._watch.close()
        self._timer.cancel()
        return self._socket.detach()

    def answer(self, text: bytes) -> None:
        """Sends `text`, the answer to a four-letter word, as far as the socket accepts it; closes the connection."""
        try:
            self._socket.recv(WORD_BYTES)
            self._socket.sendall(text)
        except OSError:
            pass  # the client has gone, or does not read
        self.close()

    def close(self) -> None:
        self._watch.close()
        self._timer.cancel()
        self._socket.close()
        self._on_end(self)
