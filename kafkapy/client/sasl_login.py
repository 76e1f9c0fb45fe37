"""The client's credentials for SASL: what `sasl.mechanism` and `sasl.jaas.config` say."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from kafkapy.errors import ConfigError
from kafkapy.protocol.scram_mechanism import MECHANISMS_BY_NAME
from kafkapy.security.jaas import JaasEntry, check_allowed, jaas_file_of, parse_jaas_config, read_jaas_file

if TYPE_CHECKING:
    from kafkapy.client.security_values import SecurityValues
    from kafkapy.security.sasl.client_mechanism import ClientMechanism

_PLAIN, _OAUTHBEARER, _GSSAPI = "PLAIN", "OAUTHBEARER", "GSSAPI"
_SUPPORTED = (_PLAIN, *MECHANISMS_BY_NAME, _OAUTHBEARER, _GSSAPI)
# The login context of clients in a JAAS file.
_FILE_CONTEXT = "KafkaClient"


class SaslLogin(Protocol):
    """The credentials of one client. Thread-safe."""

    def mechanism(self, host: str) -> ClientMechanism:
        """Returns the client's part of the SASL mechanism for one authentication with the broker at `host`.

        Only GSSAPI uses `host`.
        """
        ...

    def close(self) -> None:
        """Ends the thread that renews the credentials, if there is one."""
        ...


class PasswordLogin:
    """A user name and a password, which do not expire. The representation of the object contains neither of them."""

    def __init__(self, make: Callable[[], ClientMechanism]) -> None:
        self._make = make

    def mechanism(self, host: str) -> ClientMechanism:
        """Returns the client's part of the SASL mechanism for one authentication; `host` has no effect."""
        return self._make()

    def close(self) -> None:
        """Does nothing, because a password is not renewed."""


def log_in(values: SecurityValues, entry: JaasEntry | None = None) -> SaslLogin:
    """Returns the credentials in `entry`, or else in `sasl.jaas.config`. Raises ConfigError for invalid values.

    For OAUTHBEARER retrieves the first token, which blocks, and raises AuthenticationError if that fails.
    """
    name: str = values["sasl.mechanism"]
    if name not in _SUPPORTED:
        raise ConfigError(
            f"Invalid value {name} for configuration sasl.mechanism: kafkapy's client has {', '.join(_SUPPORTED)}"
        )
    if entry is None:
        config = values["sasl.jaas.config"]
        entry = _entry_of_file() if config is None else parse_jaas_config(config.value)
    if name == _OAUTHBEARER:
        from kafkapy.client.oauth_login import oauth_login

        return oauth_login(values, entry or JaasEntry("", "REQUIRED", {}))
    if name == _GSSAPI:
        from kafkapy.client.kerberos_login import KerberosLogin

        return KerberosLogin(values, entry or JaasEntry("", "REQUIRED", {}))
    if entry is None:
        raise ConfigError(f"sasl.jaas.config is missing: the mechanism {name} needs its user name and password")
    return _password_login(name, entry)


def _entry_of_file() -> JaasEntry | None:
    """Returns the first entry of the context KafkaClient in the JAAS file that KAFKA_OPTS names; None if it names no
    file.

    Raises ConfigError if the file has no such context.
    """
    path = jaas_file_of(os.environ)
    if path is None:
        return None
    entries = read_jaas_file(path).get(_FILE_CONTEXT)
    if not entries:
        raise ConfigError(f"sasl.jaas.config is missing, and the JAAS file {path} has no context {_FILE_CONTEXT}")
    check_allowed(entries[0])
    return entries[0]


def _password_login(name: str, entry: JaasEntry) -> PasswordLogin:
    username, password = (_required(entry, option, name) for option in ("username", "password"))
    if name == _PLAIN:
        from kafkapy.security.sasl.plain_client import PlainClient

        return PasswordLogin(lambda: PlainClient(username, password))
    from kafkapy.security.sasl.scram_client import ScramClient

    mechanism = MECHANISMS_BY_NAME[name]
    is_token = entry.options.get("tokenauth", "").lower() == "true"
    return PasswordLogin(lambda: ScramClient(mechanism, username, password, is_token=is_token))


def _required(entry: JaasEntry, option: str, mechanism: str) -> str:
    value = entry.options.get(option)
    if value is None:
        raise ConfigError(f"sasl.jaas.config has no {option}, which the mechanism {mechanism} needs")
    return value
