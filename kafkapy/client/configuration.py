"""A client's configuration: Kafka's keys, typed and validated as in Apache Kafka's clients."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import count
from typing import Any

from kafkapy.config.client_table import ADMIN_ROWS, CONSUMER_ROWS, PRODUCER_ROWS
from kafkapy.config.keys import client_security
from kafkapy.config.row import BOOLEAN, CLASS, DOUBLE, LIST, REQUIRED, Row
from kafkapy.config.value import default_value, parse_value
from kafkapy.errors import ConfigError

log = logging.getLogger("kafkapy.client")

# The greatest number of requests in flight with which an idempotent producer keeps the order of its records.
MOST_IN_FLIGHT_IN_ORDER = 5
# Keys that are required in Java's clients only.
_OPTIONAL = frozenset(("key.serializer", "value.serializer", "key.deserializer", "value.deserializer"))

_KEYS_OF_SHARE_GROUPS = ("share.acknowledgement.mode", "share.acquire.mode")
# group.protocol -> the keys that only other protocols have
_KEYS_OF_OTHER_PROTOCOL = {
    "classic": ("group.remote.assignor", *_KEYS_OF_SHARE_GROUPS),
    "consumer": (
        "partition.assignment.strategy",
        "heartbeat.interval.ms",
        "session.timeout.ms",
        *_KEYS_OF_SHARE_GROUPS,
    ),
}
# The keys of a consumer that a share consumer does not have, in the order of Java's message.
_KEYS_OF_CONSUMER_GROUPS = (
    "auto.offset.reset",
    "enable.auto.commit",
    "group.instance.id",
    "isolation.level",
    "partition.assignment.strategy",
    "interceptor.classes",
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "group.protocol",
    "group.remote.assignor",
)


class ClientConfig:
    """The typed values of one client's configuration: `config["linger.ms"]`. Immutable once made, and thread-safe.

    `properties` has Kafka's keys, with values as text or of their type; `settings` has the same keys with `_` instead
    of `.`, so that they can be keyword arguments. An unknown key is logged as a warning that names the most similar
    key. Raises ConfigError for an invalid value, with the key, the value and the accepted values; TypeError if
    `properties` is not a mapping.
    """

    def __init__(self, rows: Mapping[str, Row], properties: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        if not isinstance(properties, Mapping):
            raise TypeError(
                f"properties must be a mapping of configuration keys, not {type(properties).__name__}; "
                'the brokers are given as bootstrap_servers="localhost:9092"'
            )
        self.originals: dict[str, Any] = {**properties, **{key.replace("_", "."): settings[key] for key in settings}}
        self.warnings: list[str] = []
        self._values: dict[str, Any] = {name: default_value(row) for name, row in rows.items()}
        similar: dict[str, str] = {}
        for name, value in self.originals.items():
            row = rows.get(name)
            if row is None:
                similar_key = _most_similar(name, rows)
                similar[similar_key] = name
                hint = f"; did you mean {similar_key}?" if similar_key else "."
                self.warnings.append(f"The configuration key {name} is unknown and is ignored{hint}")
            else:
                self._values[name] = _typed(row, value)
                if not row.has_effect:
                    self.warnings.append(f"The configuration key {name} has no effect in kafkapy's client.")
        for name, row in rows.items():
            if row.default is REQUIRED and name not in _OPTIONAL and not self._values[name]:
                hint = f" Did you mean it by {similar[name]}?" if name in similar else ""
                raise ConfigError(f'Missing required configuration "{name}" which has no default value.{hint}')
        for warning in self.warnings:
            log.warning("%s", warning)

    def __getitem__(self, key: str) -> Any:
        """Returns the typed value of a key; None if it is unset.

        Raises KeyError if this kind of client has no such key.
        """
        return self._values[key]

    def has(self, key: str) -> bool:
        """Returns whether this kind of client has the key."""
        return key in self._values

    def is_set(self, key: str) -> bool:
        """Returns whether the application has set a key."""
        return key in self.originals

    def replace(self, key: str, value: Any) -> None:
        """Sets a value that is derived from other keys; called only while the configuration is being made."""
        self._values[key] = value


def _most_similar(name: str, rows: Mapping[str, Row]) -> str:
    """Returns the key of `rows` that is most similar to the unknown key `name`; "" if none is similar."""
    from difflib import get_close_matches  # imported for unknown keys only

    return next(iter(get_close_matches(name, rows, n=1, cutoff=0.6)), "")


# The number of clients of each kind in this process, as in Java's clients.
_client_numbers = {"producer": count(1), "consumer": count(1), "adminclient": count(1)}


def _default_client_id(config: ClientConfig, kind: str, *names: str | None) -> None:
    """Sets client.id to `kind` and the `names`, joined by hyphens, unless the application has set client.id.

    Each name that is None is replaced by a number, which is one greater for each client of this kind, as in Java's
    clients.
    """
    if not config["client.id"]:
        parts = [str(next(_client_numbers[kind])) if name is None else name for name in names]
        config.replace("client.id", "-".join((kind, *parts)))


def _typed(row: Row, value: Any) -> Any:
    if value is None or isinstance(value, str):
        return default_value(row) if value is None else parse_value(row, value)
    if row.type is CLASS:
        return value
    if row.type is LIST:
        elements = [value] if not isinstance(value, list | tuple) else list(value)
        if row.validator is not None:
            row.validator(row.name, elements)
        return elements
    if row.type is BOOLEAN and isinstance(value, bool):
        return value
    if row.type is DOUBLE and isinstance(value, float):
        return parse_value(row, repr(value))
    return parse_value(row, str(value))


def security_values(properties: Mapping[str, str]) -> dict[str, Any]:
    """Returns the typed values of all keys of TLS and SASL by key; a key that is not in `properties` has its default.

    Other keys in `properties` are ignored. Raises ConfigError for an invalid value.
    """
    values = {row.name: default_value(row) for row in client_security.ROWS}
    rows = {row.name: row for row in client_security.ROWS}
    values.update({name: parse_value(rows[name], text) for name, text in properties.items() if name in rows})
    return values


def producer_config(properties: Mapping[str, Any] | None = None, **settings: Any) -> ClientConfig:
    """Returns the configuration of a producer; `settings` are further keys, with `_` instead of `.`.

    Raises ConfigError for invalid values, and for values that contradict each other.
    """
    config = ClientConfig(PRODUCER_ROWS, {} if properties is None else properties, settings)
    _default_client_id(config, "producer", config["transactional.id"])
    _adjust_delivery_timeout(config)
    _adjust_idempotence(config)
    if config["transactional.id"] is not None and not config["enable.idempotence"]:
        raise ConfigError("Cannot set a transactional.id without also enabling idempotence.")
    return config


def _adjust_delivery_timeout(config: ClientConfig) -> None:
    least = min(config["linger.ms"] + config["request.timeout.ms"], 2**31 - 1)
    if config["delivery.timeout.ms"] < least:
        if config.is_set("delivery.timeout.ms"):
            raise ConfigError("delivery.timeout.ms should be equal to or larger than linger.ms + request.timeout.ms")
        log.warning(
            "delivery.timeout.ms should be equal to or larger than linger.ms + request.timeout.ms; using %d", least
        )
        config.replace("delivery.timeout.ms", least)


def _adjust_idempotence(config: ClientConfig) -> None:
    if not config["enable.idempotence"]:
        return
    in_flight = config["max.in.flight.requests.per.connection"]
    if in_flight > MOST_IN_FLIGHT_IN_ORDER:
        raise ConfigError(
            "To use the idempotent producer, max.in.flight.requests.per.connection must be set to at most "
            f"{MOST_IN_FLIGHT_IN_ORDER}. Current value is {in_flight}."
        )
    is_requested = config.is_set("enable.idempotence") or config["transactional.id"] is not None
    if config["acks"] not in ("all", "-1"):
        if is_requested:
            raise ConfigError(
                "Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee "
                "idempotence."
            )
        config.replace("enable.idempotence", False)
    if config["retries"] == 0:
        if is_requested:
            raise ConfigError("Must set retries to non-zero when using the idempotent producer.")
        config.replace("enable.idempotence", False)


def consumer_config(properties: Mapping[str, Any] | None = None, **settings: Any) -> ClientConfig:
    """Returns the configuration of a consumer; `settings` are further keys, with `_` instead of `.`.

    Raises ConfigError for invalid values, and for values that contradict each other.
    """
    config = ClientConfig(CONSUMER_ROWS, {} if properties is None else properties, settings)
    group_id = "null" if config["group.id"] is None else config["group.id"]  # "null" is Java's text
    _default_client_id(config, "consumer", group_id, config["group.instance.id"])
    if config["group.id"] is None:
        if config.is_set("enable.auto.commit") and config["enable.auto.commit"]:
            raise ConfigError("enable.auto.commit cannot be set to true when default group id (null) is used.")
        config.replace("enable.auto.commit", False)
    protocol = config["group.protocol"].lower()
    for key in _KEYS_OF_OTHER_PROTOCOL[protocol]:
        if config.is_set(key):
            raise ConfigError(f"{key} cannot be set when group.protocol={protocol.upper()}")
    return config


def share_consumer_config(properties: Mapping[str, Any] | None = None, **settings: Any) -> ClientConfig:
    """Returns the configuration of a share consumer; `settings` are further keys, with `_` instead of `.`.

    Raises ConfigError for invalid values, without a group, and for a key that consumers of share groups do not have.
    """
    config = ClientConfig(CONSUMER_ROWS, {} if properties is None else properties, settings)
    refused = [key for key in _KEYS_OF_CONSUMER_GROUPS if config.is_set(key)]
    if refused:
        raise ConfigError(f"{', '.join(refused)} cannot be set when using a share group.")
    if not config["group.id"]:
        raise ConfigError("You must provide a valid group.id in the consumer configuration.")
    _default_client_id(config, "consumer", config["group.id"], None)
    return config


def admin_config(properties: Mapping[str, Any] | None = None, **settings: Any) -> ClientConfig:
    """Returns the configuration of an admin client; `settings` are further keys, with `_` instead of `.`.

    Raises ConfigError for invalid values, and without a bootstrap address.
    """
    config = ClientConfig(ADMIN_ROWS, {} if properties is None else properties, settings)
    _default_client_id(config, "adminclient", None)
    if not config["bootstrap.servers"] and not config["bootstrap.controllers"]:
        raise ConfigError("You must set either bootstrap.servers or bootstrap.controllers")
    if config["bootstrap.servers"] and config["bootstrap.controllers"]:
        raise ConfigError("You cannot set both bootstrap.servers and bootstrap.controllers")
    return config
