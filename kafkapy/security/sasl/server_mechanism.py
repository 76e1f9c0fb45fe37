"""The server's side of a SASL mechanism: its interface, and the failure of an authentication."""

from __future__ import annotations

from abc import ABC, abstractmethod

from kafkapy.security.principal import Principal


class AuthenticationFailed(Exception):
    """The client did not prove its identity. The text is for the broker's log; it contains no secret.

    `client_text` is the text for the client. If it is None, the client receives the same text for every cause, so that
    an attacker does not learn, for example, that a user exists.
    """

    def __init__(self, text: str, client_text: str | None = None) -> None:
        super().__init__(text)
        self.client_text = client_text


class TemporaryFailure(Exception):
    """The authentication could not be decided, and the client may try again. The connection is closed without an
    answer."""


class ServerMechanism(ABC):
    """The exchange with one client. Used by one thread at a time."""

    def __init__(self) -> None:
        self._principal: Principal | None = None
        self._expires_ms: int | None = None

    @property
    def is_complete(self) -> bool:
        """True once the client has proved its identity."""
        return self._principal is not None

    @property
    def principal(self) -> Principal:
        """The client's identity. Exists only if the exchange is complete."""
        assert self._principal is not None, "the exchange is not complete"
        return self._principal

    @property
    def expires_ms(self) -> int | None:
        """The wall-clock time in ms since 1970 at which the client's credential expires; None if it does not expire."""
        return self._expires_ms

    @abstractmethod
    def step(self, token: bytes) -> bytes | None:
        """Handles a token of the client, and returns the answer to send, which may be empty; None sends no answer.

        GSSAPI ends without an answer. A client that sends raw tokens, without Kafka's requests around them, would
        otherwise take an empty answer for the response to its next request.

        Raises AuthenticationFailed or TemporaryFailure, after which the exchange must not be continued.
        """

    def _complete(self, principal: Principal, expires_ms: int | None = None) -> None:
        """Ends the exchange: the client has proved to be `principal`.

        `expires_ms` is the wall-clock time in ms since 1970 at which the client's credential expires; None if it does
        not expire.
        """
        self._principal, self._expires_ms = principal, expires_ms
