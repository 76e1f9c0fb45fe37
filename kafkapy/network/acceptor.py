"""The listening socket of one listener, which passes accepted connections to the reactor."""

from __future__ import annotations

import errno
import logging
import os
import socket
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from kafkapy._core.reactor.reactor import Reactor, Watch
from kafkapy.config import BrokerConfig
from kafkapy.config.listener import Listener
from kafkapy.config.listener_security import uses_sasl
from kafkapy.host_names import host_addresses
from kafkapy.network.connection_quotas import ConnectionQuotas
from kafkapy.security.principal_builder import PRINCIPAL_BUILDER_KEY

if TYPE_CHECKING:
    from kafkapy._core.tls.tls_acceptor import RefusalReport, TlsAcceptor
    from kafkapy._core.tls.tls_context import BegunSession
    from kafkapy.network.listener_tls import ListenerTls

logger = logging.getLogger("kafka.network.DataPlaneAcceptor")

ACCEPTS_PER_TURN = 32
EXHAUSTED = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
EXHAUSTED_PAUSE_MS = 100
RESET_AT_CLOSE = struct.pack("ii", 1, 0)  # of SO_LINGER: on, for 0 seconds
ANOTHER_PORT = (
    " Choose another port by the key listeners in the configuration file, or by "
    "--override listeners=PLAINTEXT://localhost:PORT"
)
# How often a full listener is checked, because a change of the configuration may increase the limit.
FULL_RECHECK_MS = 1000


def bind_listener(listener: Listener, config: BrokerConfig) -> socket.socket:
    """Returns a socket that listens at the listener's address. Accepted sockets inherit its options. Raises OSError,
    whose message names the listener."""
    try:
        if listener.host:
            found = host_addresses(listener.host, listener.port)
            # IPv4 comes first, as in the JVM, where "localhost" is 127.0.0.1.
            family, address = min(((entry[0], entry[4]) for entry in found), key=lambda entry: entry[0])
        else:
            family, address = socket.AF_INET6, ("::", listener.port)
            if not socket.has_dualstack_ipv6():
                family, address = socket.AF_INET, ("0.0.0.0", listener.port)
        bound = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise OSError(error.errno, f"Socket server failed to bind to {listener}: {error.strerror}") from error
    try:
        bound.setblocking(False)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not listener.host and family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        for key, option in (
            ("socket.send.buffer.bytes", socket.SO_SNDBUF),
            ("socket.receive.buffer.bytes", socket.SO_RCVBUF),
        ):
            if config[key] != -1:
                bound.setsockopt(socket.SOL_SOCKET, option, config[key])
        bound.bind(address)
        bound.listen(config.socket_listen_backlog_size)
    except OSError as error:
        bound.close()
        remedy = ANOTHER_PORT if error.errno == errno.EADDRINUSE else ""
        raise OSError(error.errno, f"Socket server failed to bind to {listener}: {error.strerror}.{remedy}") from error
    return bound


class Client(NamedTuple):
    """An accepted connection: its descriptor, the host and port of the peer and of this node, and the session of its
    TLS handshake if a thread has begun it."""

    fd: int
    host: str
    port: int
    local_host: str
    local_port: int
    session: BegunSession | None = None

    def connection_id(self, number: int) -> str:
        return f"{plain_host(self.local_host)}:{self.local_port}-{self.address}:{self.port}-0-{number}"

    @property
    def address(self) -> str:
        return plain_host(self.host)


def plain_host(host: str) -> str:
    """Returns the address `host` as text; `::ffff:10.0.0.1`, an IPv4 client of an IPv6 socket, becomes `10.0.0.1`."""
    return host.removeprefix("::ffff:")


class Acceptor:
    """The listening socket of one listener. Only the reactor's thread may use it.

    The socket listens from `__init__` on, so that a port in use is found early; the system queues clients until
    `start`. While a limit is reached, or the process has no descriptors left, the acceptor pauses and does not poll its
    descriptor. A thread (`TlsAcceptor`) accepts the clients of a listener with TLS and runs their handshakes. Those
    that it refuses count in no limit, except that failed handshakes count in `max.connection.creation.rate`.
    """

    def __init__(
        self,
        listener: Listener,
        config: BrokerConfig,
        reactor: Reactor,
        tls: ListenerTls | None = None,
        on_refused: Callable[[Listener, str, int, list[tuple[str, str, str]]], None] | None = None,
    ) -> None:
        """Binds the listener's socket.

        `on_refused(listener, reason, count, first)` is called after the thread of TLS has refused `count` clients;
        `first` has the address, the connection id and the exact reason of some of them.
        """
        self._socket = bind_listener(listener, config)
        self.port: int = self._socket.getsockname()[1]
        self.listener = listener._replace(port=self.port)
        self._reactor = reactor
        self._tls = tls
        self._tls_acceptor: TlsAcceptor | None = None
        self._on_refused = on_refused
        self._refusal_delay_ms: int = config.connection_failed_authentication_delay_ms
        self._quotas: ConnectionQuotas | None = None
        self._watch: Watch | None = None
        self._accepted = 0
        self._exhausted = False
        self._is_held = False  # the thread of TLS begins no handshake
        self._throttled: set[int] = set()  # descriptors of accepted connections that wait to be closed
        # Compiled code (the gate) serves usual Produce and Fetch requests. Clients of a controller's listener may not
        # access the broker's partitions. A principal builder of the administrator is asked in Python about clients that
        # neither TLS nor SASL identifies; with an authorizer, Python sees the first request of each client anyway.
        has_builder = config.has_other_than_default(PRINCIPAL_BUILDER_KEY) and not config.authorizer_class_name
        asks_builder = has_builder and tls is None and not uses_sasl(listener)
        self._is_gated = listener.name not in config.controller_listener_names and not asks_builder
        # The largest frame of a client that has not proved its identity; None if clients need not prove it.
        self._max_token_bytes: int | None = (
            config.for_listener(listener.name, "sasl.server.max.receive.size") if uses_sasl(listener) else None
        )

    def start(self, quotas: ConnectionQuotas) -> None:
        """Begins to accept clients, first the clients that have connected since the object was created. `quotas` limits
        connections.
        """
        self._quotas = quotas
        if self._tls is None:
            self._watch = self._reactor.watch(self._socket.fileno(), self._accept_ready)
            return
        from kafkapy._core.tls.tls_acceptor import TlsAcceptor

        self._tls_acceptor = TlsAcceptor(self._socket.fileno(), self._refusal_delay_ms)
        self._tls.share(self._tls_acceptor.use)
        self._tls_acceptor.start(f"tls-acceptor-{self.listener.name}")
        self._watch = self._reactor.watch(self._tls_acceptor.event_fd, self._accept_ready)

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if self._tls_acceptor is not None:
            self._tls_acceptor.stop()
        for fd in self._throttled:
            os.close(fd)
        self._throttled.clear()
        self._socket.close()

    def resume(self) -> None:
        """Ends a pause, if the acceptor has paused, and checks again whether a connection may be accepted."""
        if self._watch is not None:
            self._watch.resume()
        if self._tls_acceptor is not None and self._is_held:
            self._is_held = False
            self._tls_acceptor.hold(False)

    def _accept_ready(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            if not (self._may_accept() and self._accept_one()):
                break
        if self._tls_acceptor is not None:
            self._handle_report(self._tls_acceptor)

    def _handle_report(self, tls_acceptor: TlsAcceptor) -> None:
        """Passes on what the thread has refused, and handles an error that keeps it from accepting clients."""
        from kafkapy._core.tls.tls_acceptor import PLAINTEXT_REASON

        strangers, failures, error = tls_acceptor.take_report()
        if error:
            self._log_exhaustion(error)
        if strangers.total:
            self._report_refused(PLAINTEXT_REASON, strangers)
        if failures.total:
            assert self._quotas is not None
            self._report_refused("", failures)
            self._quotas.spend_rate(self.listener.name, failures.total)
            self._may_accept()  # pauses if the rate is exceeded

    def _report_refused(self, reason: str, report: RefusalReport) -> None:
        first = []
        for number, each in enumerate(report.first, self._accepted):
            client = Client(-1, each.host, each.port, each.local_host, each.local_port)
            first.append((client.address, client.connection_id(number), each.reason))
        self._accepted += report.total
        if self._on_refused is not None:
            self._on_refused(self.listener, reason, report.total, first)

    def _may_accept(self) -> bool:
        assert self._quotas is not None
        name = self.listener.name
        delay_ms = self._quotas.delay_ms(name, self._reactor.monotonic_ms)
        if delay_ms:
            self._pause(delay_ms)
            return False
        if not self._quotas.has_room(name):
            self._pause(FULL_RECHECK_MS)  # the end of a connection resumes earlier
            return False
        return True

    def _pause(self, duration_ms: int) -> None:
        if self._watch is not None:
            self._watch.pause()
            self._reactor.schedule(duration_ms, self.resume)
            if self._tls_acceptor is not None and not self._is_held:
                self._is_held = True
                self._tls_acceptor.hold(True)

    def _accept_one(self) -> bool:
        """Accepts one connection and returns True; returns False if no client waits, or the process has no descriptors
        left.

        Also returns True if the client has aborted the connection, or if the connection is rejected because its address
        has too many or connects too often.
        """
        assert self._quotas is not None
        try:
            client = self._next_client()
        except OSError as error:
            if error.errno not in EXHAUSTED:
                return True  # the client aborted the connection while it waited
            self._log_exhaustion(error.errno)
            self._pause(EXHAUSTED_PAUSE_MS)
            return False
        if client is None:
            return False
        self._exhausted = False
        host = client.address
        self._quotas.spend_rate(self.listener.name)
        if not self._quotas.has_room_for(host):
            limit = self._quotas.address_limit(host)
            logger.info("Rejected connection from /%s, address already has the configured maximum of %d connections.",
                        host, limit)  # fmt: skip
            os.close(client.fd)
            return True
        throttle_ms = self._quotas.throttle_ms(self.listener.name, host, self._reactor.monotonic_ms)
        if throttle_ms:
            self._close_later(client.fd, throttle_ms)
            return True
        self._adopt(client)
        return True

    def _next_client(self) -> Client | None:
        """Returns the next client that waits, or None. Raises OSError if it cannot be accepted."""
        if self._tls_acceptor is not None:
            taken = self._tls_acceptor.take()
            return None if taken is None else Client(*taken)
        try:
            accepted, address = self._socket.accept()
        except BlockingIOError:
            return None
        local = accepted.getsockname()
        accepted.setblocking(False)
        return Client(accepted.detach(), str(address[0]), int(address[1]), str(local[0]), int(local[1]))

    def _log_exhaustion(self, error: int) -> None:
        if not self._exhausted:
            logger.error("Error while accepting connection on %s: %s", self.listener, os.strerror(error))
            self._exhausted = True

    def _close_later(self, fd: int, delay_ms: int) -> None:
        """Resets a connection after `delay_ms`, without reading from it, because its address has created connections
        too often."""
        with socket.socket(fileno=fd) as accepted:
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
            accepted.detach()
        self._throttled.add(fd)

        def close() -> None:
            if fd in self._throttled:
                self._throttled.discard(fd)
                os.close(fd)

        self._reactor.schedule(delay_ms, close)

    def _adopt(self, client: Client) -> None:
        assert self._quotas is not None
        if self._quotas.is_full():
            self._make_room()
        host, identity = client.address, client.connection_id(self._accepted)
        self._accepted += 1
        tls = client.session or (None if self._tls is None else self._tls.context)
        try:
            connection = self._reactor.adopt(client.fd, self.listener, host, client.port, identity, self._is_gated, tls)
        except BaseException:
            os.close(client.fd)
            raise
        if self._max_token_bytes is not None:
            connection.begin_authentication(self._max_token_bytes)
        self._quotas.add(self.listener.name, host)

    def _make_room(self) -> None:
        """Closes the least recently used connection of the other listeners, if they have one.

        Called when `max.connections` is reached and this is the listener whose connections may exceed this limit.
        """
        for connection in self._reactor.idle_order():
            if connection.listener.name != self.listener.name:
                connection.close("max.connections is reached and a broker connects")
                return
