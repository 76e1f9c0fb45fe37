"""A client's configuration: the field's own keys, typed, judged and crosschecked as Apache Kafka's clients do."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from kafkapy.config.client_table import ADMIN_ROWS, CONSUMER_ROWS, PRODUCER_ROWS
from kafkapy.config.row import BOOLEAN, CLASS, DOUBLE, LIST, REQUIRED, Row
from kafkapy.config.value import default_value, parse_value
from kafkapy.errors import ConfigError

log = logging.getLogger("kafkapy.client")

# The greatest number of requests in flight that keeps the order of an idempotent producer.
MOST_IN_FLIGHT_IN_ORDER = 5
# What a client of ours can do without.
_OPTIONAL = frozenset(("key.serializer", "value.serializer", "key.deserializer", "value.deserializer"))

# By group.protocol, what only the other protocol's members may say.
_OF_THE_OTHER_PROTOCOL = {
    "classic": ("group.remote.assignor",),
    "consumer": ("partition.assignment.strategy", "heartbeat.interval.ms", "session.timeout.ms"),
}


class ClientConfig:
    """The typed values of one client: `config["linger.ms"]`.  Immutable after it is made; any thread.

    `properties` are the keys with text or with values of their type; `settings` the same with `_` for `.`, so that
    they can be keyword arguments. A key that no client has earns a warning with the nearest one; a bad value is a
    ConfigError that names key, value and what is accepted.
    """

    def __init__(self, rows: Mapping[str, Row], properties: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        self.originals: dict[str, Any] = {**properties, **{key.replace("_", "."): settings[key] for key in settings}}
        self.warnings: list[str] = []
        self._values: dict[str, Any] = {name: default_value(row) for name, row in rows.items()}
        for name, value in self.originals.items():
            row = rows.get(name)
            if row is None:
                self.warnings.append(_unknown(name, rows))
            else:
                self._values[name] = _typed(row, value)
                if not row.has_effect:
                    self.warnings.append(f"The configuration key {name} has no effect in kafkapy's client.")
        for name, row in rows.items():
            if row.default is REQUIRED and name not in _OPTIONAL and not self._values[name]:
                raise ConfigError(f'Missing required configuration "{name}" which has no default value.')
        self._check_security()
        for warning in self.warnings:
            log.warning("%s", warning)

    def __getitem__(self, key: str) -> Any:
        """The typed value of a key; None if it is unset; KeyError for a key that this kind of client does not have."""
        return self._values[key]

    def is_set(self, key: str) -> bool:
        """Whether the application has set it."""
        return key in self.originals

    def replace(self, key: str, value: Any) -> None:
        """Sets what follows from other keys, while the client is being made."""
        self._values[key] = value

    def _check_security(self) -> None:
        protocol = self["security.protocol"].upper()
        if protocol != "PLAINTEXT":
            raise ConfigError(
                f"Invalid value {protocol} for configuration security.protocol: kafkapy's client speaks PLAINTEXT only"
            )


def _unknown(name: str, rows: Mapping[str, Row]) -> str:
    from difflib import get_close_matches  # only for a key that nobody knows

    near = get_close_matches(name, rows, n=1, cutoff=0.6)
    hint = f"; did you mean {near[0]}?" if near else "."
    return f"The configuration key {name} is unknown and is ignored{hint}"


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


def producer_config(properties: Mapping[str, Any] | None = None, **settings: Any) -> ClientConfig:
    """The configuration of a producer; ConfigError for settings that contradict each other."""
    config = ClientConfig(PRODUCER_ROWS, properties or {}, settings)
    _settle_delivery_timeout(config)
    _settle_idempotence(config)
    if config["transactional.id"] is not None and not config["enable.idempotence"]:
        raise ConfigError("Cannot set a transactional.id without also enabling idempotence.")
    return config


def _settle_delivery_timeout(config: ClientConfig) -> None:
    least = min(config["linger.ms"] + config["request.timeout.ms"], 2**31 - 1)
    if config["delivery.timeout.ms"] < least:
        if config.is_set("delivery.timeout.ms"):
            raise ConfigError("delivery.timeout.ms should be equal to or larger than linger.ms + request.timeout.ms")
        log.warning(
            "delivery.timeout.ms should be equal to or larger than linger.ms + request.timeout.ms: now %d", least
        )
        config.replace("delivery.timeout.ms", least)


def _settle_idempotence(config: ClientConfig) -> None:
    if not config["enable.idempotence"]:
        return
    in_flight = config["max.in.flight.requests.per.connection"]
    if in_flight > MOST_IN_FLIGHT_IN_ORDER:
        raise ConfigError(
            "To use the idempotent producer, max.in.flight.requests.per.connection must be set to at most "
            f"{MOST_IN_FLIGHT_IN_ORDER}. Current value is {in_flight}."
        )
    wanted = config.is_set("enable.idempotence") or config["transactional.id"] is not None
    if config["acks"] not in ("all", "-1"):
        if wanted:
            raise ConfigError(
                "Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee "
                "idempotence."
            )
        config.replace("enable.idempotence", False)
    if config["retries"] == 0:
        if wanted:
            raise ConfigError("Must set retries to non-zero when using the idempotent producer.")
        config.replace("enable.idempotence", False)


def consumer_config(properties: Mapping[str, Any] | None = None, **settings: Any) -> ClientConfig:
    """The configuration of a consumer."""
    config = ClientConfig(CONSUMER_ROWS, properties or {}, settings)
    if config["group.id"] is None:
        if config.is_set("enable.auto.commit") and config["enable.auto.commit"]:
            raise ConfigError("enable.auto.commit cannot be set to true when default group id (null) is used.")
        config.replace("enable.auto.commit", False)
    protocol = config["group.protocol"].lower()
    for key in _OF_THE_OTHER_PROTOCOL[protocol]:
        if config.is_set(key):
            raise ConfigError(f"{key} cannot be set when group.protocol={protocol.upper()}")
    return config


def admin_config(properties: Mapping[str, Any] | None = None, **settings: Any) -> ClientConfig:
    """The configuration of an admin client."""
    config = ClientConfig(ADMIN_ROWS, properties or {}, settings)
    if not config["bootstrap.servers"] and not config["bootstrap.controllers"]:
        raise ConfigError("You must set either bootstrap.servers or bootstrap.controllers")
    return config
