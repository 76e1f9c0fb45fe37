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
    from kafkapy.client.connection_security import SecurityValues

_PREFIX = "sasl.oauthbearer.assertion."


def assertion_maker(values: SecurityValues) -> Callable[[], str]:
    """Returns a function that returns an assertion for one request. Raises ConfigError.

    The function raises AuthenticationError if a file cannot be read.
    """
    file = values[f"{_PREFIX}file"]
    if file is not None:
        return lambda: _read(file, f"{_PREFIX}file").decode("utf-8", "replace").strip()
    key_file = values[f"{_PREFIX}private.key.file"]
    if key_file is None:
        raise ConfigError(f"{_PREFIX}private.key.file is missing, or {_PREFIX}file with a finished assertion")
    algorithm = values[f"{_PREFIX}algorithm"].upper()
    passphrase = values[f"{_PREFIX}private.key.passphrase"]
    template_file = values[f"{_PREFIX}template.file"]

    def make() -> str:
        # The files are read for each assertion, so that a replaced key is used at once.
        template = {} if template_file is None else _template(template_file)
        header = {"alg": algorithm, "typ": "JWT", **template.get("header", {})}
        claims = {**template.get("payload", {}), **_claims(values, int(time.time()))}
        signed = f"{_encoded(header)}.{_encoded(claims)}"
        pem = _read(key_file, f"{_PREFIX}private.key.file")
        try:
            key = SigningKey(pem, None if passphrase is None else passphrase.value, algorithm)
            return f"{signed}.{_base64(key.sign(signed.encode()))}"
        except ConfigError as error:
            raise AuthenticationError(f"{_PREFIX}private.key.file={key_file}: {error}") from None

    return make


def _claims(values: SecurityValues, now_s: int) -> dict[str, Any]:
    claims: dict[str, Any] = {
        "iat": now_s,
        "nbf": now_s - values[f"{_PREFIX}claim.nbf.seconds"],
        "exp": now_s + values[f"{_PREFIX}claim.exp.seconds"],
    }
    for name in ("aud", "iss", "sub"):
        value = values[f"{_PREFIX}claim.{name}"]
        if value is not None:
            claims[name] = value
    if values[f"{_PREFIX}claim.jti.include"]:
        claims["jti"] = str(uuid.uuid4())
    return claims


def _template(path: str) -> dict[str, dict[str, Any]]:
    key = f"{_PREFIX}template.file"
    try:
        found = json.loads(_read(path, key))
        return {part: dict(found.get(part, {})) for part in ("header", "payload")}
    except (ValueError, TypeError, AttributeError, RecursionError):
        expected = 'JSON with the objects "header" and "payload"'
        raise AuthenticationError(f"{key}={path}: the file is not {expected}") from None


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
