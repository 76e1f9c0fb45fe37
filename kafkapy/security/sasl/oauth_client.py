"""The client side of OAUTHBEARER (RFC 7628, KIP-255)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kafkapy.security.sasl.client_mechanism import GS2_HEADER

_SEPARATOR = "\x01"
# The names and values of extensions (KIP-342).
EXTENSION_NAME = re.compile("[A-Za-z]+")
EXTENSION_VALUE = re.compile("[\x21-\x7e \t\r\n]+")
_TOKENS_NAME = "auth"


def check_extensions(extensions: Mapping[str, str]) -> None:
    """Raises ValueError for an extension whose name or value KIP-342 does not allow."""
    for name, value in extensions.items():
        if not isinstance(name, str) or not EXTENSION_NAME.fullmatch(name) or name == _TOKENS_NAME:
            raise ValueError(f"the SASL extension {name!r} needs a name of ASCII letters other than {_TOKENS_NAME!r}")
        if not isinstance(value, str) or not EXTENSION_VALUE.fullmatch(value):
            raise ValueError(f"the SASL extension {name} needs a value of printable ASCII characters")


class OauthClient:
    """The client's side of one OAUTHBEARER exchange, which sends a token together with SASL extensions (KIP-342)."""

    name = "OAUTHBEARER"

    def __init__(self, token: str, extensions: Mapping[str, str]) -> None:
        fields = [f"auth=Bearer {token}", *(f"{key}={value}" for key, value in extensions.items())]
        self._first = _SEPARATOR.join((GS2_HEADER, *fields, "", "")).encode()
        self._is_sent = False
        self.is_complete = False

    def step(self, challenge: bytes | None) -> bytes | None:
        """Returns the message with the token in the first step, in which `challenge` is None.

        In the second step, an empty challenge means success, and the result is None. Otherwise the challenge is the
        server's error, and the result acknowledges it. The server then refuses the authentication.
        """
        if not self._is_sent:
            self._is_sent = True
            return self._first
        if challenge:
            return _SEPARATOR.encode()
        self.is_complete = True
        return None
