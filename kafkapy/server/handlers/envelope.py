"""Envelope, version 0 (KIP-590): a request of a client that a broker forwards to the active controller.

The envelope contains a client's request. The handler serves this request as if the client had sent it on this listener,
with the client's principal and address. The envelope's response contains the bytes of the client's response (header and
body). If one of them gets the error NOT_CONTROLLER, the envelope's response has this error, so that the broker looks
for the active controller.

Permissions: ClusterAction on the cluster for the envelope; the client needs the permissions for the request inside.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from typing import Any

from kafkapy._core.bytes.wire import Reader
from kafkapy.config.listener import Listener
from kafkapy.errors import ApiError, Error, ProtocolViolation
from kafkapy.protocol.api import API_TABLE, FORWARDABLE, ApiKey, decode_request_header
from kafkapy.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from kafkapy.protocol.messages.header import RequestHeader
from kafkapy.security.acl import Operation
from kafkapy.security.principal import Principal
from kafkapy.server.api_registry import ServedApi, serves
from kafkapy.server.authorization import check_cluster
from kafkapy.server.handler_call import call_handler
from kafkapy.server.request_context import RequestContext, Session


def envelope_error(request: EnvelopeRequest, version: int, error: Error, message: str | None) -> EnvelopeResponse:
    return EnvelopeResponse(error_code=error)


class EnvelopedConnection:
    """The replacement for the client's connection while the enclosed request is handled: the response to that request
    becomes the data of the envelope's response."""

    def __init__(self, outer: RequestContext, peer_host: str) -> None:
        self.id = outer.connection.id
        self.listener: Listener = outer.listener
        self.peer_host = peer_host
        self.peer_port = 0
        self._outer = outer

    def respond(self, chunks: Iterable[Any] | None) -> None:
        """Sends the response to the enclosed request inside the response to the envelope."""
        data = None if chunks is None else b"".join(chunks)
        self._outer.respond(EnvelopeResponse(response_data=data))

    def mute(self, delay_ms: int) -> None:
        """Does nothing: the broker that forwarded the request delays the client, by the time in the response."""

    def close(self, reason: str) -> None:
        """Responds with UNSUPPORTED_VERSION, which makes the broker close the client's connection."""
        self._outer.respond(EnvelopeResponse(error_code=Error.UNSUPPORTED_VERSION))


class EnvelopedContext(RequestContext):
    """The context of the request that an envelope contains."""

    __slots__ = ("_outer",)

    def __init__(
        self, outer: RequestContext, connection: Any, principal: Principal, header: RequestHeader, served: ServedApi
    ) -> None:
        is_flexible = header.request_api_version >= served.flexible_header_from
        session = Session(is_controller=True)
        session.principal = principal
        super().__init__(outer.services, connection, session, header, is_flexible, outer.waited_ms)
        self._outer = outer

    def hand_over(self, refuse: Callable[[Error, str | None], object]) -> bool:
        """Responds to the envelope with NOT_CONTROLLER, so that the broker that forwarded the request finds the active
        controller. Returns True: the request has been handled. `refuse` is never called.
        """
        self.answered = True
        self._outer.respond(EnvelopeResponse(error_code=Error.NOT_CONTROLLER))
        return True


@serves(ApiKey.ENVELOPE, 0, 0, on_error=envelope_error)
def handle_envelope(context: RequestContext, request: EnvelopeRequest) -> None:
    check_cluster(context, Operation.CLUSTER_ACTION)
    host = _client_host(bytes(request.client_host_address))
    principal = _principal(context, request.request_principal)
    header, pos = _header(request.request_data)
    if not context.services.controller.is_active and header.request_api_key != ApiKey.DESCRIBE_QUORUM:
        raise ApiError(Error.NOT_CONTROLLER)
    served = context.services.controller_api_registry.find(header.request_api_key)
    if served is None or not served.lowest <= header.request_api_version <= served.highest:
        raise ApiError(Error.UNSUPPORTED_VERSION)
    try:
        message = served.request_class.read(Reader(request.request_data, pos), header.request_api_version)
    except ProtocolViolation as violation:
        raise ApiError(Error.UNSUPPORTED_VERSION, str(violation)) from violation
    inner = EnvelopedContext(context, EnvelopedConnection(context, host), principal, header, served)
    call_handler(served, inner, message)


def _client_host(address: bytes) -> str:
    try:
        return socket.inet_ntop(socket.AF_INET6 if len(address) == 16 else socket.AF_INET, address)
    except ValueError:
        raise ApiError(Error.INVALID_REQUEST, "The address of the client in the envelope is no IP address") from None


def _principal(context: RequestContext, data: Any) -> Principal:
    try:
        return context.services.principal_builder.deserialize(b"" if data is None else bytes(data))
    except Exception as error:  # the builder may be the administrator's
        raise ApiError(Error.PRINCIPAL_DESERIALIZATION_FAILURE, str(error)) from error


def _header(data: Any) -> tuple[RequestHeader, int]:
    try:
        header, pos = decode_request_header(data)
    except ProtocolViolation as violation:
        raise ApiError(Error.UNSUPPORTED_VERSION, str(violation)) from violation
    if header.request_api_key not in FORWARDABLE:
        name = API_TABLE[ApiKey(header.request_api_key)].name
        raise ApiError(Error.INVALID_REQUEST, f"{name} is not forwarded to the controller")
    return header, pos
