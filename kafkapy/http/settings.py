"""The configuration of an HTTP listener: address, TLS, users, limits."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kafkapy.config.keys import security
from kafkapy.config.ssl_settings import CLIENT_AUTH_KEY, SslSettings
from kafkapy.config.value import default_value, parse_value
from kafkapy.decimal_text import is_number
from kafkapy.errors import ConfigError
from kafkapy.http.passwords import PasswordFile
from kafkapy.named_tuple import NamedTuple

LISTENERS_KEY = "listeners"
METHOD_KEY = "authentication.method"
USERS_KEY = "authentication.users.file"
REALM_KEY = "authentication.realm"
BODY_KEY = "http.max.body.bytes"
BODY_TIME_KEY = "http.body.timeout.ms"
HEAD_TIME_KEY = "http.head.timeout.ms"
SEND_TIME_KEY = "http.send.timeout.ms"
CONNECTIONS_KEY = "http.max.connections"
# The limits: key -> (default, least accepted value)
LIMITS = {
    BODY_KEY: (10 << 20, 1),
    BODY_TIME_KEY: (30_000, 1),
    HEAD_TIME_KEY: (10_000, 1),
    SEND_TIME_KEY: (30_000, 1),
    CONNECTIONS_KEY: (1_000, 1),
}
# Every key that `read_settings` reads, apart from those of TLS, which begin with `ssl.`.
KEYS = (LISTENERS_KEY, METHOD_KEY, USERS_KEY, REALM_KEY, *LIMITS)
SSL_PREFIX = "ssl."


class RequestLimits(NamedTuple):
    """The limits of a listener: bytes of a request's body, seconds, and connections at a time. A request that exceeds a
    limit is refused with a reason, or its connection is closed."""

    body_bytes: int
    body_s: float  # for the arrival of a request's body
    head_s: float  # for the arrival of a request's line and headers
    send_s: float  # for a client to take a piece of a response
    connections: int


class HttpSettings(NamedTuple):
    """The settings of one HTTP listener. `ssl` is None for http; `users` is None if the listener has no authentication.
    `realm` is the name that a client shows to a user who is asked for the password."""

    host: str
    port: int
    ssl: SslSettings | None
    users: PasswordFile | None
    realm: str
    limits: RequestLimits

    @property
    def scheme(self) -> str:
        """`https` with TLS, otherwise `http`."""
        return "http" if self.ssl is None else "https"


def read_settings(properties: Mapping[str, str], default_listener: str) -> HttpSettings:
    """Returns the settings from the keys of a configuration file.

    `default_listener` is the value of `listeners` if the file has none. Raises ConfigError, which names the key, the
    value and the accepted values.
    """
    scheme, host, port = parse_listener(properties.get(LISTENERS_KEY) or default_listener)
    return HttpSettings(
        host,
        port,
        _ssl_settings(properties) if scheme == "https" else None,
        _users(properties),
        properties.get(REALM_KEY, "kafkapy"),
        RequestLimits(
            _number(properties, BODY_KEY),
            _number(properties, BODY_TIME_KEY) / 1000,
            _number(properties, HEAD_TIME_KEY) / 1000,
            _number(properties, SEND_TIME_KEY) / 1000,
            _number(properties, CONNECTIONS_KEY),
        ),
    )


def parse_listener(text: str) -> tuple[str, str, int]:
    """Returns scheme, host and port of `http://host:port` or `https://host:port`; port 0 is a free port.

    Raises ConfigError for anything else.
    """
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname or port is None or parts.path not in ("", "/"):
        raise ConfigError(
            f"Invalid value {text} for configuration {LISTENERS_KEY}: one address is accepted, "
            "http://HOST:PORT or https://HOST:PORT"
        )
    return parts.scheme, parts.hostname, port


def _number(properties: Mapping[str, str], key: str) -> int:
    default, least = LIMITS[key]
    text = str(properties.get(key, default)).strip()
    if not (is_number(text) and int(text) >= least):
        raise ConfigError(f"Invalid value {text} for configuration {key}: a whole number from {least} is accepted")
    return int(text)


def _users(properties: Mapping[str, str]) -> PasswordFile | None:
    method = properties.get(METHOD_KEY, "NONE").strip().upper() or "NONE"
    path = properties.get(USERS_KEY)
    if method not in ("NONE", "BASIC"):
        raise ConfigError(f"Invalid value {method} for configuration {METHOD_KEY}: accepted are NONE and BASIC")
    if method == "NONE":
        if path:
            raise ConfigError(f"{USERS_KEY} has no effect without {METHOD_KEY}=BASIC")
        return None
    if not path:
        raise ConfigError(
            f"{METHOD_KEY}=BASIC needs {USERS_KEY}, a file of users; `kafkapy console hash-password NAME` prints a line"
        )
    return PasswordFile(Path(path))


def _ssl_settings(properties: Mapping[str, str]) -> SslSettings:
    rows = {row.name: row for row in security.ROWS if row.name.startswith(SSL_PREFIX)}

    def value_of(name: str) -> Any:
        row = rows[name]
        return parse_value(row, properties[name]) if name in properties else default_value(row)

    return SslSettings.from_values(value_of, client_auth=value_of(CLIENT_AUTH_KEY))
