"""The TLS settings of a broker's listeners, whose keys may have the listener's prefix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.config.keys.security import RECONFIGURABLE_KEYS
from kafkapy.config.listener import PROTOCOLS_WITH_TLS, ZOOKEEPER_LISTENER_NAME
from kafkapy.config.ssl_settings import (
    CLIENT_AUTH_KEY,
    CLIENT_AUTH_NONE,
    CRL_KEY,
    SslSettings,
)
from kafkapy.config.table import STATIC_ROWS
from kafkapy.config.value import default_value, parse_value

SASL_SSL = "SASL_SSL"


def listener_prefix(name: str) -> str:
    """Returns the prefix of the keys that apply to one listener only, such as `listener.name.external.`."""
    return f"listener.name.{name.lower()}."


def listener_ssl_settings(
    config: BrokerConfig, name: str, protocol: str, overrides: Mapping[str, str] | None = None
) -> SslSettings:
    """Returns the TLS settings of the listener `name`, whose security `protocol` is SSL or SASL_SSL.

    The keys of key stores and trust stores may change while the broker runs; all other values are those of the broker's
    file. `overrides` is the dynamic configuration (key -> value) that sets the keys of the stores; None means the
    broker's present dynamic configuration. Raises ConfigError for a text that cannot be parsed.
    """
    prefix = listener_prefix(name)

    def value_of(key: str) -> Any:
        if key not in RECONFIGURABLE_KEYS:
            text = config.originals.get(prefix + key, config.originals.get(key))
        elif overrides is None:
            text = config.text(prefix + key)
        else:
            text = overrides.get(prefix + key, config.originals.get(prefix + key))
        if text is None and key in RECONFIGURABLE_KEYS:
            return config[key]
        row = STATIC_ROWS[key]
        return default_value(row) if text is None else parse_value(row, text)

    client_auth = value_of(CLIENT_AUTH_KEY)
    if protocol == SASL_SSL and not _is_set_for(config, prefix):
        client_auth = CLIENT_AUTH_NONE
    return SslSettings.from_values(value_of, prefix, client_auth=client_auth, crl_location=value_of(CRL_KEY))


def ssl_warnings(config: BrokerConfig) -> list[str]:
    """Returns a sentence for each SASL_SSL listener that does not ask clients for a certificate, although
    `ssl.client.auth` asks the clients of other listeners."""
    if config[CLIENT_AUTH_KEY] == CLIENT_AUTH_NONE:
        return []
    return [
        f"The configuration key {CLIENT_AUTH_KEY} has no effect on the SASL_SSL listener {listener.name}; to ask its "
        f"clients for certificates, set {listener_prefix(listener.name)}{CLIENT_AUTH_KEY}."
        for listener in config.listeners
        if listener.security_protocol == SASL_SSL and not _is_set_for(config, listener_prefix(listener.name))
    ]


def listeners_with_tls(config: BrokerConfig) -> dict[str, str]:
    """Returns the security protocol of each listener that uses TLS, by the listener's name.

    The listener for ZooKeeper's clients, `zookeeper.listener`, is included if it uses TLS.
    """
    protocols = {each.name: each.security_protocol for each in config.listeners}
    if config.zookeeper_listener and config.is_broker:
        protocols[ZOOKEEPER_LISTENER_NAME] = config.zookeeper_listener_security_protocol
    return {name: protocol for name, protocol in protocols.items() if protocol in PROTOCOLS_WITH_TLS}


def _is_set_for(config: BrokerConfig, prefix: str) -> bool:
    return prefix + CLIENT_AUTH_KEY in config.originals
