"""JSON web tokens in compact form (RFC 7515, RFC 7519): header, claims and signature."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any, NamedTuple

LONGEST_TOKEN = 65536


class InvalidToken(Exception):
    """The token cannot be accepted. The text does not contain the token.

    `missing_scope` is the scope that the token lacks, or None if the token was refused for another reason.
    """

    def __init__(self, text: str, *, missing_scope: str | None = None) -> None:
        super().__init__(text)
        self.missing_scope = missing_scope


class JsonWebToken(NamedTuple):
    """A token that has been parsed; its signature has not been verified. `signed` is the part of the token that
    `signature` signs: the encoded header and claims.
    """

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    signed: bytes
    signature: bytes

    def __repr__(self) -> str:
        return f"JsonWebToken({self.header.get('alg')})"


def parse_token(text: str) -> JsonWebToken:
    """Returns the parts of a token. Raises InvalidToken if it is malformed."""
    if len(text) > LONGEST_TOKEN:
        raise InvalidToken(f"the token is longer than {LONGEST_TOKEN} characters")
    parts = text.split(".")
    if len(parts) != 3:
        raise InvalidToken(f"the token has {len(parts)} parts, not 3")
    header, claims = (_json_object(part, name) for part, name in zip(parts, ("header", "claims"), strict=False))
    if not isinstance(header.get("alg"), str):
        raise InvalidToken("the token's header has no algorithm")
    return JsonWebToken(header, claims, f"{parts[0]}.{parts[1]}".encode(), decode_base64url(parts[2], "signature"))


def decode_base64url(text: str, name: str) -> bytes:
    """Decodes base64url text without padding.

    Raises InvalidToken for other text; `name` is the part of the token for its message, such as "signature".
    """
    letters = text.replace("-", "").replace("_", "")
    if len(text) % 4 == 1 or not text.isascii() or not (letters.isalnum() or not letters):
        raise InvalidToken(f"the token's {name} is not base64url")
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _json_object(part: str, name: str) -> dict[str, Any]:
    try:
        found = json.loads(decode_base64url(part, name))
    except (ValueError, RecursionError) as error:
        raise InvalidToken(f"the token's {name} is not JSON") from error
    if not isinstance(found, dict):
        raise InvalidToken(f"the token's {name} is not a JSON object")
    return found
