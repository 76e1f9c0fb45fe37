"""The listeners of a broker or controller, and the updates of connection counts when connections end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from kafkapy._core.reactor import reactor as reactor_module
from kafkapy._core.reactor.reactor import Connection, Reactor
from kafkapy.config import BrokerConfig
from kafkapy.config.listener import Listener
from kafkapy.network.acceptor import Acceptor
from kafkapy.network.connection_quotas import ConnectionQuotas

if TYPE_CHECKING:
    from kafkapy.network.listener_tls import TlsListeners

logger = logging.getLogger("kafka.network.SocketServer")

# Ends of connections that point to a fault of the client or of this broker, and are logged as warnings.
NOTEWORTHY = frozenset(
    (
        reactor_module.CLOSED_FOR_INVALID_SIZE,
        reactor_module.CLOSED_LOCALLY,
        reactor_module.CLOSED_FOR_SHORT_FILE,
        reactor_module.CLOSED_WITHOUT_MEMORY,
    )
)
HANDSHAKE_FAILED = "SSL handshake failed"
FAILED_AUTHENTICATION = "Failed authentication with /%s (channelId=%s) (%s)"


def log_callback_error(error: BaseException) -> None:
    """Logs an exception that was raised by a function which the reactor has called.

    The reactor calls functions that were posted to it, the functions of timers, and functions for connections that were
    closed.
    """
    logger.error("Uncaught error on the reactor thread", exc_info=error)


def create_reactor(config: BrokerConfig) -> Reactor:
    """Returns a reactor with the limits in the configuration. Its `dispatch` has to be set before the reactor runs."""
    return Reactor(
        _nobody_serves,
        max_request_bytes=config.socket_request_max_bytes,
        queued_max_request_bytes=config.queued_max_request_bytes,
        connections_max_idle_ms=config.connections_max_idle_ms,
        on_callback_error=log_callback_error,
    )


def _nobody_serves(requests: object) -> None:
    raise RuntimeError("the reactor has no dispatcher yet")


class SocketServer:
    """The listeners of a broker or controller, with their acceptors and the connection quotas.

    Call `__init__` and `start` before the reactor runs, or on its thread. The constructor binds all listeners, so that
    a port in use is found early; then `endpoints` has the actual ports. `start` is called when the node is ready to
    serve.
    """

    def __init__(
        self,
        listeners: Sequence[Listener],
        config: BrokerConfig,
        reactor: Reactor,
        tls: TlsListeners | None = None,
    ) -> None:
        """Binds all `listeners`. A listener that is in `tls` encrypts its connections.

        If a listener cannot be bound, raises OSError, which names it, and closes the listeners that have been bound.
        """
        self._reactor = reactor
        # Called after a TLS handshake, before the first request. Raises ValueError for a client without a principal.
        self.on_encrypted: Callable[[Connection], None] | None = None
        self._failure_delay_ms: int = config.connection_failed_authentication_delay_ms
        self._failed_handshakes: set[str] = set()
        # Listener with TLS -> the number of clients authenticated by TLS, and of failed handshakes.
        self._handshakes: dict[str, list[int]] = {}
        if tls is not None:
            reactor.on_handshake = self._on_handshake
        self._acceptors: list[Acceptor] = []
        self.quotas = ConnectionQuotas(config, [listener.name for listener in listeners], reactor.monotonic_ms)
        # Are called when a connection has ended.
        self.connection_listeners: list[Callable[[Connection], None]] = []
        reactor.on_close = self._on_close
        try:
            for listener in listeners:
                own_tls = None if tls is None else tls.of(listener.name)
                self._acceptors.append(Acceptor(listener, config, reactor, own_tls, self._on_refused))
        except OSError:
            self.close()
            raise

    @property
    def endpoints(self) -> list[Listener]:
        """The listeners with the ports that they are bound to."""
        return [acceptor.listener for acceptor in self._acceptors]

    @property
    def connection_count(self) -> int:
        return self.quotas.total

    def connections_by_listener(self) -> dict[str, int]:
        """Returns the number of open connections by the listener's name. May be called by any thread."""
        return self.quotas.by_listener()

    def handshakes_by_listener(self) -> dict[str, tuple[int, int]]:
        """Returns, for each listener with TLS that had clients, the number of clients that TLS has authenticated
        (without SASL), and the number of failed handshakes. May be called by any thread."""
        return {name: (counts[0], counts[1]) for name, counts in self._handshakes.copy().items()}

    def start(self, names: Collection[str]) -> None:
        """Begins to accept connections on the listeners with these `names`, including connections that clients have
        opened before."""
        for acceptor in self._acceptors:
            if acceptor.listener.name not in names:
                continue
            acceptor.start(self.quotas)
            logger.info("Awaiting socket connections on %s", acceptor.listener)

    def close(self) -> None:
        """Closes the listening sockets; connections that were accepted stay open until the reactor stops."""
        for acceptor in self._acceptors:
            acceptor.close()
        self._acceptors.clear()

    def _on_handshake(self, connection: Connection, error: str | None) -> None:
        """Makes the connection usable if its TLS handshake has succeeded (`error` is None), and otherwise closes the
        connection.

        After a failed handshake the connection is closed with a delay, so that clients do not repeat their attempts at
        once.
        """
        delay_ms = self._failure_delay_ms
        counts = self._handshake_counts(connection.listener)
        if error is None:
            try:
                if self.on_encrypted is not None:
                    self.on_encrypted(connection)
                if connection.listener.security_protocol == "SSL":
                    counts[0] += 1  # with SASL_SSL the client has yet to prove its identity
                return
            except ValueError as refused:
                error, delay_ms = str(refused), 0  # closed at once: the reactor would serve it next
        reason = f"{HANDSHAKE_FAILED}: {error}"
        logger.info(FAILED_AUTHENTICATION, connection.peer_host, connection.id, reason)
        counts[1] += 1
        if connection.is_closed:
            return
        self._failed_handshakes.add(connection.id)
        if delay_ms:
            self._reactor.schedule(delay_ms, lambda: connection.close(reason))
        else:
            connection.close(reason)

    def _on_refused(self, listener: Listener, reason: str, count: int, first: list[tuple[str, str, str]]) -> None:
        """Counts and logs clients of a listener with TLS that were refused before the reactor.

        `first` has the address, the connection id and the reason of some of them. A line gives the number of the
        others, with the text `reason`, which is empty if their reasons may differ.
        """
        for host, identity, own_reason in first:
            logger.info(FAILED_AUTHENTICATION, host, identity, f"{HANDSHAKE_FAILED}: {own_reason}")
        others = count - len(first)
        if others > 0:
            text = f"{HANDSHAKE_FAILED}: {reason}" if reason else HANDSHAKE_FAILED
            logger.info("Failed authentication with %d more clients of %s (%s)", others, listener, text)
        self._handshake_counts(listener)[1] += count

    def _handshake_counts(self, listener: Listener) -> list[int]:
        return self._handshakes.setdefault(listener.name, [0, 0])

    def _on_close(self, connection: Connection, kind: int) -> None:
        connection.unmute()
        self.quotas.remove(connection.listener.name, connection.peer_host)
        for acceptor in self._acceptors:
            acceptor.resume()
        for listener in self.connection_listeners:
            listener(connection)
        if connection.id in self._failed_handshakes:
            self._failed_handshakes.discard(connection.id)
        elif kind in NOTEWORTHY:
            logger.warning(
                "Unexpected error from /%s:%d (channelId=%s); closing connection: %s",
                connection.peer_host, connection.peer_port, connection.id, connection.describe_close(),
            )  # fmt: skip
        else:
            logger.debug("Connection with /%s disconnected: %s", connection.peer_host, connection.describe_close())
