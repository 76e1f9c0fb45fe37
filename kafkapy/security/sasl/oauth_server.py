"""OAUTHBEARER (RFC 7628): the client sends a token of an identity provider."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NamedTuple

from kafkapy.security.oauth.json_web_token import InvalidToken
from kafkapy.security.oauth.token_validation import ValidToken
from kafkapy.security.principal import USER_TYPE, Principal
from kafkapy.security.sasl.oauth_client import EXTENSION_NAME, EXTENSION_VALUE
from kafkapy.security.sasl.server_mechanism import AuthenticationFailed, ServerMechanism

_SASL_NAME = re.compile(r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+")
_AUTHORIZATION = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_.a-zA-Z0-9]+)", re.ASCII)
# The message of a client that has received the reason why its token was refused.
_ACKNOWLEDGEMENT = b"\x01"


class InitialResponse(NamedTuple):
    """A client's first message. Its representation hides the token."""

    token: str
    authorization_id: str
    extensions: dict[str, str]

    def __repr__(self) -> str:
        return f"InitialResponse({self.authorization_id!r}, {sorted(self.extensions)})"


def parse_initial_response(message: bytes) -> InitialResponse:
    """Returns the parts of `n,[a=authzid],^Aauth=Bearer TOKEN^A[key=value^A]...^A`. Raises AuthenticationFailed."""
    malformed = AuthenticationFailed("Invalid OAUTHBEARER client first message")
    text = message.decode("utf-8", "replace")
    header, separator, rest = text.partition("\x01")
    flag, authorization_id, empty = ([*header.split(",", 2), "", ""])[:3]
    if not separator or flag != "n" or empty or header.count(",") != 2 or not rest.endswith("\x01"):
        raise malformed
    if authorization_id and not (
        authorization_id.startswith("a=") and _SASL_NAME.fullmatch(authorization_id.removeprefix("a="))
    ):
        raise malformed
    pairs: dict[str, str] = {}
    body = rest[:-1]
    if body and not body.endswith("\x01"):
        raise malformed
    for pair in body.split("\x01")[:-1]:
        key, equals, value = pair.partition("=")
        if not equals or not EXTENSION_NAME.fullmatch(key) or not EXTENSION_VALUE.fullmatch(value):
            raise malformed
        pairs[key] = value
    authorization = _AUTHORIZATION.fullmatch(pairs.pop("auth", ""))
    if authorization is None or authorization["scheme"].lower() != "bearer":
        raise AuthenticationFailed("Invalid OAUTHBEARER client first message: invalid 'auth' format")
    return InitialResponse(authorization["token"], authorization_id.removeprefix("a="), pairs)


class OAuthServer(ServerMechanism):
    """The server's side of one OAUTHBEARER exchange: one step for an accepted token, two for a refused one."""

    def __init__(self, validate: Callable[[str], ValidToken]) -> None:
        """Makes an exchange that has not begun.

        `validate` returns the contents of a token that it accepts, and raises InvalidToken otherwise. It may block.
        """
        super().__init__()
        self._validate = validate
        self._refusal = self._reason = ""

    def step(self, token: bytes) -> bytes:
        if token == _ACKNOWLEDGEMENT and self._refusal:
            raise AuthenticationFailed(self._reason, client_text=self._refusal)
        self._refusal = ""
        response = parse_initial_response(token)
        try:
            accepted = self._validate(response.token)
        except InvalidToken as error:
            self._refusal, self._reason = _refusal(error), str(error)
            return self._refusal.encode()
        if response.authorization_id not in ("", accepted.principal_name):
            text = (
                f"Authentication failed: Client requested an authorization id ({response.authorization_id}) that is "
                f"different from the token's principal name ({accepted.principal_name})"
            )
            raise AuthenticationFailed(text, client_text=text)
        self._complete(Principal(USER_TYPE, accepted.principal_name), accepted.expires_ms)
        return b""


def _refusal(error: InvalidToken) -> str:
    """Returns the JSON text that tells the client why its token was refused, as Kafka writes it."""
    if error.missing_scope is None:
        return '{"status":"invalid_token"}'
    return f'{{"status":"insufficient_scope", "scope":{json.dumps(error.missing_scope)}}}'
