"""The path from a request's bytes to its handler: decodes the header, finds the API, calls the handler.

As in Kafka, the connection is closed for an unknown API key, for an API that is served only on the other kind of
listener (of brokers, or of controllers), for a version that is not served, and for a body that cannot be read. An
ApiVersions request of an unknown version gets a response of version 0 instead, so that the client can retry. Bytes
after the body are ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, cast

from kafkapy._core.bytes.wire import Reader
from kafkapy._core.reactor.reactor import Connection, Request
from kafkapy.errors import ApiError, Error, ProtocolViolation
from kafkapy.protocol.api import API_TABLE, FORWARDABLE, ApiKey, decode_request_header
from kafkapy.protocol.messages.header import RequestHeader
from kafkapy.server.api_registry import ServedApi
from kafkapy.server.handler_call import call_handler, fail
from kafkapy.server.request_context import NOT_HELD, RequestContext, Session
from kafkapy.server.request_log import log_request
from kafkapy.server.request_log import logger as request_logger
from kafkapy.server.services import ControllerServices, Services

LARGEST_KEY = max(API_TABLE)
# API key, version and correlation id: the start of every header.
_FIXED_HEADER_BYTES = 8
# Every controller answers these APIs by its quorum's state; only the active one handles the other forwarded APIs.
_QUORUM_APIS = frozenset({ApiKey.DESCRIBE_QUORUM, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER})
_ACTIVE_CONTROLLER_APIS = FORWARDABLE - _QUORUM_APIS
# The handlers of these APIs forward a part of the request to the active controller, or check the client first.
_PARTLY_FORWARDED = frozenset(
    {
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    }
)


class _MeasuredHold:
    """Measures how long Python code works on a fetch that waits for data, and charges this time to the client once.

    Only the reactor's thread may use it.
    """

    __slots__ = ("_serve", "is_charged", "started_ns")

    def __init__(self, serve: Callable[[Request, int], None]) -> None:
        """`serve(request, started_ns)` serves a request and charges the client for the time since `started_ns`."""
        self._serve = serve
        self.started_ns = perf_counter_ns()
        self.is_charged = False  # True if the time since `started_ns` has been charged

    def serve(self, declined: Request) -> None:
        """Serves a fetch in Python, because the compiled request path (the gate) does not serve it.

        Charges the client for the time since this object was created. If that time has been charged already, charges
        only the time of this call.
        """
        self._serve(declined, perf_counter_ns() if self.is_charged else self.started_ns)
        self.is_charged = True


class Dispatcher:
    """Decodes requests and calls their handlers. Only the reactor's thread may use it."""

    def __init__(self, services: ControllerServices) -> None:
        """`services` is a Services if the node is a broker. A node that is only a controller passes
        ControllerServices."""
        self._services = cast(Services, services)
        self._controller_listeners = frozenset(services.config.controller_listener_names)
        # Without a class of the administrator, only SASL needs the module of principal builders.
        self._has_own_builder = services.config.has_other_than_default("principal.builder.class")
        self._broker_apis: list[ServedApi | None] = [None] * (LARGEST_KEY + 1)
        self._controller_apis: list[ServedApi | None] = [None] * (LARGEST_KEY + 1)

    def dispatch(self, requests: list[Request]) -> None:
        """Serves each request. A response is sent before the return, or later if the handler has to wait."""
        for request in requests:
            if request.waits:
                self._hold(request)
            else:
                self._serve(request)

    def _hold(self, request: Request) -> None:
        """Makes a fetch wait, because there is not enough data for it yet.

        If a quota limits the time of clients (request_percentage), charges the client for the time of this call.
        """
        quotas = self._services.quotas
        if quotas is None or not quotas.measures_time:
            self._services.replica_manager.hold_fetch(request, self._serve)
            return
        held = _MeasuredHold(self._serve)
        self._services.replica_manager.hold_fetch(request, held.serve)
        if not held.is_charged:
            held.is_charged = True
            quotas.charge_held(request.connection, perf_counter_ns() - held.started_ns)

    def begin_session(self, connection: Connection) -> None:
        """Begins the session of a client whose TLS handshake is complete.

        Raises ValueError if no rule maps the subject of the client's certificate to a principal, or if the
        administrator's principal builder refuses the client.
        """
        session = connection.state = self._new_session(connection)
        tls = self._services.tls_listeners
        listener_tls = None if tls is None else tls.of(connection.listener.name)
        if listener_tls is not None and connection.listener.security_protocol == "SSL":
            certificate = connection.peer_certificate()
            session.principal = listener_tls.principal(certificate)
            self._build_principal(connection, session, certificate)

    def _build_principal(self, connection: Connection, session: Session, certificate: bytes | None) -> None:
        """Replaces the principal of a client that does not authenticate by SASL by that of the administrator's
        principal builder, if there is one.

        Before the call, `session` has the principal by the built-in rules. `certificate` is the client's certificate
        (DER), or None. Raises ValueError if the builder raises an exception.
        """
        if not self._has_own_builder:
            return
        from kafkapy.security.principal_builder import AuthenticatedConnection

        subject = None
        if certificate is not None:
            from kafkapy.security.tls.certificate import subject_text

            subject = subject_text(certificate)
        listener = connection.listener
        facts = AuthenticatedConnection(
            session.principal, listener.name, listener.security_protocol, connection.peer_host, subject
        )
        try:
            session.principal = self._services.principal_builder.build(facts)
        except Exception as error:  # of the administrator's class
            raise ValueError(f"the principal builder refuses the client: {error}") from error

    def _serve(self, request: Request, started_ns: int = 0) -> None:
        """Serves a request. `started_ns` is the time of `perf_counter_ns` when the work for it began; 0 means now."""
        quotas = self._services.quotas
        if quotas is not None and not started_ns:
            started_ns = perf_counter_ns()
        connection = request.connection
        payload = request.payload
        session = connection.state
        if session is None:
            session = self._begin_plain_session(connection)
            if session is None:
                return
        # The gate has admitted a fetch that has waited; as in Kafka, its answer may come after the end of the session.
        if session.authenticator is not None and not request.waits and not self._is_admitted(session, request):
            return
        apis = self._controller_apis if session.is_controller else self._broker_apis
        try:
            header, pos = decode_request_header(payload)
            served = apis[header.request_api_key] or self._find(session, header.request_api_key)
        except ProtocolViolation as violation:
            if not self._answers_unknown_api_versions(session, request):
                connection.close(str(violation))
            return
        version = header.request_api_version
        if served is None or not served.lowest <= version <= served.highest:
            self._refuse(session, request, header)
            return
        waited_ms = request.waited_ms if request.waits else NOT_HELD
        context = RequestContext(
            self._services, connection, session, header, version >= served.flexible_header_from, waited_ms
        )
        if request_logger.isEnabledFor(logging.DEBUG):
            log_request(context)
        if quotas is not None and quotas.is_limiting and session.is_limited:
            context.cost = quotas.begin(
                connection, context.principal, context.client_id, context.api_key, len(payload), started_ns
            )
        try:
            message = served.request_class.read(Reader(payload, pos), version)
        except ProtocolViolation as violation:
            connection.close(f"Error getting request for apiKey: {served.key.name}, apiVersion: {version}: {violation}")
            return
        if not served.is_forwardable or self._is_handled_here(served, context, message, payload):
            call_handler(served, context, message)
        if context.cost is not None and not context.answered:
            context.cost.pause()

    def _is_handled_here(self, served: ServedApi, context: RequestContext, message: Any, payload: memoryview) -> bool:
        """Returns True if this node has to handle the request. Otherwise it has been forwarded to the active
        controller, or refused."""
        controller, forwarding = self._services.controller, self._services.forwarding

        def refuse(error: Error, text: str | None) -> None:
            fail(served, context, message, ApiError(error, text))

        if context.session.is_controller:
            if served.key not in _ACTIVE_CONTROLLER_APIS or controller.is_active:
                return True
            refuse(Error.NOT_CONTROLLER, None)
            return False
        if forwarding is None:
            return True
        context.payload = bytes(payload)
        if served.key in _PARTLY_FORWARDED or controller.is_active:
            return True
        forwarding.forward(context, context.payload, refuse)
        return False

    def _begin_plain_session(self, connection: Connection) -> Session | None:
        """Begins the session of a client without TLS, at its first request.

        Closes the connection and returns None if the administrator's principal builder refuses the client.
        """
        session = self._new_session(connection)
        if session.authenticator is None:
            try:
                self._build_principal(connection, session, None)
            except ValueError as refusal:
                connection.close(str(refusal))
                return None
        connection.state = session
        return session

    def _new_session(self, connection: Connection) -> Session:
        listener = connection.listener
        session = Session(is_controller=listener is not None and listener.name in self._controller_listeners)
        authentication = self._services.authentication
        if authentication is not None and listener.name in authentication:
            from kafkapy.server.authentication import Authenticator  # most brokers do not need it

            listener_authentication = authentication[listener.name]
            session.authenticator = Authenticator(
                listener_authentication, connection, session, lambda: self._services.principal_builder
            )
        return session

    def _is_admitted(self, session: Session, request: Request) -> bool:
        """Returns True if the request is to be served. Otherwise the authenticator of the connection has handled it."""
        assert session.authenticator is not None
        return session.authenticator.admits(request, lambda key: self._find(session, key))

    def _find(self, session: Session, key: int) -> ServedApi | None:
        apis = self._controller_apis if session.is_controller else self._broker_apis
        served = apis[key] = self._services.registry(is_controller=session.is_controller).find(key)
        return served

    def _answers_unknown_api_versions(self, session: Session, request: Request) -> bool:
        """Responds to an ApiVersions request whose version is negative, as Kafka does, and returns True.

        Returns False for any other request.
        """
        reader = Reader(request.payload)
        if reader.remaining < _FIXED_HEADER_BYTES:
            return False
        if reader.read_int16() != ApiKey.API_VERSIONS or reader.read_int16() >= 0:
            return False
        self._respond_unsupported(session, request, reader.read_int32())
        return True

    def _refuse(self, session: Session, request: Request, header: RequestHeader) -> None:
        """Closes the connection after a request for an API or a version that is not served. If the API is ApiVersions,
        responds with UNSUPPORTED_VERSION instead.
        """
        if header.request_api_key == ApiKey.API_VERSIONS:
            self._respond_unsupported(session, request, header.correlation_id)
            return
        name = ApiKey(header.request_api_key).name
        request.connection.close(f"Received request api key {name} version {header.request_api_version} is not enabled")

    def _respond_unsupported(self, session: Session, request: Request, correlation_id: int) -> None:
        served = self._find(session, ApiKey.API_VERSIONS)
        assert served is not None
        assert served.on_error is not None
        response = served.on_error(None, 0, Error.UNSUPPORTED_VERSION, None)
        assert response is not None
        request.connection.respond(response.encode_chunks(0, (correlation_id & 0xFFFFFFFF).to_bytes(4, "big")))
