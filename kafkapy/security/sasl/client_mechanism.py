"""The interface of the client side of a SASL mechanism."""

from __future__ import annotations

from typing import Protocol

# The beginning of messages of SCRAM and OAUTHBEARER: no channel binding and no authorization id (RFC 5801).
GS2_HEADER = "n,,"


class ServerNotTrusted(Exception):
    """The server's tokens violate the mechanism, or do not prove that the server knows the user's credentials."""


class ClientNotAuthenticated(Exception):
    """The client has no valid credentials, for example because the KDC refuses a ticket."""


class ClientMechanism(Protocol):
    """The client's side of one authentication: an exchange of tokens with the server. Used by one thread."""

    name: str  # as registered with IANA, such as "SCRAM-SHA-256"

    @property
    def is_complete(self) -> bool:
        """Returns whether the client needs no further token from the server."""
        ...

    def step(self, challenge: bytes | None) -> bytes | None:
        """Returns the next token for the server, or None if the client has nothing to send.

        `challenge` is the last token of the server, None at the beginning. Raises ServerNotTrusted or
        ClientNotAuthenticated.
        """
        ...
