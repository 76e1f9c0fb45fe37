"""Whom `kafka-configs` speaks of: entities by type and name, as the two kinds of flags name them."""

from __future__ import annotations

from typing import NamedTuple

from kafkapy.tools.option import Arguments

TOPICS, CLIENTS, USERS, BROKERS = "topics", "clients", "users", "brokers"
BROKER_LOGGERS, IPS, CLIENT_METRICS, GROUPS = "broker-loggers", "ips", "client-metrics", "groups"
ENTITY_TYPES = (TOPICS, CLIENTS, USERS, BROKERS, IPS, CLIENT_METRICS, GROUPS, BROKER_LOGGERS)
# flag -> the type that it stands for; the first kind has a name, the second is the default of the type
_NAMED_FLAGS = {
    "topic": TOPICS,
    "client": CLIENTS,
    "user": USERS,
    "broker": BROKERS,
    "broker-logger": BROKER_LOGGERS,
    "ip": IPS,
    "client-metrics": CLIENT_METRICS,
    "group": GROUPS,
}
_DEFAULT_FLAGS = {
    "client-defaults": CLIENTS,
    "user-defaults": USERS,
    "broker-defaults": BROKERS,
    "ip-defaults": IPS,
}
ENTITY_FLAGS = (*_NAMED_FLAGS, *_DEFAULT_FLAGS)


class InvalidConfig(Exception):
    """What the tool cannot do with its arguments; said in one line without the usage."""


class Entities(NamedTuple):
    """Types and names in the order given. A name of "" is the default of its type; there may be fewer names than types,
    which means all of that type."""

    types: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def has_name(self) -> bool:
        """Whether any entity has a name."""
        return any(self.names)

    @property
    def has_default(self) -> bool:
        """Whether any entity is the default of its type."""
        return "" in self.names


def entities_of(arguments: Arguments) -> Entities:
    """Whom the flags name."""
    types = list(arguments.values("entity-type"))
    names: list[str] = []
    for flag in arguments.given:
        if flag == "entity-name":
            names += arguments.values("entity-name")
        elif flag == "entity-default":
            names.append("")
    for flag, kind in _NAMED_FLAGS.items():
        if arguments.has(flag):
            types.append(kind)
            names.append(arguments[flag])
    for flag, kind in _DEFAULT_FLAGS.items():
        if arguments.has(flag):
            types.append(kind)
            names.append("")
    return Entities(tuple(types), tuple(names))
