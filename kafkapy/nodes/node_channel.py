"""A channel for requests of one kind to one other node: one connection, opened when it is needed, on which requests are
sent in order."""

from __future__ import annotations

import logging
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from kafkapy import __version__
from kafkapy._core.bytes.message import Message
from kafkapy.client.api_versions import Versions
from kafkapy.client.backoff import ExponentialBackoff
from kafkapy.client.cluster import Node
from kafkapy.client.connection import Connection, OnDone, PendingRequest, State
from kafkapy.client.connection_security import ConnectionSecurity
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.nodes.node_thread import NEVER, NodeThread
from kafkapy.protocol.api import ApiKey

logger = logging.getLogger("kafkapy.nodes")

MAX_QUEUED_REQUESTS = 1000
MAX_IN_FLIGHT = 1
SETUP_TIMEOUT_MS = 10_000
BACKOFF_MS = 20
MAX_BACKOFF_MS = 1000
# Below Apache Kafka's connections.max.idle.ms of ten minutes, so that no request meets the end of a connection.
MAX_IDLE_MS = 540_000
_SYSTEM_BUFFERS = (-1, -1)

# A message, or a function that makes it when the version is known.
Body = Message | Callable[[int], Message]


class Destination(NamedTuple):
    """The address of another node on one of its listeners."""

    node_id: int
    host: str
    port: int


class OpenRequests:
    """Counts the requests of a channel whose callback has not been called yet; at most `limit` are permitted. Any
    thread."""

    def __init__(self, limit: int, receiver: str) -> None:
        """Creates a count of 0. `receiver` names the node that the requests are sent to, for log messages."""
        self._limit = limit
        self._receiver = receiver
        self._lock = threading.Lock()
        self._count = 0

    def begin(self, on_done: OnDone) -> OnDone | None:
        """Counts a request and returns the function to be called, instead of `on_done`, when the request ends. Returns
        None if `limit` requests are open.

        The returned function must be called once; it ends the count, calls `on_done` with its arguments, and logs an
        exception that `on_done` raises.
        """
        with self._lock:
            if self._count >= self._limit:
                return None
            self._count += 1

        def finish(response: Any, version: int, error: Exception | None) -> None:
            with self._lock:
                self._count -= 1
            try:
                on_done(response, version, error)
            except Exception:
                logger.exception("The callback of a request to %s failed", self._receiver)

        return finish


class NodeChannel:
    """Owns the queue of requests to one destination, and its connection.

    `send` and `close` may be called, and the properties may be read, by any thread. Callbacks run on the node thread,
    the thread with the connections to other nodes (`NodeThread`). When the connection is lost, the requests that were
    sent on it fail. Requests that were not sent yet wait for the next attempt to connect, and fail if this attempt
    fails. After a failure the channel waits before it connects again, by default 20 ms at first and at most a second.
    """

    def __init__(
        self,
        thread: NodeThread,
        destination: Destination,
        *,
        client_id: str,
        queue_limit: int = MAX_QUEUED_REQUESTS,
        backoff: ExponentialBackoff | None = None,
        security: ConnectionSecurity | None = None,
    ) -> None:
        """Creates a channel without a connection; the first request opens one.

        `queue_limit` is the largest number of open requests. `backoff` determines the pauses between attempts to
        connect. `security` has the TLS and SASL settings for the destination's listener; None means PLAINTEXT.
        """
        self.destination = destination
        self.due_ms = NEVER
        self._thread = thread
        self._node = Node(*destination)
        self._client_id = client_id
        self._security = security
        self._backoff = backoff or ExponentialBackoff(BACKOFF_MS, MAX_BACKOFF_MS)
        self._open_requests = OpenRequests(queue_limit, self._node.label)
        self._queue: deque[PendingRequest] = deque()
        self._earliest_ms = NEVER  # no queued request has an earlier deadline
        self._connection: Connection | None = None
        self._attempts = 0  # failed attempts to connect since the last success
        self._connect_at_ms = 0
        self._is_added = False
        self._is_resolving = False  # another thread looks up the name of the host
        self._is_closed = False
        self._is_refused = False
        self._versions: Versions = {}

    @property
    def is_refused(self) -> bool:
        """True if the last attempt to connect was refused: no process listens at the destination's port."""
        return self._is_refused

    @property
    def is_connected(self) -> bool:
        """True while there is a connection on which the versions have been negotiated."""
        connection = self._connection
        return connection is not None and connection.state is State.READY

    @property
    def versions(self) -> Versions:
        """The versions of each API that the destination last announced; empty before the first connection."""
        return self._versions

    def send(self, body: Body, key: ApiKey, on_done: OnDone, deadline_ms: int, *, highest: int | None = None) -> None:
        """Sends a request, in API version `highest` at most, and calls `on_done(response, version, error)` exactly
        once.

        `deadline_ms` is a monotonic time. `version` is the API version of the response. `error` is None if there is a
        response; otherwise it is an ApiError: NETWORK_EXCEPTION, REQUEST_TIMED_OUT, or UNSUPPORTED_VERSION if the
        destination does not serve the API. `on_done` runs on the node thread, or before `send` returns if too many
        requests are open (NETWORK_EXCEPTION) or the node thread has stopped.
        """
        build = _constant(body) if isinstance(body, Message) else body
        finish = self._open_requests.begin(on_done)
        if finish is None:
            on_done(None, -1, ApiError(Error.NETWORK_EXCEPTION, f"Too many requests to {self._node.label} wait"))
            return
        request = PendingRequest(key, build, finish, deadline_ms, highest=highest)
        if not self._thread.post(lambda: self._enqueue(request)):
            request.on_done(None, -1, self._closed())

    def close(self) -> None:
        """Closes the channel: closes the connection, and fails all requests, also later ones, with
        NETWORK_EXCEPTION."""
        self._thread.post(self.shut)

    # -- node thread

    def step(self, monotonic_ms: int) -> None:
        """Connects, sends, receives and expires requests as far as possible now."""
        self.due_ms = NEVER
        connection = self._connection
        if connection is not None:
            is_idle = connection.state is State.READY and not connection.in_flight
            if is_idle and monotonic_ms - connection.last_used_ms >= MAX_IDLE_MS:
                connection.close(ApiError(Error.NETWORK_EXCEPTION, "idle"), was_idle=True)
            elif is_idle:
                connection.check_idle()
            if not connection.is_closed:
                connection.step(monotonic_ms)
            self._note_state(connection, monotonic_ms)
        self._expire(monotonic_ms)
        is_wanted = bool(self._queue) and self._connection is None and not self._is_resolving and not self._is_closed
        if is_wanted and monotonic_ms >= self._connect_at_ms:
            self._connect(monotonic_ms)
        self._submit(monotonic_ms)
        connection = self._connection
        if connection is not None:
            connection.flush()
            self._note_state(connection, monotonic_ms)
        self._set_due()

    def shut(self) -> None:
        """Closes the connection and fails all requests."""
        self._is_closed = True
        self._thread.remove(self)
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close(self._closed())
        self._fail_queued(self._closed())

    def fail(self, error: Exception) -> None:
        """Closes the connection and fails all requests, because `step` has raised `error`. Later requests are sent on a
        new connection, after the usual pause."""
        self.due_ms = NEVER
        connection, self._connection = self._connection, None
        failure = ApiError(Error.NETWORK_EXCEPTION, f"The channel to {self._node.label} failed: {error}")
        try:
            if connection is not None:
                connection.close(failure)
        finally:
            self._connect_failed(failure, self._thread.clock.monotonic_ms())

    def _enqueue(self, request: PendingRequest) -> None:
        if self._is_closed:
            request.on_done(None, -1, self._closed())
            return
        if not self._is_added:
            self._is_added = True
            self._thread.add(self)
        self._queue.append(request)
        self._earliest_ms = min(self._earliest_ms, request.deadline_ms)
        self.due_ms = 0

    def _connect(self, monotonic_ms: int) -> None:
        if _is_address(self._node.host) or not self._thread.environment.has_thread:
            self._opened(self._open(), monotonic_ms)
            return
        # The look-up of a name may take seconds, and the other channels must not wait for it.
        threading.Thread(target=self._open_and_post, name="kafka-nodes-lookup", daemon=True).start()
        self._is_resolving = True

    def _open(self) -> socket.socket | OSError:
        try:
            return self._thread.environment.connect(self._node, _SYSTEM_BUFFERS)
        except OSError as error:
            return error

    def _open_and_post(self) -> None:
        opened = self._open()
        if not self._thread.post(lambda: self._resolved(opened)) and not isinstance(opened, OSError):
            opened.close()

    def _resolved(self, opened: socket.socket | OSError) -> None:
        self._is_resolving = False
        self.due_ms = 0
        if not self._is_closed:
            self._opened(opened, self._thread.clock.monotonic_ms())
        elif not isinstance(opened, OSError):
            opened.close()

    def _opened(self, opened: socket.socket | OSError, monotonic_ms: int) -> None:
        """Handles the result of opening a socket, at the time `monotonic_ms`.

        A socket, which may still be connecting, becomes the connection of the channel; after an OSError the attempt to
        connect has failed.
        """
        if isinstance(opened, OSError):
            failure = ApiError(Error.NETWORK_EXCEPTION, f"Connection to {self._node.label} failed: {opened}")
            failure.__cause__ = opened
            self._connect_failed(failure, monotonic_ms)
            return
        self._connection = Connection(
            self._node,
            self._client_id,
            __version__,
            monotonic_ms,
            opened=opened,
            setup_ms=SETUP_TIMEOUT_MS,
            on_close=self._thread.unwatch,
            spoken={},
            security=self._security,
        )

    def _note_state(self, connection: Connection, monotonic_ms: int) -> None:
        """Updates the state of the channel if the versions have been negotiated on the connection, or if the connection
        was closed."""
        if connection.was_ready and connection.versions is not self._versions:
            self._versions = connection.versions
            self._attempts = 0
        if connection.state not in (State.CONNECTING, State.CLOSED):
            self._is_refused = False
        if not connection.is_closed:
            return
        self._connection = None
        if connection.was_idle:
            return
        assert connection.failure is not None
        if connection.was_ready:
            logger.debug("%s", connection.failure)
            self._connect_at_ms = monotonic_ms + self._backoff.pause_ms(0)
        else:
            self._connect_failed(connection.failure, monotonic_ms)

    def _connect_failed(self, failure: Exception, monotonic_ms: int) -> None:
        self._is_refused = isinstance(failure.__cause__, ConnectionRefusedError)
        level = logging.WARNING if self._attempts == 0 else logging.DEBUG
        logger.log(level, "%s", failure.message if isinstance(failure, ApiError) else failure)
        self._connect_at_ms = monotonic_ms + self._backoff.pause_ms(self._attempts)
        self._attempts += 1
        self._fail_queued(failure)

    def _submit(self, monotonic_ms: int) -> None:
        connection = self._connection
        while self._queue and connection is not None and connection.is_ready(MAX_IN_FLIGHT):
            request = self._queue.popleft()
            connection.last_used_ms = monotonic_ms
            connection.submit(request)

    def _expire(self, monotonic_ms: int) -> None:
        if monotonic_ms < self._earliest_ms:
            return
        late = [request for request in self._queue if request.deadline_ms <= monotonic_ms]
        self._queue = deque(request for request in self._queue if request.deadline_ms > monotonic_ms)
        self._earliest_ms = min((request.deadline_ms for request in self._queue), default=NEVER)
        for request in late:
            request.on_done(None, -1, ApiError(Error.REQUEST_TIMED_OUT, f"{self._node.label} was not asked in time"))

    def _fail_queued(self, failure: Exception) -> None:
        queued, self._queue = self._queue, deque()
        self._earliest_ms = NEVER
        for request in queued:
            request.on_done(None, -1, failure)

    def _set_due(self) -> None:
        due_ms = self._earliest_ms
        connection = self._connection
        if connection is None:
            if self._queue and not self._is_resolving:
                due_ms = min(due_ms, self._connect_at_ms)
        else:
            self._thread.watch(self, connection)
            deadline_ms = connection.next_deadline_ms()
            if deadline_ms is None:
                deadline_ms = connection.last_used_ms + MAX_IDLE_MS
            due_ms = min(due_ms, deadline_ms)
        self.due_ms = min(self.due_ms, due_ms)

    def _closed(self) -> ApiError:
        return ApiError(Error.NETWORK_EXCEPTION, f"The channel to {self._node.label} is closed")


def _is_address(host: str) -> bool:
    """Returns True if `host` is an IP address, which need not be resolved."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return True
    return False


def _constant(message: Message) -> Callable[[int], Message]:
    return lambda version: message
