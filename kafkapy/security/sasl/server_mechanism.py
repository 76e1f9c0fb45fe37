"""The server's side of a SASL mechanism: its interface, and the failure of an authentication."""

from __future__ import annotations

from typing import Protocol

from kafkapy.security.principal import Principal


class AuthenticationFailed(Exception):
    """The client did not prove its identity. The text is for the broker's log; it contains no secret.

    `client_text` is the text for the client. If it is None, the client receives the same text for every cause, which
    tells an attacker nothing, such as that a user exists.
    """

    def __init__(self, text: str, client_text: str | None = None) -> None:
        super().__init__(text)
        self.client_text = client_text


class TemporaryFailure(Exception):
    """The authentication could not be decided, and the client may try again. The connection is closed without an
    answer."""


class ServerMechanism(Protocol):
    """The exchange with one client. Used by one thread at a time."""

    @property
    def is_complete(self) -> bool:
        """True once the client has proved its identity."""

    @property
    def principal(self) -> Principal:
        """The client's identity. Exists only if the exchange is complete."""

    @property
    def expires_ms(self) -> int | None:
        """The wall-clock time at which the client's credential expires; None if it does not. Exists only if the
        exchange is complete."""

    def step(self, token: bytes) -> bytes:
        """Returns the answer to a token of the client.

        Raises AuthenticationFailed or TemporaryFailure, after which the exchange must not be continued.
        """
