"""The authentication of a fetcher's connection by SASL, before the first request to the leader and again later."""

from __future__ import annotations

from collections.abc import Callable
from random import uniform
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy._core.bytes.wire import Reader, Writer
from kafkapy._core.reactor.reactor import OutgoingConnection
from kafkapy.client.connection import REAUTHENTICATION_WINDOW
from kafkapy.client.errors import AuthenticationError
from kafkapy.client.sasl_exchange import SaslExchange
from kafkapy.errors import ProtocolViolation
from kafkapy.protocol.api import ApiKey, request_header_version, response_class, response_header_version
from kafkapy.protocol.messages.header import RequestHeader, ResponseHeader
from kafkapy.security.sasl.client_mechanism import ClientMechanism

# Every broker that can be the leader serves these versions; no ApiVersions request is sent.
_VERSIONS = {int(ApiKey.SASL_HANDSHAKE): (1, 1), int(ApiKey.SASL_AUTHENTICATE): (2, 2)}


class LeaderAuthentication:
    """One authentication on an outgoing connection. Used only by the thread that owns it.

    `on_done(renew_after_ms, error)` is called once, unless the connection ends first. `renew_after_ms` is the time
    after which the connection has to authenticate again; None means never.
    """

    def __init__(
        self,
        connection: OutgoingConnection,
        mechanism: ClientMechanism,
        client_id: str,
        on_done: Callable[[int | None, AuthenticationError | None], None],
    ) -> None:
        self._connection = connection
        self._client_id = client_id
        self._on_done = on_done
        self._correlation_id = 0
        self._key = ApiKey.SASL_HANDSHAKE
        self._version = -1
        self._on_response: Callable[[Any], None] | None = None
        self._exchange = SaslExchange(mechanism, _VERSIONS, self._send, self._finish)

    def start(self) -> None:
        """Sends the first request."""
        self._exchange.start()

    def receive(self, payload: memoryview) -> None:
        """Handles the response to the last request. Raises ProtocolViolation if it is invalid."""
        on_response, self._on_response = self._on_response, None
        reader = Reader(payload)
        header = ResponseHeader.read(reader, response_header_version(self._key, self._version))
        if on_response is None or header.correlation_id != self._correlation_id:
            raise ProtocolViolation(f"response {header.correlation_id} instead of {self._correlation_id}")
        on_response(response_class(self._key).decode(bytes(payload), self._version, reader.pos))

    def _send(self, key: ApiKey, message: Message, version: int, on_response: Callable[[Any], None]) -> None:
        self._correlation_id += 1
        self._key, self._version, self._on_response = key, version, on_response
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=self._correlation_id,
            client_id=self._client_id,
        )
        writer = Writer()
        header.write(writer, request_header_version(key, version))
        self._connection.send(message.encode_chunks(version, writer.getvalue()))

    def _finish(self, lifetime_ms: int, error: AuthenticationError | None) -> None:
        self._on_done(int(lifetime_ms * uniform(*REAUTHENTICATION_WINDOW)) if lifetime_ms > 0 else None, error)
