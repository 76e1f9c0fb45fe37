"""The context of a request: what its handler needs, and the function by which the handler responds."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from kafkapy._core.bytes.message import Message
from kafkapy._core.bytes.wire import Reader
from kafkapy._core.reactor.reactor import Connection, Request
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey, request_header_version, response_class, response_header_version
from kafkapy.protocol.messages.header import RequestHeader, ResponseHeader
from kafkapy.security.principal import ANONYMOUS, Principal

if TYPE_CHECKING:
    from kafkapy.config.listener import Listener
    from kafkapy.network.handler_pool import Work
    from kafkapy.server.api_registry import Response, ServedApi
    from kafkapy.server.quotas.mutation_quota import MutationQuota
    from kafkapy.server.quotas.request_cost import RequestCost
    from kafkapy.server.services import Services

logger = logging.getLogger("kafka.server.KafkaApis")

# `waited_ms` of every request except a fetch that has waited for compiled code (the gate) to serve it.
NOT_HELD = -1
# The APIs whose responses from the active controller may have a throttle time.
MUTATING_APIS = frozenset({ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS})


class RequestFilter(Protocol):
    """Receives each request of a connection before it is decoded, and may respond to it or close the connection.

    The authenticator of a connection is a RequestFilter.
    """

    @property
    def is_authenticated(self) -> bool:
        """True once the client has proved its identity, also while it authenticates again."""
        ...

    def admits(self, request: Request, find: Callable[[int], ServedApi | None]) -> bool:
        """Returns True if the request has to be decoded and served; otherwise the filter has handled it.

        `find(api_key)` returns the API, or None if this listener does not serve it.
        """
        ...

    def versions_sent(self) -> None:
        """Is called for each valid ApiVersions request of the connection, just before the request is answered.

        An authenticator accepts only one such request before the client begins to authenticate.
        """
        ...


class Session:
    """The state that all requests of a connection share, stored in `connection.state`. Only the reactor's thread may
    use it."""

    __slots__ = (
        "authenticator",
        "broker",
        "client_software_name",
        "client_software_version",
        "is_controller",
        "principal",
    )

    def __init__(self, *, is_controller: bool = False) -> None:
        """`is_controller` is True if the connection is to a listener of the controller."""
        self.is_controller = is_controller
        self.broker: tuple[int, int] | None = None  # id and epoch of the broker that sends heartbeats on the connection
        self.principal: Principal = ANONYMOUS
        # Receives the requests first, until the client is authenticated, or while its authentication may expire.
        self.authenticator: RequestFilter | None = None
        self.client_software_name = ""
        self.client_software_version = ""

    @property
    def is_limited(self) -> bool:
        """True if the quotas of clients apply to the next request: not on a listener of the controller, and not before
        the client is authenticated, because the principal that the quotas depend on is not known yet.
        """
        authenticator = self.authenticator
        return not self.is_controller and (authenticator is None or authenticator.is_authenticated)


class RequestContext:
    """One request in progress, which the dispatcher creates. `respond` is called once, on the reactor's thread."""

    __slots__ = (
        "answered",
        "api_key",
        "api_version",
        "client_id",
        "connection",
        "correlation_id",
        "cost",
        "flexible_header",
        "header",
        "listener",
        "merge",
        "mutation_quota",
        "payload",
        "principal",
        "services",
        "session",
        "waited_ms",
    )

    def __init__(
        self,
        services: Services,
        connection: Connection,
        session: Session,
        header: RequestHeader,
        flexible_header: bool,
        waited_ms: int,
    ) -> None:
        self.services = services
        self.connection = connection
        self.session = session
        self.principal: Principal = session.principal
        self.listener: Listener = connection.listener
        self.header = header
        self.api_key: int = header.request_api_key
        self.api_version: int = header.request_api_version
        self.correlation_id: int = header.correlation_id
        self.client_id: str | None = header.client_id
        self.flexible_header = flexible_header
        self.waited_ms = waited_ms  # how long a fetch has waited before the gate left it to Python, or NOT_HELD
        self.answered = False
        self.cost: RequestCost | None = None  # None while no client has a quota
        self.mutation_quota: MutationQuota | None = None  # of a request that creates or deletes partitions
        # In a cluster: the bytes of a request that may be forwarded, and the function that completes the response.
        self.payload: bytes | None = None
        self.merge: Callable[[Any], Response] | None = None

    def respond(self, response: Response | None, throttle_ms: int = 0) -> None:
        """Sends `response`, a message of the API's response class; None ends the request without a response.

        None is for clients that expect no response (acks=0). A response that cannot be encoded is a bug: it is logged,
        and the connection is closed, because the client would wait forever.

        `throttle_ms` is the time by which a quota delays the client. The response is sent at once and contains this
        time, or the time of the quota of requests if that is longer; no further request is read during the delay.
        """
        if self.answered:
            raise RuntimeError(f"request {self.correlation_id} of {self.connection.id} has been answered already")
        self.answered = True
        if self.cost is not None:
            if response is None:  # no quota limits the time of a request with acks=0
                self.cost.is_exempt = True
            throttle_ms = max(throttle_ms, self.cost.charge_time())
        if self.mutation_quota is not None:
            throttle_ms = max(throttle_ms, self.mutation_quota.remaining_ms(self.services.clock.monotonic_ms()))
        if response is None:
            self.connection.respond(None)
            self._finish(throttle_ms)
            return
        if throttle_ms:
            response = _delayed(response, self.api_version, throttle_ms)
        error = getattr(response, "error_code", 0)
        if error:
            self.services.request_errors.count(self.api_key, error)
        prefix = (self.correlation_id & 0xFFFFFFFF).to_bytes(4, "big")
        try:
            chunks = response.encode_chunks(self.api_version, prefix + b"\0" if self.flexible_header else prefix)
        except ValueError:
            logger.exception("Response to %r cannot be encoded", self.header)
            self.connection.close("the response could not be encoded")
            return
        self.connection.respond(chunks)
        self._finish(throttle_ms)

    def _finish(self, throttle_ms: int) -> None:
        """Reads no request from the client for `throttle_ms` milliseconds, and ends the measurement of the request."""
        if throttle_ms:
            self.connection.mute(throttle_ms)
            mutations = self.services.mutation_quotas
            if (self.cost is None or not self.cost.note_delay(throttle_ms)) and mutations is not None:
                mutations.note_delay(
                    self.principal, self.client_id or "", throttle_ms, self.services.clock.monotonic_ms()
                )
        if self.cost is not None:
            self.cost.end()

    def submit(self, work: Work) -> None:
        """Runs `work` for the request on the handler pool; its time counts as a part of the request's time."""
        self.services.handler_pool.submit(work if self.cost is None else self.cost.timed(work))

    def respond_encoded(self, response: bytes) -> None:
        """Sends the response that the active controller gave to the forwarded request.

        `response` is the encoded header and body. Its throttle time delays the client's next request on this node.
        """
        if self.answered:
            raise RuntimeError(f"request {self.correlation_id} of {self.connection.id} has been answered already")
        if self.cost is not None or self.api_key in MUTATING_APIS:
            message = self._decode(response)
            self.respond(message, getattr(message, "throttle_time_ms", 0))
            return
        self.answered = True
        self.connection.respond([response])

    def forward_only(self, message: Message, merge: Callable[[Any], Response]) -> None:
        """Makes `hand_over` forward `message` to the active controller instead of the client's whole request.

        `merge` is called with the active controller's response to `message` and returns the response to the client.
        """
        header_version = request_header_version(ApiKey(self.api_key), self.api_version)
        self.payload = self.header.encode(header_version) + message.encode(self.api_version)
        self.merge = merge

    def hand_over(self, refuse: Callable[[Error, str | None], object]) -> bool:
        """Forwards the request to the active controller, because this node is not the active controller.

        Returns False if this node or listener does not forward, so that the client has to find the active controller.
        `refuse(error, message)` is called if forwarding fails later.
        """
        forwarding = None if self.payload is None else self.services.forwarding
        if forwarding is None:
            return False
        assert self.payload is not None
        merge = self.merge
        if merge is None:
            forwarding.forward(self, self.payload, refuse)
        else:
            forwarding.forward(self, self.payload, refuse, lambda data: self.respond(merge(self._decode(data))))
        return True

    def _decode(self, response: bytes) -> Any:
        """Decodes the response to a forwarded request (header and body), and returns the message in its body."""
        key = ApiKey(self.api_key)
        reader = Reader(response)
        ResponseHeader.read(reader, response_header_version(key, self.api_version))
        return response_class(key).decode(response, self.api_version, reader.pos)


def _delayed(response: Any, version: int, throttle_ms: int) -> Any:
    """Returns the response with the throttle time `throttle_ms`, or unchanged if it has no field for this time."""
    if not isinstance(response, Message):
        return response.delayed(version, throttle_ms)
    if "throttle_time_ms" in response.FIELDS:
        response.throttle_time_ms = throttle_ms  # type: ignore[attr-defined]
    return response
