"""The authentication of one connection by SASL (KIP-43, KIP-152, KIP-368): which request may arrive when.

    ApiVersions (optional) -> SaslHandshake -> tokens -> any request

After SaslHandshake version 0 the tokens are frames of their own, after version 1 they are in SaslAuthenticate requests.
A session with a limited lifetime may authenticate again by another SaslHandshake, and ends at the first request after
its lifetime. As in Kafka, some errors close the connection without an answer. After a failed authentication the answer
is sent, and the connection is closed, with a delay, so that guessing passwords is slow.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Any

from kafkapy._core.bytes.wire import Reader
from kafkapy._core.reactor.reactor import Connection, Request
from kafkapy.errors import Error, ProtocolViolation
from kafkapy.protocol.api import API_TABLE, ApiKey, decode_request_header, request_class, response_header_version
from kafkapy.protocol.messages.header import RequestHeader
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkapy.security.principal import ANONYMOUS
from kafkapy.security.principal_builder import AuthenticatedConnection, PrincipalBuilder
from kafkapy.security.sasl.server_mechanism import AuthenticationFailed, ServerMechanism, TemporaryFailure
from kafkapy.server.api_registry import ServedApi
from kafkapy.server.listener_authentication import ListenerAuthentication
from kafkapy.server.request_context import Session

logger = logging.getLogger("kafka.network.SocketServer")

# The shortest time between two re-authentications of a connection.
MIN_REAUTHENTICATION_INTERVAL_MS = 1000
_API_VERSIONS_KEY = int(ApiKey.API_VERSIONS).to_bytes(2, "big")
# The answer to a token, or the exception with which the mechanism refused it.
StepResult = bytes | Exception | None
# Finds the handler of an API on the listener of the connection; for the error answers of other APIs.
FindApi = Callable[[int], "ServedApi | None"]


class _State(Enum):
    START = auto()  # ApiVersions or SaslHandshake may arrive
    VERSIONS_KNOWN = auto()  # SaslHandshake may arrive
    TOKENS = auto()
    OTHER_MECHANISM = auto()  # a re-authentication chose another mechanism, and fails at its first token
    COMPLETE = auto()
    ENDED = auto()  # failed; the connection is about to be closed


class Authenticator:
    """The state of one connection's authentication. Only the reactor's thread may use it.

    `Session.authenticator` refers to it until the client is authenticated; if the session has a limited lifetime, until
    the end of the connection.
    """

    def __init__(
        self,
        listener: ListenerAuthentication,
        connection: Connection,
        session: Session,
        principal_builder: Callable[[], PrincipalBuilder],
    ) -> None:
        self._listener = listener
        self._principal_builder = principal_builder
        self._connection = connection
        self._session = session
        self._state = _State.START
        self._mechanism_name = ""
        self._other_mechanism = ""
        self._mechanism: ServerMechanism | None = None
        self._principal = ANONYMOUS
        self._has_headers = False  # whether the tokens are in SaslAuthenticate requests
        self._can_reauthenticate = False
        self._is_authenticated = False
        self._is_reauthentication = False
        self._reauthentication_began_ms: int | None = None
        self._expires_monotonic_ms: int | None = None

    @property
    def is_authenticated(self) -> bool:
        """True once the client has proved its identity, also while it authenticates again."""
        return self._is_authenticated

    def versions_sent(self) -> None:
        """Records that the client has received the versions of the APIs. Before it authenticates, it may request them
        only once.
        """
        if self._state is _State.START:
            self._state = _State.VERSIONS_KNOWN

    def admits(self, request: Request, find: FindApi) -> bool:
        """Returns True if the handlers have to serve the request. Otherwise this object has handled it: as a part of
        the authentication, or with an error.

        `find(api_key)` returns the API with this key. The API makes the error response if the request may not be sent
        before the authentication.
        """
        if request.has_invalid_size:
            self._fail("Failing SASL authentication due to invalid receive size")
            return False
        if self._state is _State.COMPLETE:
            return self._admits_to_session(request)
        try:
            return self._handle(request, find)
        except ProtocolViolation as violation:
            self._state = _State.ENDED
            self._connection.close(str(violation))
        return False

    def _handle(self, request: Request, find: FindApi) -> bool:
        """Handles a frame that arrives before the end of the authentication. Returns True for an ApiVersions request
        that the handlers have to serve, and False for everything else, which this method has handled.
        """
        payload = request.payload
        if self._state is _State.ENDED:
            return False
        if self._state is _State.OTHER_MECHANISM:
            self._fail(f"SASL mechanism '{self._other_mechanism}' requested by client is not supported for "
                       f"re-authentication of mechanism '{self._mechanism_name}'")  # fmt: skip
        elif self._state is _State.TOKENS:
            if self._has_headers:
                self._handle_authenticate(payload, find)
            else:
                self._step(bytes(payload), self._answer_raw_token)
        elif self._state is _State.START and payload[:2] == _API_VERSIONS_KEY:
            return True  # of any version, because an unknown one gets an answer too
        else:
            self._handle_before_tokens(payload)
        return False

    # -- before the tokens ---------------------------------------------------------------------------------------

    def _handle_before_tokens(self, payload: memoryview) -> None:
        header, pos = decode_request_header(payload)
        key = ApiKey(header.request_api_key)
        if key is ApiKey.API_VERSIONS:
            raise ProtocolViolation(f"Unexpected ApiVersions request during SASL authentication ({self._state.name})")
        if key is not ApiKey.SASL_HANDSHAKE:
            self._fail(f"Unexpected Kafka request of type {key.name} during SASL handshake.")
            return
        self._handle_handshake(header, _read(header, payload, pos))

    def _handle_handshake(self, header: RequestHeader, request: SaslHandshakeRequest) -> None:
        self._has_headers = header.request_api_version >= 1
        names, wanted = list(self._listener.makers), request.mechanism
        maker = self._listener.makers.get(wanted)
        if maker is None:
            refusal = SaslHandshakeResponse(error_code=Error.UNSUPPORTED_SASL_MECHANISM, mechanisms=names)
            reason = f"Unsupported SASL mechanism {wanted}"
            if self._is_reauthentication:
                self._end_at_once(reason)
            else:
                self._fail(reason, _encoded(header, refusal))
            return
        if self._is_reauthentication and wanted != self._mechanism_name:
            self._state, self._other_mechanism = _State.OTHER_MECHANISM, wanted
        else:
            self._mechanism_name, self._mechanism = wanted, maker.make()
            self._state = _State.TOKENS
        self._connection.respond(_encoded(header, SaslHandshakeResponse(mechanisms=names)))

    # -- tokens --------------------------------------------------------------------------------------------------

    def _handle_authenticate(self, payload: memoryview, find: FindApi) -> None:
        header, pos = decode_request_header(payload)
        request = _read(header, payload, pos)
        if header.request_api_key != ApiKey.SASL_AUTHENTICATE:
            reason = (
                f"Unexpected Kafka request of type {ApiKey(header.request_api_key).name} during SASL authentication."
            )
            self._fail(reason, _error_answer(find(header.request_api_key), header, request))
            return
        assert isinstance(request, SaslAuthenticateRequest)
        self._can_reauthenticate |= header.request_api_version > 0
        self._step(bytes(request.auth_bytes), partial(self._answer_authenticate, header))

    def _step(self, token: bytes, answer: Callable[[StepResult], None]) -> None:
        """Passes a token of the client to the mechanism, and calls `answer` with its result: the token to send back,
        None for no token, or the exception that it raised. The mechanism runs on the handler pool if it may block.
        """
        mechanism = self._mechanism
        assert mechanism is not None
        if not self._listener.makers[self._mechanism_name].blocks:
            answer(_result_of(mechanism, token))
            return

        def work() -> Callable[[], None]:
            return partial(answer, _result_of(mechanism, token))

        self._listener.handler_pool.submit(work)

    def _answer_raw_token(self, result: StepResult) -> None:
        failure = result if isinstance(result, Exception) else self._set_principal()
        if failure is None:
            assert not isinstance(result, Exception)
            if self._mechanism is not None and self._mechanism.is_complete:
                self._complete(self._lifetime_ms())
            self._connection.respond(None if result is None else [result])
        else:
            self._refuse(failure, None)

    def _answer_authenticate(self, header: RequestHeader, result: StepResult) -> None:
        failure = result if isinstance(result, Exception) else self._set_principal()
        if failure is not None:
            self._refuse(failure, header)
            return
        assert not isinstance(result, Exception)
        lifetime_ms: int | None = None
        if self._mechanism is not None and self._mechanism.is_complete:
            lifetime_ms = self._lifetime_ms()
            self._complete(lifetime_ms)
        response = SaslAuthenticateResponse(auth_bytes=result or b"", session_lifetime_ms=lifetime_ms or 0)
        self._connection.respond(_encoded(header, response))

    def _refuse(self, failure: Exception, header: RequestHeader | None) -> None:
        """Ends the authentication after an exception of the mechanism or of the principal builder.

        `header` is the header of the SaslAuthenticate request to answer. It is None if the token was a frame of its
        own: such a token gets no answer.
        """
        if isinstance(failure, TemporaryFailure):
            self._end_at_once(str(failure))
            return
        if not isinstance(failure, AuthenticationFailed):
            logger.error("Unexpected error of SASL mechanism %s or of the principal builder", self._mechanism_name,
                         exc_info=failure)  # fmt: skip
            self._end_at_once(f"the SASL mechanism {self._mechanism_name} failed")
            return
        chunks = None
        if header is not None:
            exchange = "re-authentication" if self._is_reauthentication else "authentication"
            text = failure.client_text or (
                f"Authentication failed during {exchange} due to invalid credentials with SASL mechanism "
                f"{self._mechanism_name}"
            )
            refusal = SaslAuthenticateResponse(error_code=Error.SASL_AUTHENTICATION_FAILED, error_message=text)
            chunks = _encoded(header, refusal)
        self._fail(str(failure), chunks)

    # -- the session ---------------------------------------------------------------------------------------------

    def _set_principal(self) -> Exception | None:
        """Sets the client's principal at the end of the exchange.

        Returns the refusal of a re-authentication under another name, or the exception of the principal builder; None
        in all other cases.
        """
        mechanism, before = self._mechanism, self._session.principal
        if mechanism is None or not mechanism.is_complete:
            return None
        listener = self._connection.listener
        try:
            now = self._principal = self._principal_builder().build(
                AuthenticatedConnection(
                    mechanism.principal, listener.name, listener.security_protocol, self._connection.peer_host,
                    sasl_mechanism=self._mechanism_name,
                )
            )  # fmt: skip
        except Exception as error:
            return error
        if not self._is_reauthentication or now[:2] == before[:2]:
            return None
        text = (
            f"Cannot change principals during re-authentication from {before.type}.{before.name}: {now.type}.{now.name}"
        )
        return AuthenticationFailed(text, client_text=text)

    def _lifetime_ms(self) -> int | None:
        """Returns the session's lifetime in milliseconds; None if it is unlimited.

        The lifetime is the remaining lifetime of the credential, but at most connections.max.reauth.ms.
        """
        assert self._mechanism is not None
        limits = []
        if self._mechanism.expires_ms is not None:
            limits.append(self._mechanism.expires_ms - self._listener.clock.wall_ms())
        longest_ms = self._listener.max_session_ms[self._mechanism_name]
        if longest_ms > 0:
            limits.append(longest_ms)
        return max(0, min(limits)) if limits else None

    def _complete(self, lifetime_ms: int | None) -> None:
        """Begins the session of the authenticated client. The session expires after `lifetime_ms`; None means never.

        The caller then sends the response to the client's last token.
        """
        assert self._mechanism is not None
        now_ms, counts, principal = self._listener.clock.monotonic_ms(), self._listener.counts, self._principal
        if self._is_reauthentication:
            assert self._reauthentication_began_ms is not None
            counts.succeeded_again += 1
            counts.latency.add(now_ms - self._reauthentication_began_ms, now_ms)
        else:
            counts.succeeded += 1
            counts.without_reauthentication += not self._can_reauthenticate
        # A re-authentication keeps the name, but may be by a delegation token or by a password.
        self._session.principal = principal
        logger.debug(
            "Successfully %sauthenticated %s as %s",
            "re-" if self._is_reauthentication else "",
            self._peer_text(),
            principal,
        )
        self._mechanism = None
        self._state = _State.COMPLETE
        self._is_authenticated = True
        self._expires_monotonic_ms = None if lifetime_ms is None else now_ms + lifetime_ms
        if lifetime_ms is None:
            self._session.authenticator = None
        self._connection.end_authentication(-1 if lifetime_ms is None else lifetime_ms)

    def _admits_to_session(self, request: Request) -> bool:
        """Returns True if the handlers have to serve the request, because the client's session has not expired.

        Returns False if this method has handled the request: a SaslHandshake begins a re-authentication, and a request
        in an expired session, or with a malformed header, closes the connection.
        """
        now_ms = self._listener.clock.monotonic_ms()
        try:
            header, pos = decode_request_header(request.payload)
            if header.request_api_key == ApiKey.SASL_HANDSHAKE and self._may_reauthenticate(now_ms):
                self._begin_reauthentication(now_ms)
                self._handle_handshake(header, _read(header, request.payload, pos))
                return False
        except ProtocolViolation as violation:
            self._connection.close(str(violation))
            return False
        if self._expires_monotonic_ms is None or now_ms < self._expires_monotonic_ms:
            return True
        self._listener.counts.expired += 1
        self._state = _State.ENDED
        self._connection.close_unauthenticated("the session of the authenticated client has expired")
        return False

    def _may_reauthenticate(self, now_ms: int) -> bool:
        began_ms = self._reauthentication_began_ms
        return began_ms is None or now_ms - began_ms >= MIN_REAUTHENTICATION_INTERVAL_MS

    def _begin_reauthentication(self, now_ms: int) -> None:
        self._is_reauthentication = True
        self._can_reauthenticate = False
        self._reauthentication_began_ms = now_ms
        self._connection.begin_authentication(self._listener.max_receive_bytes)

    # -- failures ------------------------------------------------------------------------------------------------

    def _fail(self, reason: str, chunks: list[Any] | None = None) -> None:
        """Counts and logs a failed authentication.

        Sends `chunks`, if they are not None, and closes the connection after the delay of failed authentications.
        """
        self._state = _State.ENDED
        self._mechanism = None
        counts = self._listener.counts
        if self._is_reauthentication:
            counts.failed_again += 1
        else:
            counts.failed += 1
        logger.info(
            "Failed %sauthentication with %s (%s)",
            "re-" if self._is_reauthentication else "",
            self._peer_text(),
            reason,
        )
        connection = self._connection

        def end() -> None:
            if chunks is not None:
                connection.respond(chunks)
            connection.close_unauthenticated(reason)

        self._listener.delay(end)

    def _end_at_once(self, reason: str) -> None:
        self._state = _State.ENDED
        self._mechanism = None
        self._connection.close(reason)

    def _peer_text(self) -> str:
        return f"/{self._connection.peer_host} (channelId={self._connection.id})"


def _result_of(mechanism: ServerMechanism, token: bytes) -> StepResult:
    try:
        return mechanism.step(token)
    except Exception as error:
        return error


def _read(header: RequestHeader, payload: memoryview, pos: int) -> Any:
    """Returns the request message that `payload` has at `pos`, of the API and version in `header`. Raises
    ProtocolViolation if the version is not served or the body cannot be read.
    """
    key, version = ApiKey(header.request_api_key), header.request_api_version
    api = API_TABLE[key]
    if not api.lowest <= version <= api.highest:
        raise ProtocolViolation(f"Version {version} is not supported for apiKey {key.name}")
    return request_class(key).read(Reader(payload, pos), version)


def _encoded(header: RequestHeader, response: Any) -> list[Any]:
    key, version = ApiKey(header.request_api_key), header.request_api_version
    prefix = (header.correlation_id & 0xFFFFFFFF).to_bytes(4, "big") + b"\0" * response_header_version(key, version)
    chunks: list[Any] = response.encode_chunks(version, prefix)
    return chunks


def _error_answer(served: ServedApi | None, header: RequestHeader, request: Any) -> list[Any] | None:
    """Returns the error response (ILLEGAL_SASL_STATE) to a request that a client sent instead of a token; None if the
    API is not served or has no error response.
    """
    if served is None or served.on_error is None:
        return None
    response = served.on_error(request, header.request_api_version, Error.ILLEGAL_SASL_STATE, None)
    return None if response is None else _encoded(header, response)
