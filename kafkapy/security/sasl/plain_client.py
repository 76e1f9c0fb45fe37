"""The client side of the mechanism PLAIN (RFC 4616)."""

from __future__ import annotations

from kafkapy.security.sasl.client_mechanism import ServerNotTrusted


class PlainClient:
    """Sends user name and password in one token, unencrypted."""

    name = "PLAIN"

    def __init__(self, username: str, password: str) -> None:
        self._token = f"\0{username}\0{password}".encode()
        self._is_sent = False
        self.is_complete = False

    def step(self, challenge: bytes | None) -> bytes | None:
        """Returns the token in the first step, and None in the second one.

        `challenge` is the server's last token, None in the first step. Raises ServerNotTrusted unless it is empty.
        """
        if not self._is_sent:
            self._is_sent = True
            return self._token
        if challenge:
            raise ServerNotTrusted("the server sent an unexpected challenge for SASL/PLAIN")
        self.is_complete = True
        return None
