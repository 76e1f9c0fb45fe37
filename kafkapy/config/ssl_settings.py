"""The `ssl.*` keys of one listener or client, as one value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkapy.config.value import Password
from kafkapy.named_tuple import NamedTuple

PEM_TYPE = "PEM"
CRL_KEY = "kafkapy.ssl.crl.location"
CLIENT_AUTH_KEY = "ssl.client.auth"
CLIENT_AUTH_NONE = "none"


class StoreSettings(NamedTuple):
    """The settings of a key store or a trust store: a file, or a store that the configuration contains itself.

    `location` is the path of the file. If the configuration contains the store, `content` has the certificates and
    `key` the private key, both as PEM text.
    """

    type: str
    location: str | None
    password: str | None
    content: str | None  # ssl.keystore.certificate.chain, ssl.truststore.certificates
    key: str | None = None
    key_password: str | None = None

    def __repr__(self) -> str:
        return f"StoreSettings({self.type}, {self.location}, [hidden])"


class SslSettings(NamedTuple):
    """The values of the configuration keys `ssl.*` of one listener or client.

    `prefix` is the prefix of the listener's keys, which error messages put before the name of a key; "" for a client.
    """

    prefix: str
    key_store: StoreSettings
    trust_store: StoreSettings
    client_auth: str  # none, requested, required
    enabled_protocols: tuple[str, ...]
    cipher_suites: tuple[str, ...]
    endpoint_identification_algorithm: str
    engine_factory_class: str | None
    crl_location: str | None

    @classmethod
    def from_values(
        cls,
        value_of: Callable[[str], Any],
        prefix: str = "",
        *,
        client_auth: str = CLIENT_AUTH_NONE,
        crl_location: str | None = None,
    ) -> SslSettings:
        """Returns the settings; `value_of(key)` returns the typed value of a key without prefix.

        `client_auth` is none, requested or required; clients have no key for it. `crl_location` is the value of
        kafkapy.ssl.crl.location.
        """

        def secret(key: str) -> str | None:
            value = value_of(key)
            return value.value if isinstance(value, Password) else None

        key_store = StoreSettings(
            value_of("ssl.keystore.type"),
            value_of("ssl.keystore.location") or None,
            secret("ssl.keystore.password"),
            secret("ssl.keystore.certificate.chain"),
            secret("ssl.keystore.key"),
            secret("ssl.key.password"),
        )
        trust_store = StoreSettings(
            value_of("ssl.truststore.type"),
            value_of("ssl.truststore.location") or None,
            secret("ssl.truststore.password"),
            secret("ssl.truststore.certificates"),
        )
        return cls(
            prefix,
            key_store,
            trust_store,
            client_auth,
            tuple(value_of("ssl.enabled.protocols") or ()),
            tuple(value_of("ssl.cipher.suites") or ()),
            value_of("ssl.endpoint.identification.algorithm") or "",
            value_of("ssl.engine.factory.class"),
            crl_location or None,
        )

    def as_configs(self) -> dict[str, object]:
        """Returns the values by key, for the constructor of the class that `ssl.engine.factory.class` names.

        The keys have no listener's prefix, and passwords and private keys are readable.
        """
        key_store, trust_store = self.key_store, self.trust_store
        return {
            "ssl.keystore.type": key_store.type,
            "ssl.keystore.location": key_store.location,
            "ssl.keystore.password": key_store.password,
            "ssl.keystore.certificate.chain": key_store.content,
            "ssl.keystore.key": key_store.key,
            "ssl.key.password": key_store.key_password,
            "ssl.truststore.type": trust_store.type,
            "ssl.truststore.location": trust_store.location,
            "ssl.truststore.password": trust_store.password,
            "ssl.truststore.certificates": trust_store.content,
            "ssl.client.auth": self.client_auth,
            "ssl.enabled.protocols": list(self.enabled_protocols),
            "ssl.cipher.suites": list(self.cipher_suites),
            "ssl.endpoint.identification.algorithm": self.endpoint_identification_algorithm,
        }
