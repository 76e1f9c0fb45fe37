"""The client side of OAUTHBEARER (RFC 7628, KIP-255)."""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.security.sasl.client_mechanism import GS2_HEADER

_SEPARATOR = "\x01"


class OauthClient:
    """Sends a token, with extensions (KIP-342)."""

    name = "OAUTHBEARER"

    def __init__(self, token: str, extensions: Mapping[str, str]) -> None:
        fields = [f"auth=Bearer {token}", *(f"{key}={value}" for key, value in extensions.items())]
        self._first = _SEPARATOR.join((GS2_HEADER, *fields, "", "")).encode()
        self._is_sent = False
        self.is_complete = False

    def step(self, challenge: bytes | None) -> bytes | None:
        """Returns the token; then the acknowledgement of the server's error, or None. See `ClientMechanism`.

        After the acknowledgement the server refuses the authentication with a message that contains the error.
        """
        if not self._is_sent:
            self._is_sent = True
            return self._first
        if challenge:
            return _SEPARATOR.encode()
        self.is_complete = True
        return None
