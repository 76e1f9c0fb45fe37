"""Assertions, with which a client requests tokens (RFC 7523, KIP-1139): read from a file, or made and signed."""

from __future__ import annotations

import json
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafkapy.client.errors import AuthenticationError
from kafkapy.errors import ConfigError
from kafkapy.security.oauth.signing import SigningKey

if TYPE_CHECKING:
    from kafkapy.client.security_values import SecurityValues

_FILE_KEY = "sasl.oauthbearer.assertion.file"
_PRIVATE_KEY_KEY = "sasl.oauthbearer.assertion.private.key.file"
_CLAIM_KEYS = {
    "aud": "sasl.oauthbearer.assertion.claim.aud",
    "iss": "sasl.oauthbearer.assertion.claim.iss",
    "sub": "sasl.oauthbearer.assertion.claim.sub",
}
_TEMPLATE_KEY = "sasl.oauthbearer.assertion.template.file"


def assertion_maker(values: SecurityValues) -> Callable[[], str]:
    """Returns a function that returns a new assertion, as text, for each request for a token.

    The function raises AuthenticationError if a file cannot be read. Raises ConfigError if neither a file with an
    assertion nor a private key is configured.
    """
    file = values[_FILE_KEY]
    if file is not None:
        return lambda: _read(file, _FILE_KEY).decode("utf-8", "replace").strip()
    key_file = values[_PRIVATE_KEY_KEY]
    if key_file is None:
        raise ConfigError(f"{_PRIVATE_KEY_KEY} is missing, or {_FILE_KEY} with a finished assertion")
    algorithm = values["sasl.oauthbearer.assertion.algorithm"].upper()
    passphrase = values["sasl.oauthbearer.assertion.private.key.passphrase"]
    template_file = values[_TEMPLATE_KEY]

    def make() -> str:
        # The files are read for each assertion, so that a replaced key is used at once.
        template = {} if template_file is None else _template(template_file)
        header = {"alg": algorithm, "typ": "JWT", **template.get("header", {})}
        claims = {**template.get("payload", {}), **_claims(values, int(time.time()))}
        signed = f"{_encoded(header)}.{_encoded(claims)}"
        pem = _read(key_file, _PRIVATE_KEY_KEY)
        try:
            key = SigningKey(pem, None if passphrase is None else passphrase.value, algorithm)
            return f"{signed}.{_base64(key.sign(signed.encode()))}"
        except ConfigError as error:
            raise AuthenticationError(f"{_PRIVATE_KEY_KEY}={key_file}: {error}") from None

    return make


def _claims(values: SecurityValues, now_s: int) -> dict[str, Any]:
    claims: dict[str, Any] = {
        "iat": now_s,
        "nbf": now_s - values["sasl.oauthbearer.assertion.claim.nbf.seconds"],
        "exp": now_s + values["sasl.oauthbearer.assertion.claim.exp.seconds"],
    }
    for name, key in _CLAIM_KEYS.items():
        if values[key] is not None:
            claims[name] = values[key]
    if values["sasl.oauthbearer.assertion.claim.jti.include"]:
        claims["jti"] = str(uuid.uuid4())
    return claims


def _template(path: str) -> dict[str, dict[str, Any]]:
    try:
        found = json.loads(_read(path, _TEMPLATE_KEY))
        return {part: dict(found.get(part, {})) for part in ("header", "payload")}
    except (ValueError, TypeError, AttributeError, RecursionError):
        expected = 'JSON with the objects "header" and "payload"'
        raise AuthenticationError(f"{_TEMPLATE_KEY}={path}: the file is not {expected}") from None


def _read(path: str, key: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise AuthenticationError(f"{key}={path}: the file cannot be read ({error.strerror})") from error


def _encoded(value: dict[str, Any]) -> str:
    return _base64(json.dumps(value, separators=(",", ":")).encode())


def _base64(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")
