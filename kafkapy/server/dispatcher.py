"""The path from a request's bytes to its handler: decodes the header, finds the API, calls the handler.

As in Kafka, an unknown API key, a version that is not served or a body that cannot be read closes the connection; an
ApiVersions request of an unknown version gets a response of version 0, so that the client can retry. Bytes after the
body are ignored.
"""

from __future__ import annotations

import logging
from typing import Any

from kafkapy._core.bytes.wire import Reader
from kafkapy._core.reactor.reactor import Request
from kafkapy.errors import ApiError, Error, ProtocolViolation, StorageError
from kafkapy.protocol.api import API_TABLE, ApiKey, decode_request_header
from kafkapy.protocol.messages.header import RequestHeader
from kafkapy.server.api_registry import ServedApi
from kafkapy.server.request_context import RequestContext, Session
from kafkapy.server.services import Services

logger = logging.getLogger("kafka.server.KafkaApis")

LARGEST_KEY = max(API_TABLE)


class Dispatcher:
    """The decoder of requests, which calls their handlers. Reactor thread only."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._registry = services.api_registry
        self._by_key: list[ServedApi | None] = [None] * (LARGEST_KEY + 1)

    def dispatch(self, requests: list[Request]) -> None:
        """Serves each request. A response is sent before the return, or later if the handler has to wait."""
        for request in requests:
            if request.waits:
                self._services.replica_manager.hold_fetch(request, self._serve)
            else:
                self._serve(request)

    def _serve(self, request: Request) -> None:
        connection = request.connection
        payload = request.payload
        try:
            header, pos = decode_request_header(payload)
            served = self._by_key[header.request_api_key] or self._find(header.request_api_key)
        except ProtocolViolation as violation:
            if not self._answers_unknown_api_versions(request):
                connection.close(str(violation))
            return
        version = header.request_api_version
        if served is None or not served.lowest <= version <= served.highest:
            self._refuse(request, header)
            return
        session = connection.state
        if session is None:
            session = connection.state = Session()
        context = RequestContext(
            self._services, connection, session, header, version >= served.flexible_header_from, request.waited_ms
        )
        try:
            message = served.request_class.read(Reader(payload, pos), version)
        except ProtocolViolation as violation:
            connection.close(f"Error getting request for apiKey: {served.key.name}, apiVersion: {version}: {violation}")
            return
        if served.blocking:
            self._submit(served, context, message)
            return
        try:
            response = served.handler(context, message)
        except Exception as error:
            if not context.answered:
                self._fail(served, context, message, error)
            else:
                logger.exception("Error after the response to request %r", header)
            return
        if response is not None:
            context.respond(response)

    def _find(self, key: int) -> ServedApi | None:
        served = self._by_key[key] = self._registry.find(key)
        return served

    def _answers_unknown_api_versions(self, request: Request) -> bool:
        """Responds to an ApiVersions request of a negative version, as Kafka does, and returns True.

        Returns False for any other request.
        """
        reader = Reader(request.payload)
        if reader.read_int16() != ApiKey.API_VERSIONS or reader.read_int16() >= 0:
            return False
        self._respond_unsupported(request, reader.read_int32())
        return True

    def _refuse(self, request: Request, header: RequestHeader) -> None:
        """Closes the connection of a request whose API or version is not served; ApiVersions gets a response."""
        if header.request_api_key == ApiKey.API_VERSIONS:
            self._respond_unsupported(request, header.correlation_id)
            return
        name = ApiKey(header.request_api_key).name
        request.connection.close(f"Received request api key {name} version {header.request_api_version} is not enabled")

    def _respond_unsupported(self, request: Request, correlation_id: int) -> None:
        served = self._find(ApiKey.API_VERSIONS)
        assert served is not None
        assert served.on_error is not None
        response = served.on_error(None, 0, Error.UNSUPPORTED_VERSION, None)
        assert response is not None
        request.connection.respond(response.encode_chunks(0, (correlation_id & 0xFFFFFFFF).to_bytes(4, "big")))

    def _submit(self, served: ServedApi, context: RequestContext, message: Any) -> None:
        """Runs the handler on the handler pool; its result or error is handled on the reactor's thread."""

        def work() -> Any:
            try:
                response = served.handler(context, message)
            except Exception as error:
                caught = error
                return lambda: self._fail(served, context, message, caught)
            return None if response is None else lambda: context.respond(response)

        self._services.handler_pool.submit(work)

    def _fail(self, served: ServedApi, context: RequestContext, message: Any, raised: Exception) -> None:
        """Responds to an error that the handler raised, with the result of the API's error function.

        Closes the connection for a ProtocolViolation, or if there is no error function or no response.
        """
        if isinstance(raised, ProtocolViolation):
            context.connection.close(str(raised))
            return
        if isinstance(raised, ApiError):
            error, text = raised.error, raised.message
        elif isinstance(raised, StorageError):
            logger.error("Request %r met a storage error: %s", context.header, raised)
            error, text = Error.KAFKA_STORAGE_ERROR, None
        else:
            logger.error("Unexpected error handling request %r", context.header, exc_info=raised)
            error, text = Error.UNKNOWN_SERVER_ERROR, None
        if served.on_error is None:
            context.connection.close(f"{served.key.name} failed: {error.name}")
            return
        response = served.on_error(message, context.api_version, error, text)
        if response is None:  # the client expects no response, so that only a closed connection shows the error
            context.connection.close(f"{served.key.name} failed: {error.name}")
            return
        context.respond(response)
