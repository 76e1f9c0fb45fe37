"""Forwards requests of clients to the active controller, each in an Envelope (KIP-590).

The envelope contains the client's request. The controller's response to this request is passed on unchanged, because it
has the bytes that the client expects.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import Any

from kafkapy._core.bytes.wire import Reader
from kafkapy.client.api_versions import Versions
from kafkapy.controller.result import ErrorMessage
from kafkapy.controller.topics import NewTopic
from kafkapy.errors import ApiError, Error
from kafkapy.nodes.controller_channel import ControllerChannel
from kafkapy.protocol.api import API_TABLE, ApiKey, request_header_version, response_header_version
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kafkapy.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from kafkapy.protocol.messages.header import RequestHeader, ResponseHeader
from kafkapy.server.forwarding_port import OnCreated, OnResponse, Refuse
from kafkapy.server.request_context import RequestContext

logger = logging.getLogger("kafka.server.ForwardingManagerImpl")

CREATE_TIMEOUT_MS = 30_000


class Forwarding:
    """The ForwardingPort of a broker, which sends requests over its own channel to the active controller. Reactor
    thread."""

    def __init__(self, channel: ControllerChannel, post: Callable[[Callable[[], None]], object]) -> None:
        """`post` runs work on the reactor's thread."""
        self._channel = channel
        self._post = post
        self._requested_topics: set[str] = set()

    @property
    def controller_versions(self) -> Versions:
        """The versions of each API that the active controller serves; empty before the first connection to it."""
        return self._channel.versions

    def forward(
        self, context: RequestContext, payload: bytes, refuse: Refuse, on_response: OnResponse | None = None
    ) -> None:
        """Forwards a client's request (`payload`: header and body) to the active controller.

        The response goes to the client or, if `on_response` is given, to `on_response`. `refuse` is called with
        REQUEST_TIMED_OUT if no controller has responded in time, and with UNKNOWN_SERVER_ERROR if the controller cannot
        handle the request.
        """

        def done(response: EnvelopeResponse | None, version: int, error: Exception | None) -> None:
            self._post(lambda: self._finish(context, response, error, refuse, on_response))

        self._channel.send(_envelope(context, payload), ApiKey.ENVELOPE, done)

    def create_topic(self, wanted: NewTopic, on_result: OnCreated, context: RequestContext | None = None) -> None:
        """Asks the active controller to create a topic; does nothing while an earlier request for the same topic has no
        response.

        The topic is created in the name of the client of `context`, or of this broker if `context` is None. `on_result`
        is called on the reactor's thread with the result, or with the exception that prevented one.
        """
        if wanted.name in self._requested_topics:
            return
        self._requested_topics.add(wanted.name)
        topic = CreateTopicsRequest.CreatableTopic(
            name=wanted.name,
            num_partitions=wanted.num_partitions,
            replication_factor=wanted.replication_factor,
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=name, value=value)
                for name, value in wanted.configs.items()
            ],
        )

        def finish(response: CreateTopicsResponse | None, error: Exception | None) -> None:
            self._requested_topics.discard(wanted.name)
            for each in () if response is None else response.topics:
                on_result(ErrorMessage(each.error_code, each.error_message))
            if error is not None:
                on_result(error)

        def done(response: CreateTopicsResponse | None, version: int, error: Exception | None) -> None:
            self._post(lambda: finish(response, error))

        request = CreateTopicsRequest(topics=[topic], timeout_ms=CREATE_TIMEOUT_MS)
        if context is None:
            self._channel.send(request, ApiKey.CREATE_TOPICS, done)
        else:
            self._create_for_client(context, request, finish)

    def request(self, request: Any, key: ApiKey, on_done: Callable[[Any, int, Exception | None], None]) -> None:
        """Sends a request in the name of this broker to the active controller.

        Calls `on_done(response, version of the API, None)` when the response has arrived, or
        `on_done(None, version, error)` if the request has failed. The calls are made on any thread.
        """
        self._channel.send(request, key, on_done)

    def _create_for_client(
        self,
        context: RequestContext,
        request: CreateTopicsRequest,
        finish: Callable[[CreateTopicsResponse | None, Exception | None], None],
    ) -> None:
        """Sends CreateTopics in an envelope with the principal of the client whose request, such as Metadata, needs the
        topic. Calls `finish(response, None)` or `finish(None, error)` on the reactor's thread.
        """
        sent = _Enclosed(context, request)

        def done(response: EnvelopeResponse | None, version: int, error: Exception | None) -> None:
            failure = _error_of(response, error)
            if response is None or response.response_data is None or failure is not Error.NONE:
                self._post(lambda: finish(None, ApiError(failure)))
            else:
                data = bytes(response.response_data)
                self._post(lambda: finish(sent.decode(data), None))

        self._channel.send(lambda version: sent.enclose(self.controller_versions), ApiKey.ENVELOPE, done)

    def _finish(
        self,
        context: RequestContext,
        response: EnvelopeResponse | None,
        failure: Exception | None,
        refuse: Refuse,
        on_response: OnResponse | None,
    ) -> None:
        error = _error_of(response, failure)
        if error is Error.UNSUPPORTED_VERSION:
            context.connection.close("the active controller does not support the version of the request")
        elif error is Error.REQUEST_TIMED_OUT:
            refuse(error, None)
        elif error is not Error.NONE:
            logger.error("Forwarding of %r failed: %s", context.header, error.name)
            refuse(Error.UNKNOWN_SERVER_ERROR, None)
        else:
            data: Any = None if response is None else response.response_data
            if on_response is not None:
                on_response(bytes(data))
            else:
                context.respond_encoded(bytes(data))


class _Enclosed:
    """A CreateTopics request that this broker sends in the name of a client, because another request of the client,
    such as Metadata, needs the topic. The version of the CreateTopics request is chosen when it is sent.
    """

    def __init__(self, context: RequestContext, request: CreateTopicsRequest) -> None:
        self._request = request
        self._envelope = _envelope(context, b"")
        self._version = API_TABLE[ApiKey.CREATE_TOPICS].highest
        self._header = RequestHeader(
            request_api_key=ApiKey.CREATE_TOPICS, correlation_id=context.correlation_id, client_id=context.client_id
        )

    def enclose(self, served: Versions) -> EnvelopeRequest:
        """Returns the envelope with the request in the newest version that the controller serves.

        `served` has the versions of each API that the controller serves.
        """
        _, highest = served.get(ApiKey.CREATE_TOPICS, (0, self._version))
        version = self._version = min(self._version, highest)
        self._header.request_api_version = version
        header = self._header.encode(request_header_version(ApiKey.CREATE_TOPICS, version))
        self._envelope.request_data = header + self._request.encode(version)
        return self._envelope

    def decode(self, data: bytes) -> CreateTopicsResponse:
        """Returns the response in `data`, which consists of a header and a body."""
        reader = Reader(data)
        ResponseHeader.read(reader, response_header_version(ApiKey.CREATE_TOPICS, self._version))
        return CreateTopicsResponse.decode(data, self._version, reader.pos)


def _envelope(context: RequestContext, request: bytes) -> EnvelopeRequest:
    """Returns an envelope with the principal and the address of the client of `context`."""
    return EnvelopeRequest(
        request_data=request,
        request_principal=context.services.principal_builder.serialize(context.principal),
        client_host_address=_address(context.connection.peer_host),
    )


def _error_of(response: EnvelopeResponse | None, failure: Exception | None) -> Error:
    if response is None:
        return failure.error if isinstance(failure, ApiError) else Error.UNKNOWN_SERVER_ERROR
    if response.error_code:
        return Error.of(response.error_code)
    return Error.NONE if response.response_data is not None else Error.UNKNOWN_SERVER_ERROR


def _address(host: str) -> bytes:
    """Returns the bytes of an IP address: 4 for IPv4, 16 for IPv6."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.inet_pton(family, host.partition("%")[0])
