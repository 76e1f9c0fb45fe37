"""The sources of bearer tokens for confluent-kafka's registry client: a constant, a function, or an OAuth endpoint."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from kafkapy.client.errors import AuthenticationError
from kafkapy.client.token_endpoint import TokenEndpoint, checked_url, client_credentials
from kafkapy.compat.confluent_kafka.schema_registry.error import OAuthTokenError

_CREDENTIALS_SOURCE = "bearer.auth.credentials.source"
_TOKEN, _CLUSTER, _POOL = "bearer.auth.token", "bearer.auth.logical.cluster", "bearer.auth.identity.pool.id"
_FUNCTION, _FUNCTION_CONFIG = "bearer.auth.custom.provider.function", "bearer.auth.custom.provider.config"
_OAUTH = ("bearer.auth.client.id", "bearer.auth.client.secret", "bearer.auth.scope", "bearer.auth.issuer.endpoint.url")
# The keys of each source; those without the pool are required.
_KEYS_OF_SOURCE: dict[str, tuple[str, ...]] = {
    "STATIC_TOKEN": (_CLUSTER, _TOKEN),
    "CUSTOM": (_FUNCTION, _FUNCTION_CONFIG),
    "OAUTHBEARER": (_CLUSTER, *_OAUTH),
}
BEARER_KEYS = frozenset((_CREDENTIALS_SOURCE, _POOL, *(key for keys in _KEYS_OF_SOURCE.values() for key in keys)))
# A token is renewed after this share of its life; one that does not tell its end, after a minute.
_RENEWED_AFTER = 0.8
_LIFE_OF_OPAQUE_TOKENS_S = 60.0

# Returns the headers of a request.
HeaderProvider = Callable[[], Mapping[str, str]]


def normalize_identity_pool(identity_pool_raw: str | list[str] | None) -> str | None:
    """Joins a list of ids of identity pools to one text with commas; returns a text and None unchanged.

    Raises TypeError for a value of another type.
    """
    if isinstance(identity_pool_raw, list) and all(isinstance(each, str) for each in identity_pool_raw):
        return ",".join(identity_pool_raw)
    if identity_pool_raw is not None and not isinstance(identity_pool_raw, str):
        raise TypeError(f"the identity pool must be a str or a list of str, not {identity_pool_raw!r}")
    return identity_pool_raw


def bearer_headers(conf: Mapping[str, Any]) -> HeaderProvider | None:
    """Returns a function without arguments that returns the headers with the bearer token for the next request.

    Returns None if `conf` configures no bearer token. Raises ValueError and TypeError for invalid values.
    """
    source = conf.get(_CREDENTIALS_SOURCE)
    if source is None:
        return None
    if source not in _KEYS_OF_SOURCE:
        raise ValueError(f"Unrecognized {_CREDENTIALS_SOURCE} {source}; accepted are {', '.join(_KEYS_OF_SOURCE)}")
    missing = [key for key in _KEYS_OF_SOURCE[source] if key not in conf]
    if missing:
        raise ValueError(f"Missing required bearer configuration properties: {', '.join(missing)}")
    if source == "CUSTOM":
        function, argument = conf[_FUNCTION], conf[_FUNCTION_CONFIG]
        if not callable(function):
            raise TypeError(f"{_FUNCTION} must be a callable, not {type(function).__name__}")
        return lambda: _headers(function(argument))
    pool = normalize_identity_pool(conf.get(_POOL))
    fields = {_CLUSTER: conf[_CLUSTER], **({} if pool is None else {_POOL: pool})}
    if source == "STATIC_TOKEN":
        given = _headers({**fields, _TOKEN: conf[_TOKEN]})
        return lambda: given
    client_id, secret, scope, url = (str(conf[key]) for key in _OAUTH)
    endpoint = TokenEndpoint(checked_url(_OAUTH[-1], url))
    tokens = _CachedToken(client_credentials(endpoint, client_id, secret, scope, urlencoded=False))
    return lambda: _headers({**fields, _TOKEN: tokens.get()})


class _CachedToken:
    """A token of an OAuth endpoint. The token is used for most of its lifetime; then a new one is requested.

    Any thread may use the object. `retrieve` requests a token from the endpoint and returns it.
    """

    def __init__(self, retrieve: Callable[[], str]) -> None:
        self._retrieve = retrieve
        self._lock = threading.Lock()
        self._token = ""
        self._renewed_at = 0.0  # by the monotonic clock

    def get(self) -> str:
        """Returns a valid token, and requests one if there is none or most of its lifetime is over.

        Raises OAuthTokenError.
        """
        with self._lock:
            if not self._token or time.monotonic() >= self._renewed_at:
                try:
                    self._token = self._retrieve()
                except AuthenticationError as error:
                    raise OAuthTokenError(str(error)) from error
                self._renewed_at = time.monotonic() + _life_s(self._token) * _RENEWED_AFTER
            return self._token


def _life_s(token: str) -> float:
    """Returns for how many seconds from now a token is valid: until the claim `exp` of a JWT, or else a fixed time."""
    try:
        claims = token.split(".")[1]
        end = float(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"])
    except (IndexError, KeyError, TypeError, ValueError):
        return _LIFE_OF_OPAQUE_TOKENS_S
    return max(0.0, end - time.time())


def _headers(fields: Mapping[str, Any]) -> dict[str, str]:
    missing = [key for key in (_TOKEN, _CLUSTER) if key not in fields]
    if missing:
        raise ValueError(f"Missing required bearer auth fields: {', '.join(missing)}")
    found = {"Authorization": f"Bearer {fields[_TOKEN]}", "target-sr-cluster": str(fields[_CLUSTER])}
    if _POOL in fields:
        found["Confluent-Identity-Pool-Id"] = str(fields[_POOL])
    return found
