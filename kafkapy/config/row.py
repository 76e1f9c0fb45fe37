"""The shape of a configuration row: name, type, default, validator, importance, dynamic mode and documentation."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from kafkapy.config.validator import Validator

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
DOUBLE_MAX = 1.7976931348623157e308


class ConfigType(IntEnum):
    """The type of a configuration value; the numbers are those of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """The source of a configuration value; the numbers are those of DescribeConfigs (KIP-226)."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class UpdateMode(IntEnum):
    """The scope in which a broker key may be changed while the broker runs (KIP-226)."""

    READ_ONLY = 0
    PER_BROKER = 1  # for one broker id only
    CLUSTER_WIDE = 2  # for one broker id or as the default of all


BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = ConfigType
READ_ONLY, PER_BROKER, CLUSTER_WIDE = UpdateMode
HIGH, MEDIUM, LOW = "high", "medium", "low"


class _Required:
    """The type of REQUIRED, which is the `default` in the row of a key that must be set."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED = _Required()


class Row:
    """The declaration of one configuration key. It does not change after construction.

    `default` is a typed value, or the text of a list; None means that the key is unset by default. `has_effect` is
    False for a key that Kafka has and that has no effect in kafkapy; setting such a key causes a warning.
    """

    __slots__ = ("default", "documentation", "has_effect", "importance", "mode", "name", "type", "validator")

    def __init__(
        self,
        name: str,
        type: ConfigType,
        default: Any,
        validator: Validator | None,
        importance: str,
        mode: UpdateMode,
        documentation: str,
        has_effect: bool = True,
    ) -> None:
        self.name = name
        self.type = type
        self.default = default
        self.validator = validator
        self.importance = importance
        self.mode = mode
        self.documentation = documentation
        self.has_effect = has_effect

    @property
    def sensitive(self) -> bool:
        """True for a value that must never be shown, neither in DescribeConfigs nor in logs."""
        return self.type is PASSWORD

    def __repr__(self) -> str:
        return f"Row({self.name})"


key = Row


def inert(
    name: str,
    type: ConfigType,
    default: Any,
    validator: Validator | None,
    importance: str,
    mode: UpdateMode,
    documentation: str,
) -> Row:
    """Returns the row of a broker key that is read, checked and described, but has no effect yet."""
    return Row(name, type, default, validator, importance, mode, documentation, has_effect=False)


def topic_key(
    name: str, type: ConfigType, default: Any, validator: Validator | None, importance: str, documentation: str
) -> Row:
    """Returns the row of a topic key. Every topic key can be changed while the brokers run."""
    return Row(name, type, default, validator, importance, CLUSTER_WIDE, documentation)


def client_key(
    name: str, type: ConfigType, default: Any, validator: Validator | None, importance: str, documentation: str
) -> Row:
    """Returns the row of a key of producers, consumers or admin clients, which read it when they are constructed."""
    return Row(name, type, default, validator, importance, READ_ONLY, documentation)


def inert_client_key(
    name: str, type: ConfigType, default: Any, validator: Validator | None, importance: str, documentation: str
) -> Row:
    """Returns the row of a client's key that is read and checked, but has no effect yet."""
    return Row(name, type, default, validator, importance, READ_ONLY, documentation, has_effect=False)
