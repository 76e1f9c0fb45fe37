"""One connection of a client to a broker: connecting, negotiating versions, requests in flight."""

from __future__ import annotations

import errno
import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Mapping
from enum import Enum, auto
from random import uniform
from typing import TYPE_CHECKING, Any

from kafkapy._core.bytes.message import Message
from kafkapy._core.bytes.wire import AbsentFieldError, Reader
from kafkapy._core.client.frame_socket import FrameSocket
from kafkapy.client.api_versions import SPOKEN, Versions, choose_version, finalized_features, served_versions
from kafkapy.client.cluster import Node
from kafkapy.client.errors import AuthenticationError
from kafkapy.client.throttling import ClientThrottling
from kafkapy.errors import ApiError, Error, ProtocolViolation
from kafkapy.host_names import host_addresses
from kafkapy.protocol.api import ApiKey, request_header_version, response_class, response_header_version
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.protocol.messages.header import RequestHeader, ResponseHeader

if TYPE_CHECKING:
    from kafkapy._core.client.tls_frame_socket import TlsFrameSocket
    from kafkapy.client.connection_security import ConnectionSecurity
    from kafkapy.client.metrics import ClientMetrics
    from kafkapy.client.proxy import ProxyHandshake

log = logging.getLogger("kafkapy.client")

SOFTWARE_NAME = "kafkapy"
LARGEST_FRAME_BYTES = 1 << 30
# Requests that are written together cost less; above this size they are written alone.
MOST_QUEUED_BYTES = 128 << 10
_API_VERSIONS_VERSION = 3
_NEVER = 1 << 62
_CORRELATION_ID_AT = 4  # position in a request's header
# The part of a session's lifetime after which the client authenticates again, chosen at random (KIP-368).
REAUTHENTICATION_WINDOW = 0.85, 0.95

# Called once when a request ends, with the response and its version, or with the error.
OnDone = Callable[[Any, int, Exception | None], None]


class PendingRequest:
    """A request whose response has not arrived.

    `build(version)` makes the message when the version is known. The version is at most `highest`, unless that is None.
    """

    __slots__ = ("build", "deadline_ms", "expects_response", "highest", "key", "on_done", "sent_ms", "version")

    def __init__(
        self,
        key: ApiKey,
        build: Callable[[int], Message],
        on_done: OnDone,
        deadline_ms: int,
        *,
        highest: int | None = None,
        expects_response: bool = True,
    ) -> None:
        self.key = key
        self.build = build
        self.on_done = on_done
        self.deadline_ms = deadline_ms
        self.highest = highest
        self.expects_response = expects_response
        self.version = -1
        self.sent_ms = 0  # monotonic


def open_socket(node: Node, buffers: tuple[int, int]) -> socket.socket:
    """Returns a non-blocking socket that is connecting to a broker.

    `buffers` are the sizes in bytes of the send and receive buffers, -1 for the system's default. Raises OSError if the
    name cannot be resolved or the connection is refused at once.
    """
    failure: OSError | None = None
    for family, kind, protocol, _, address in host_addresses(node.host, node.port):
        opened = socket.socket(family, kind, protocol)
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option, size in zip((socket.SO_SNDBUF, socket.SO_RCVBUF), buffers, strict=True):
            if size > 0:
                opened.setsockopt(socket.SOL_SOCKET, option, size)
        code = opened.connect_ex(address)
        if code in (0, errno.EINPROGRESS):
            return opened
        opened.close()
        failure = OSError(code, os.strerror(code))
    raise failure or OSError(f"no address for {node.host}")


class State(Enum):
    """The states of a connection, in their order."""

    CONNECTING = auto()
    PROXY_HANDSHAKE = auto()
    TLS_HANDSHAKE = auto()
    NEGOTIATING = auto()
    AUTHENTICATING = auto()  # at the beginning, and again before the session ends
    READY = auto()
    CLOSED = auto()


class Connection:
    """A connection to one broker: its non-blocking socket and the requests on it.

    Every method is called while `Network.lock`, the lock of the client's network loop, is held. Requests that are
    submitted before the connection is ready wait until it is. When the connection fails, all its requests end with
    NETWORK_EXCEPTION or AuthenticationError. A closed connection is not opened again.
    """

    def __init__(
        self,
        node: Node,
        client_id: str,
        software_version: str,
        monotonic_ms: int,
        *,
        opened: socket.socket,
        setup_ms: int,
        on_close: Callable[[Connection], None],
        spoken: Mapping[ApiKey, tuple[int, int]] = SPOKEN,
        security: ConnectionSecurity | None = None,
        throttling: ClientThrottling | None = None,
        metrics: ClientMetrics | None = None,
        proxy: ProxyHandshake | None = None,
    ) -> None:
        """Takes over `opened`, a socket that is connecting to the broker; `on_close` is called before the socket is
        closed.

        With `proxy` the socket is connecting to a proxy instead, which then connects to the broker. The connection must
        be ready within `setup_ms` of `monotonic_ms`. `spoken` has the lowest and highest version of each API that this
        client uses. `security` is None for PLAINTEXT. `throttling` counts the throttle times of responses, and
        `metrics` measures requests, if they are given.
        """
        self.node = node
        self.state = State.CONNECTING
        self.versions: Versions = {}
        self.features: dict[str, int] = {}  # finalized levels
        self.last_used_ms = monotonic_ms
        self.failure: Exception | None = None
        self.was_ready = False
        self.throttled_until_ms = 0  # monotonic; no request should be sent before
        self.was_idle = False  # closed while no request was waiting: not a failure of the broker
        self._client_id = client_id
        self._software_version = software_version
        self._spoken = spoken
        self._setup_ms = setup_ms
        self._setup_deadline_ms = monotonic_ms + setup_ms
        self._security = security
        self._throttling = throttling
        self._metrics = metrics
        self._reauthenticate_at_ms: int | None = None  # monotonic
        self._reauthenticating_since_ms: int | None = None  # monotonic; None during the first authentication
        self._on_close = on_close
        self._waiting: deque[PendingRequest] = deque()
        self._in_flight: deque[tuple[int, PendingRequest]] = deque()
        self._correlation_id = 0
        self._earliest_ms = _NEVER  # no request has an earlier deadline
        self._chosen: dict[tuple[int, int | None], int] = {}  # (API, highest) -> version
        self._headers: dict[tuple[int, int], tuple[bytes, bytes]] = {}  # -> bytes around the correlation id
        self._proxy = proxy
        self.socket = opened
        self._tls: TlsFrameSocket | None = None
        if security is not None and security.has_tls:
            self._tls = security.tls_frames(self.socket.fileno(), LARGEST_FRAME_BYTES, node.host)
        self._frames: FrameSocket = self._tls or FrameSocket(self.socket.fileno(), LARGEST_FRAME_BYTES)

    @property
    def in_flight(self) -> int:
        """The number of requests without a response, including those that wait to be sent."""
        return len(self._in_flight) + len(self._waiting)

    @property
    def wants_to_write(self) -> bool:
        if self.state is State.PROXY_HANDSHAKE and self._proxy is not None:
            return self._proxy.is_sending
        return self.state is State.CONNECTING or self._frames.is_sending

    @property
    def has_room(self) -> bool:
        """Returns whether the output queue accepts another request."""
        return self._frames.queued < MOST_QUEUED_BYTES

    def is_ready(self, in_flight_limit: int) -> bool:
        """Returns whether a request could be sent now; False if `in_flight_limit` requests have no response yet."""
        return (
            self.state is State.READY
            and self._frames.queued < MOST_QUEUED_BYTES
            and len(self._in_flight) < in_flight_limit
        )

    @property
    def is_closed(self) -> bool:
        return self.state is State.CLOSED

    def next_deadline_ms(self) -> int | None:
        """Returns the monotonic time (ms) of the earliest time-out or of the next authentication; None without any."""
        if self.state is State.READY:
            return self._earliest_ms if self._in_flight else self._reauthenticate_at_ms
        return None if self.is_closed else min(self._earliest_ms, self._setup_deadline_ms)

    def submit(self, request: PendingRequest) -> None:
        """Sends a request, or queues it until the connection is ready. Its `on_done` is called when it is answered or
        has failed.
        """
        if request.deadline_ms < self._earliest_ms:
            self._earliest_ms = request.deadline_ms
        if self.state is State.READY:
            self._send(request)
        else:
            self._waiting.append(request)

    def step(self, monotonic_ms: int) -> None:
        """Connects, sends and receives as far as the socket allows; calls the callbacks of responses and time-outs."""
        try:
            if self.state is not State.READY and not self._is_established(monotonic_ms):
                return
            if self._frames.is_sending:
                self._frames.send()
            if self._in_flight:
                for frame in self._frames.receive():
                    self.last_used_ms = monotonic_ms
                    self._receive(frame)
            self._expire(monotonic_ms)
        except (OSError, ValueError, ProtocolViolation) as error:
            self.close(self._failure(error))

    def read_ahead(self) -> None:
        """Increases the socket's low-water mark, so that the kernel goes on receiving a fetch response until the next
        step (pass of the network loop).

        Called only if no thread waits for the socket, because the mark would delay the end of its wait. Does nothing
        unless the oldest request without a response is a fetch.
        """
        if self._in_flight and self._in_flight[0][1].key is ApiKey.FETCH:
            self._frames.take_ahead()

    def check_idle(self) -> None:
        """Closes an idle connection if the broker has closed it.

        Sets `was_idle` in this case, so that the broker does not count as failed.
        """
        try:
            if self.state is State.READY and not self._in_flight and self._frames.receive():
                self.close(ApiError(Error.NETWORK_EXCEPTION, f"{self.node.label} sent an unexpected response"))
        except (OSError, ValueError) as error:
            self.close(
                ApiError(Error.NETWORK_EXCEPTION, f"{self.node.label} closed an idle connection: {error}"),
                was_idle=True,
            )

    def flush(self) -> None:
        """Writes as much of the queued output as the socket accepts now."""
        try:
            if self.state not in (State.CONNECTING, State.CLOSED) and self._frames.is_sending:
                self._frames.send()
        except OSError as error:
            self.close(self._failure(error))

    def close(self, error: Exception, *, was_idle: bool = False) -> None:
        """Closes the socket; all requests end with `error`.

        `was_idle` says that the broker has closed the connection because it was idle, so that the broker does not count
        as failed.
        """
        if self.state is State.CLOSED:
            return
        self.state = State.CLOSED
        self.failure = error
        self.was_idle = was_idle
        try:
            self._on_close(self)
            if self._tls is not None:
                self._tls.send_close_notify()
        finally:
            self.socket.close()
            pending = [request for _, request in self._in_flight] + list(self._waiting)
            self._in_flight.clear()
            self._waiting.clear()
            for request in pending:
                request.on_done(None, request.version, error)

    def _is_established(self, monotonic_ms: int) -> bool:
        """Returns whether requests can be sent: the socket is connected to the broker, directly or through the proxy,
        and the TLS handshake, if TLS is used, is complete.

        Before that, continues to connect as far as the socket allows. Closes the connection if this is not complete at
        the deadline of the set-up.
        """
        if self.state is State.CONNECTING and self._is_connected():
            if self._proxy is None:
                self._greet()
            else:
                self.state = State.PROXY_HANDSHAKE
        if self.state is State.PROXY_HANDSHAKE and self._proxy is not None and self._proxy.advance(self.socket):
            self._greet()
        if self.state is State.TLS_HANDSHAKE and self._tls is not None and self._tls.handshake():
            self._request_versions(_API_VERSIONS_VERSION)
        if self.state not in (State.CONNECTING, State.PROXY_HANDSHAKE, State.TLS_HANDSHAKE):
            return not self.is_closed
        if monotonic_ms >= self._setup_deadline_ms:
            late = f"Connection to {self.node.label} was not established in time"
            self.close(ApiError(Error.NETWORK_EXCEPTION, late))
        return False

    def _greet(self) -> None:
        """Begins the TLS handshake or, without TLS, sends ApiVersions; called when the socket is connected to the
        broker.
        """
        if self._tls is None:
            self._request_versions(_API_VERSIONS_VERSION)
        else:
            self.state = State.TLS_HANDSHAKE

    def _is_connected(self) -> bool:
        code = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        try:
            self.socket.getpeername()
        except OSError as error:
            if error.errno != errno.ENOTCONN:
                raise
            return False
        return True

    def _request_versions(self, version: int) -> None:
        self.state = State.NEGOTIATING
        message = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=self._software_version)
        request = PendingRequest(
            ApiKey.API_VERSIONS,
            lambda version: message if version >= 3 else ApiVersionsRequest(),
            self._negotiated,
            self._setup_deadline_ms,
        )
        self._put_before_others(request, version)

    def _put_before_others(self, request: PendingRequest, version: int) -> None:
        """Sends a request that sets up the connection, before the requests that wait until the connection is ready.

        Closes the connection if the request cannot be encoded.
        """
        self._earliest_ms = min(self._earliest_ms, request.deadline_ms)
        try:
            self._put(request, version)
        except ApiError as error:
            self.close(error)

    def _negotiated(self, response: ApiVersionsResponse | None, version: int, error: Exception | None) -> None:
        if response is None:
            return
        if response.error_code == Error.UNSUPPORTED_VERSION and version > 0:
            self._request_versions(0)
            return
        if response.error_code:
            self.close(ApiError(Error.of(response.error_code)))
            return
        self.versions = served_versions(response)
        self.features = finalized_features(response)
        self._authenticate(self._setup_deadline_ms)

    def _authenticate(self, deadline_ms: int) -> None:
        """Begins to authenticate, at first or again; without SASL, makes the connection ready at once.

        `deadline_ms` is the monotonic time until which the authentication may take.
        """
        mechanism = None if self._security is None else self._security.mechanism(self.node.host)
        if mechanism is None:
            self._become_ready()
            return
        from kafkapy.client.sasl_exchange import SaslExchange

        def send(key: ApiKey, message: Message, version: int, on_response: Callable[[Any], None]) -> None:
            def on_done(response: Any, version: int, error: Exception | None) -> None:
                if response is not None:
                    on_response(response)

            self._put_before_others(PendingRequest(key, lambda version: message, on_done, deadline_ms), version)

        self.state = State.AUTHENTICATING
        self._setup_deadline_ms = deadline_ms
        self._reauthenticate_at_ms = None
        SaslExchange(mechanism, self.versions, send, self._authenticated).start()

    def _authenticated(self, lifetime_ms: int, error: AuthenticationError | None) -> None:
        if error is not None:
            self.close(_at_node(self.node, error))
            return
        if lifetime_ms > 0:
            self._reauthenticate_at_ms = self.last_used_ms + int(lifetime_ms * uniform(*REAUTHENTICATION_WINDOW))
            self._earliest_ms = min(self._earliest_ms, self._reauthenticate_at_ms)
        self._become_ready()

    def _become_ready(self) -> None:
        if self._security is not None and self._metrics is not None:
            self._metrics.authenticated(self._reauthenticating_since_ms)
        self.state = State.READY
        self.was_ready = True
        waiting, self._waiting = self._waiting, deque()
        for request in waiting:
            self._send(request)

    def _send(self, request: PendingRequest) -> None:
        try:
            version = self._chosen.get((request.key, request.highest))
            if version is None:
                version = choose_version(request.key, self.versions, request.highest, self._spoken)
                self._chosen[request.key, request.highest] = version
            self._put(request, version)
        except ApiError as error:
            request.on_done(None, -1, error)

    def _put(self, request: PendingRequest, version: int) -> None:
        """Queues a request for sending; raises an ApiError, and changes nothing, if it cannot be encoded."""
        request.version = version
        correlation_id = self._correlation_id + 1 & 0x7FFFFFFF
        start, end = self._headers.get((request.key, version)) or self._make_header(request.key, version)
        chunks = _encode(request, version, start + correlation_id.to_bytes(4, "big") + end)
        self._correlation_id = correlation_id
        self._frames.put(chunks)
        if self._metrics is not None:
            request.sent_ms = self._metrics.sent(self.node.node_id, chunks)
        if request.expects_response:
            self._in_flight.append((self._correlation_id, request))

    def _make_header(self, key: ApiKey, version: int) -> tuple[bytes, bytes]:
        """Encodes a request's header, and returns the bytes before and after the correlation id.

        Stores them for the next request of the same API and version, which differs only in the correlation id.
        """
        header = RequestHeader(request_api_key=key, request_api_version=version, client_id=self._client_id)
        encoded = header.encode(request_header_version(key, version))
        made = encoded[:_CORRELATION_ID_AT], encoded[_CORRELATION_ID_AT + 4 :]
        self._headers[key, version] = made
        return made

    def _receive(self, frame: bytes) -> None:
        """Decodes the response to the oldest request and calls its callback.

        Raises ValueError if there is no such request or the response has the correlation id of another one, and
        ProtocolViolation if the response cannot be decoded.
        """
        if not self._in_flight:
            raise ValueError("a response without a request")
        correlation_id, request = self._in_flight[0]
        key, version = request.key, request.version
        reader = Reader(frame)
        header = ResponseHeader.read(reader, response_header_version(key, version))
        if header.correlation_id != correlation_id:
            raise ValueError(f"response {header.correlation_id} instead of {correlation_id}")
        if key is ApiKey.API_VERSIONS and frame[reader.pos : reader.pos + 2] == b"\x00\x23":
            # A broker that does not know the version responds in version 0.
            self._in_flight.popleft()
            request.on_done(ApiVersionsResponse(error_code=int(Error.UNSUPPORTED_VERSION)), version, None)
            return
        response = response_class(key).decode(frame, version, reader.pos)
        self._in_flight.popleft()
        if self._throttling is not None:
            wait_ms = self._throttling.note(self.node, key, version, getattr(response, "throttle_time_ms", 0))
            if wait_ms > 0:
                self.throttled_until_ms = max(self.throttled_until_ms, self.last_used_ms + wait_ms)
        if self._metrics is not None:
            throttle_ms = getattr(response, "throttle_time_ms", 0)
            self._metrics.received(self.node.node_id, key, len(frame), request.sent_ms, throttle_ms)
        request.on_done(response, version, None)

    def _expire(self, monotonic_ms: int) -> None:
        """Handles the time-outs that have passed, and authenticates again if the time for that has come.

        If a response is late, closes the connection with REQUEST_TIMED_OUT, because the responses after it would be
        late too. A request that has not been sent yet ends with REQUEST_TIMED_OUT when it is late; the connection stays
        open.
        """
        if monotonic_ms < self._earliest_ms:
            return
        again_ms = self._reauthenticate_at_ms
        if again_ms is not None and again_ms <= monotonic_ms and self.state is State.READY:
            self._reauthenticating_since_ms = monotonic_ms
            self._authenticate(monotonic_ms + self._setup_ms)
        for _, request in self._in_flight:
            if monotonic_ms >= request.deadline_ms:
                api = request.key.name
                self.close(ApiError(Error.REQUEST_TIMED_OUT, f"{self.node.label} did not respond to {api} in time"))
                return
        while self._waiting and monotonic_ms >= self._waiting[0].deadline_ms:
            late = self._waiting.popleft()
            late.on_done(None, -1, ApiError(Error.REQUEST_TIMED_OUT))
        left = [request.deadline_ms for _, request in self._in_flight]
        left += [request.deadline_ms for request in self._waiting]
        left += [] if self._reauthenticate_at_ms is None else [self._reauthenticate_at_ms]
        self._earliest_ms = min(left, default=_NEVER)

    def _failure(self, cause: Exception) -> ApiError:
        """Returns the error that the requests of a failed connection end with; `cause` is the exception that ended it.

        This is NETWORK_EXCEPTION, whose `__cause__` is `cause`, or an AuthenticationError if a TLS handshake has failed
        and would fail in the same way at each further attempt.
        """
        tls = self._tls
        if tls is not None and not tls.has_received:
            from kafkapy.client.connection_security import tls_refusal

            # With TLS 1.3 the broker checks the client's certificate after the handshake.
            refusal = tls_refusal(self.node.label, cause)
            if refusal is not None:
                return refusal
        message = f"Connection to {self.node.label} failed: {cause}"
        if self.state is State.AUTHENTICATING:
            message += " (during the authentication by SASL)"
        failure = ApiError(Error.NETWORK_EXCEPTION, message)
        failure.__cause__ = cause
        return failure


def _encode(request: PendingRequest, version: int, header: bytes) -> list[Any]:
    """Encodes a request, and returns it as chunks of bytes that begin with `header`.

    Raises an ApiError if the request cannot be built or encoded: UNSUPPORTED_VERSION, as in Java's client, if the
    version lacks a field that is set, and INVALID_REQUEST for other values.
    """
    try:
        return request.build(version).encode_chunks(version, header)
    except AbsentFieldError as error:
        raise ApiError(Error.UNSUPPORTED_VERSION, str(error)) from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ApiError(Error.INVALID_REQUEST, f"{request.key.name}: {error}") from error


def _at_node(node: Node, error: AuthenticationError) -> AuthenticationError:
    """Returns the error with the name of the broker in its message."""
    return AuthenticationError(f"Connection to {node.label} failed authentication: {error.message}", error.error)
