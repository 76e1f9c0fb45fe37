"""The connections of one client to its brokers: opening, choosing, backing off, closing."""

from __future__ import annotations

import logging
import selectors
from collections.abc import Callable, Mapping
from typing import Any

from kafkapy import __version__
from kafkapy._core.bytes.message import Message
from kafkapy.client.backoff import ExponentialBackoff
from kafkapy.client.cluster import Cluster, Node, bootstrap_cluster, parse_addresses
from kafkapy.client.configuration import ClientConfig, security_values
from kafkapy.client.connection import Connection, OnDone, PendingRequest, State
from kafkapy.client.connection_security import connection_security
from kafkapy.client.environment import Environment
from kafkapy.client.errors import AuthenticationError, RequestTimedOut
from kafkapy.client.metrics import make_metrics
from kafkapy.client.throttling import ClientThrottling
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey

log = logging.getLogger("kafkapy.client")

NEVER = 1 << 62  # a monotonic time that is never reached


def controller_addresses(config: ClientConfig) -> list[str]:
    """Returns the addresses of `bootstrap.controllers`; [] if the client connects to brokers."""
    return list(config["bootstrap.controllers"]) if config.has("bootstrap.controllers") else []


class BrokerConnections:
    """The connections of one client to its brokers, and its current view of the cluster.

    It is the base class of `Network`, the network loop of the client. Every method must be called with `Network.lock`
    held, unless its description says otherwise. `cluster` is immutable and replaced as a whole, so any thread may read
    it. The brokers in `coordinators` have additional connections, so that a long fetch does not delay a heartbeat.
    """

    def __init__(self, config: ClientConfig, *, in_flight_limit: int, environment: Environment) -> None:
        self.config = config
        self.clock = environment.clock
        self.in_flight_limit = in_flight_limit
        self.request_timeout_ms: int = config["request.timeout.ms"]
        self.retry_backoff = ExponentialBackoff(config["retry.backoff.ms"], config["retry.backoff.max.ms"])
        self._reconnect_backoff = ExponentialBackoff(config["reconnect.backoff.ms"], config["reconnect.backoff.max.ms"])
        self._setup_backoff = ExponentialBackoff(
            config["socket.connection.setup.timeout.ms"], config["socket.connection.setup.timeout.max.ms"]
        )
        self.throttling = ClientThrottling()
        self.metrics = make_metrics(config, environment.clock)
        self._environment = environment
        self._security = connection_security(config, find_context=environment.find_tls_context)
        # The error of the last connection that failed to authenticate, until a caller has received it.
        self.authentication_error: AuthenticationError | None = None
        # True for an admin client of the controllers: they are the nodes then, and there are no topics.
        self.uses_controllers = bool(controller_addresses(config))
        self._addresses = parse_addresses(controller_addresses(config) or config["bootstrap.servers"])
        self.cluster: Cluster = bootstrap_cluster(self._addresses)
        self.coordinators: dict[int, Node] = {}
        self.has_new_requests = False  # set by `submit`; `Network.wait_until` then makes a step at once
        self.has_lost_connection = False  # reset when new metadata are requested because of it
        self._connections: dict[int, Connection] = {}
        self._failures: dict[int, tuple[int, int]] = {}  # node id -> (failed attempts, next attempt, monotonic)
        self._last_failure = ""
        # Called with the reason and the error of each connection that has failed, with the lock held.
        self.on_failure: Callable[[str, BaseException | None], object] | None = None
        self._selector = environment.make_selector()
        self._registered: dict[Connection, int] = {}  # -> selector events

    def submit(
        self,
        node_id: int,
        key: ApiKey,
        build: Callable[[int], Message],
        on_done: OnDone,
        *,
        highest: int | None = None,
        expects_response: bool = True,
        timeout_ms: int | None = None,
    ) -> None:
        """Sends a request to a broker, in version `highest` at most.

        `build(version)` makes the message. `on_done(response, version, error)` is called exactly once, possibly before
        `submit` returns; if no response is expected, it is called only if the request cannot be sent. The request
        fails after `timeout_ms`, by default `request.timeout.ms`.
        """
        deadline = self.clock.monotonic_ms() + (self.request_timeout_ms if timeout_ms is None else timeout_ms)
        request = PendingRequest(key, build, on_done, deadline, highest=highest, expects_response=expects_response)
        connection = self._connection(node_id)
        if connection is None:
            node = self._node(node_id)
            label = f"broker {node_id}" if node is None else node.label
            on_done(None, -1, ApiError(Error.NETWORK_EXCEPTION, f"There is no connection to {label}"))
        else:
            self.has_new_requests = True
            connection.submit(request)

    def is_ready(self, node_id: int) -> bool:
        """Returns whether a request could be sent now; starts to connect if there is no connection."""
        connection = self._connection(node_id)
        return (
            connection is not None
            and connection.is_ready(self.in_flight_limit)
            and (not connection.throttled_until_ms or connection.throttled_until_ms <= self.clock.monotonic_ms())
        )

    def is_connected(self, node_id: int) -> bool:
        """Returns whether the broker has a connection that is ready for requests; any thread may call it."""
        connection = self._connections.get(node_id)
        return connection is not None and connection.state is State.READY

    def connection_count(self) -> int:
        """Returns the number of connections; any thread may call it."""
        return len(self._connections)

    def requests_in_flight(self) -> int:
        """Returns the number of requests without a response; any thread may call it."""
        return sum(each.in_flight for each in list(self._connections.values()))

    def is_congested(self) -> bool:
        """Returns whether the output queue of at least one connection is full.

        A full queue accepts no request before the next step (pass of the network loop) has written queued requests to
        the socket.
        """
        return not all(connection.has_room for connection in self._connections.values())

    def ready_from_ms(self, node_id: int) -> int:
        """Returns the monotonic time (ms) at which `is_ready` may be called again for a broker that is not ready.

        Returns NEVER while there is a connection that is not throttled, because an event on its socket comes first.
        """
        connection = self._connections.get(node_id)
        if connection is not None:
            return connection.throttled_until_ms if connection.throttled_until_ms > self.clock.monotonic_ms() else NEVER
        return max(self._failures.get(node_id, (0, 0))[1], self.clock.monotonic_ms() + 1)

    def versions(self, node_id: int) -> dict[int, tuple[int, int]]:
        """Returns the lowest and highest version of each API that a broker serves; {} if it is not connected."""
        connection = self._connections.get(node_id)
        return {} if connection is None else connection.versions

    def feature_level(self, node_id: int, feature: str) -> int | None:
        """Returns the finalized level of a feature as a connected broker reports it; 0 means that it is disabled.

        Returns None if the broker is not connected.
        """
        connection = self._connections.get(node_id)
        return None if connection is None or not connection.versions else connection.features.get(feature, 0)

    def least_loaded(self) -> int | None:
        """Returns the id of the broker with the fewest requests in flight; None while no broker can be reached."""
        best: tuple[int, int] | None = None
        now = self.clock.monotonic_ms()
        for node_id in self.cluster.nodes:
            connection = self._connections.get(node_id)
            if connection is not None and not connection.is_closed:
                load = connection.in_flight + (0 if connection.state is State.READY else 1000)
            elif self._failures.get(node_id, (0, 0))[1] <= now:
                load = 2000
            else:
                continue
            if best is None or load < best[0]:
                best = load, node_id
        return None if best is None else best[1]

    def reachable_from_ms(self) -> int:
        """Returns the earliest monotonic time (ms) at which a connection to any broker may be tried again."""
        return min((self._failures.get(node_id, (0, 0))[1] for node_id in self.cluster.nodes), default=NEVER)

    def all_failed(self) -> bool:
        """Returns whether, for every known broker, the last attempt to connect has failed."""
        return all(node_id in self._failures for node_id in self.cluster.nodes)

    def timed_out(self, message: str) -> RequestTimedOut:
        """Returns a RequestTimedOut with this message, for a wait that ended without a result.

        If no broker can be reached, the reason is added to the message.
        """
        if self._last_failure and self.all_failed():
            message += f" No broker can be reached ({self._last_failure})."
        return RequestTimedOut(message)

    def rebootstrap(self) -> None:
        """Forgets the brokers and starts again from bootstrap.servers; the known topics stay until the next update."""
        log.warning("No known broker can be reached: starting again at bootstrap.servers")
        fresh = bootstrap_cluster(self._addresses)
        for connection in list(self._connections.values()):
            connection.close(ApiError(Error.NETWORK_EXCEPTION, "Starting again at bootstrap.servers"))
        self._remove_closed()
        self.cluster = fresh._replace(topics=self.cluster.topics)
        self._failures.clear()

    def replace_login(self, properties: Mapping[str, Any]) -> None:
        """Uses the credentials in `properties`, keys of SASL, for the next connections; any thread may call it.

        Raises ConfigError for invalid values.
        """
        if self._security is not None:
            self._security.replace_login(security_values(properties))

    def _node(self, node_id: int) -> Node | None:
        return self.coordinators.get(node_id) or self.cluster.nodes.get(node_id)

    def _connection(self, node_id: int) -> Connection | None:
        connection = self._connections.get(node_id)
        node = self._node(node_id)
        if (
            connection is not None
            and not connection.is_closed
            and (node is None or connection.node is node or connection.node[:3] == node[:3])
        ):
            return connection
        if connection is not None:
            connection.close(ApiError(Error.NETWORK_EXCEPTION, f"{connection.node.label} has another address now"))
            self._remove_closed()
        if node is None:
            return None
        now = self.clock.monotonic_ms()
        attempts, not_before = self._failures.get(node_id, (0, 0))
        if now < not_before:
            return None
        return self._connect(node, attempts, now)

    def _connect(self, node: Node, attempts: int, monotonic_ms: int) -> Connection | None:
        try:
            sizes = self._buffer_bytes("send.buffer.bytes"), self._buffer_bytes("receive.buffer.bytes")
            proxy = self._environment.proxy
            handshake = None if proxy is None else proxy.handshake(node)
            opened = self._environment.connect(node if proxy is None else proxy.node, sizes)
        except OSError as error:
            self._count_failure(node, f"Connection to {node.label} failed: {error}", error)
            return None
        connection = Connection(
            node,
            self.config["client.id"],
            __version__,
            monotonic_ms,
            opened=opened,
            setup_ms=self._setup_backoff.pause_ms(attempts),
            on_close=self._unregister,
            security=self._security,
            throttling=self.throttling,
            metrics=self.metrics,
            proxy=handshake,
        )
        self.metrics.created_connections.add(1)
        self._connections[node.node_id] = connection
        return connection

    def _buffer_bytes(self, key: str) -> int:
        """Returns the size in bytes that the application has configured for a socket buffer; -1 if it has configured
        none.

        -1 selects the system's default, which is used instead of Kafka's because Kafka's is too small for fast
        networks.
        """
        size: int = self.config[key] if self.config.is_set(key) else -1
        return size

    def _count_failure(self, node: Node, reason: str, failure: BaseException | None) -> None:
        attempts = self._failures.get(node.node_id, (0, 0))[0]
        pause = self._reconnect_backoff.pause_ms(attempts)
        self._failures[node.node_id] = (attempts + 1, self.clock.monotonic_ms() + pause)
        self._last_failure = reason
        log.log(logging.WARNING if attempts == 0 else logging.DEBUG, "%s", reason)
        if self.on_failure is not None:
            self.on_failure(reason, failure)

    def _remove_closed(self) -> None:
        for node_id, connection in list(self._connections.items()):
            if connection.is_closed:
                del self._connections[node_id]
                self.metrics.closed_connections.add(1)
                failure = connection.failure
                reason = failure.message if isinstance(failure, ApiError) else str(failure)
                if connection.was_idle:
                    log.debug("%s", reason)
                else:
                    self._count_failure(connection.node, reason, failure)
                    self.has_lost_connection = True
                if isinstance(failure, AuthenticationError):
                    if connection.was_ready:
                        self.metrics.failed_reauthentications.add(1)
                    else:
                        self.metrics.failed_authentications.add(1)
                    self.authentication_error = failure
            elif self._failures and node_id in self._failures and connection.state is State.READY:
                del self._failures[node_id]
                self.authentication_error = None

    def _close_idle(self) -> None:
        """Closes the connections without requests that the broker has closed or that have been idle for too long."""
        now = self.clock.monotonic_ms()
        for connection in list(self._connections.values()):
            if connection.in_flight:
                continue
            connection.check_idle()
            if connection.is_closed:
                self.has_lost_connection = True
            elif 0 <= self.config["connections.max.idle.ms"] < now - connection.last_used_ms:
                idle = ApiError(Error.NETWORK_EXCEPTION, f"Connection to {connection.node.label} was idle")
                connection.close(idle, was_idle=True)
        self._remove_closed()

    def _watch_sockets(self) -> None:
        """Registers with the selector the events that each connection waits for."""
        for connection in self._connections.values():
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.wants_to_write else 0)
            known = self._registered.get(connection)
            if known is None:
                self._selector.register(connection.socket, events)
            elif known != events:
                self._selector.modify(connection.socket, events)
            else:
                continue
            self._registered[connection] = events

    def _unregister(self, connection: Connection) -> None:
        if self._registered.pop(connection, None) is not None:
            self._selector.unregister(connection.socket)
