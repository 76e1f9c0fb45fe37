"""The authentication of one connection by SASL: SaslHandshake, then SaslAuthenticate until the mechanism is complete.

The tokens are wrapped in SaslAuthenticate (KIP-152), which brokers serve since Apache Kafka 1.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkapy._core.bytes.message import Message
from kafkapy.client.api_versions import Versions, choose_version
from kafkapy.client.errors import AuthenticationError
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkapy.security.sasl.client_mechanism import ClientMechanism, ClientNotAuthenticated, ServerNotTrusted

# Sends a message before the requests that wait; the callback receives the response.
Send = Callable[[ApiKey, Message, int, Callable[[Any], None]], None]
_HANDSHAKE_VERSION = 1


class SaslExchange:
    """One authentication by SASL on one connection. Called while `Network.lock`, the lock of the client's network loop,
    is held.

    `on_done(session_lifetime_ms, error)` is called once, unless the connection ends first; `error` is None after a
    success. A lifetime of 0 means that the session has no limit.
    """

    def __init__(
        self,
        mechanism: ClientMechanism,
        versions: Versions,
        send: Send,
        on_done: Callable[[int, AuthenticationError | None], None],
    ) -> None:
        self._mechanism = mechanism
        self._versions = versions
        self._send = send
        self._on_done = on_done

    def start(self) -> None:
        """Sends the handshake, which names the mechanism."""
        handshake = self._versions.get(ApiKey.SASL_HANDSHAKE)
        if handshake is None or handshake[1] < _HANDSHAKE_VERSION:
            self._fail("The broker does not support SASL, or only that of Apache Kafka 0.10", Error.UNSUPPORTED_VERSION)
            return
        request = SaslHandshakeRequest(mechanism=self._mechanism.name)
        self._send(ApiKey.SASL_HANDSHAKE, request, _HANDSHAKE_VERSION, self._on_handshake)

    def _on_handshake(self, response: SaslHandshakeResponse) -> None:
        enabled = ", ".join(response.mechanisms)
        name = self._mechanism.name
        error = Error.of(response.error_code)
        if error is Error.UNSUPPORTED_SASL_MECHANISM:
            self._fail(
                f"Client SASL mechanism '{name}' not enabled in the server, enabled mechanisms are [{enabled}]", error
            )
        elif error is Error.ILLEGAL_SASL_STATE:
            self._fail(
                f"Unexpected handshake request with client mechanism {name}, enabled mechanisms are [{enabled}]; "
                "the listener may not use SASL",
                error,
            )
        elif error:
            self._fail(f"Unknown error code {error.name}, client mechanism is {name}", error)
        else:
            self._continue(None, 0)

    def _continue(self, challenge: bytes | None, lifetime_ms: int) -> None:
        try:
            token = self._mechanism.step(challenge)
        except (ServerNotTrusted, ClientNotAuthenticated) as refusal:
            self._fail(f"Authentication by SASL mechanism {self._mechanism.name} failed: {refusal}")
            return
        if token is not None:
            version = choose_version(ApiKey.SASL_AUTHENTICATE, self._versions)
            request = SaslAuthenticateRequest(auth_bytes=token)
            self._send(ApiKey.SASL_AUTHENTICATE, request, version, self._on_token)
        elif self._mechanism.is_complete:
            self._on_done(lifetime_ms, None)

    def _on_token(self, response: SaslAuthenticateResponse) -> None:
        if response.error_code:
            error = Error.of(response.error_code)
            self._fail(response.error_message or error.message, error)
        else:
            self._continue(response.auth_bytes, response.session_lifetime_ms)

    def _fail(self, message: str, error: Error = Error.SASL_AUTHENTICATION_FAILED) -> None:
        self._on_done(0, AuthenticationError(message, error))
