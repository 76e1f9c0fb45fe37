"""The entities that the flags of `kafka-configs` name, by type and name.

The flags are --entity-type with --entity-name, or a flag of one type, such as --topic or --user-defaults.
"""

from __future__ import annotations

from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.option import Arguments

TOPICS, CLIENTS, USERS, BROKERS = "topics", "clients", "users", "brokers"
BROKER_LOGGERS, IPS, CLIENT_METRICS, GROUPS = "broker-loggers", "ips", "client-metrics", "groups"
ENTITY_TYPES = (TOPICS, CLIENTS, USERS, BROKERS, IPS, CLIENT_METRICS, GROUPS, BROKER_LOGGERS)
# flag -> entity type; flags of the first table take a name, those of the second select the default of the type
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
    """An invalid combination of arguments, printed as one line without the usage."""


class Entities(NamedTuple):
    """The entities that the flags name: types and names in the order given.

    The nth name belongs to the nth type; the name "" stands for the default entity of its type. The last types may have
    no name, and then stand for all their entities.
    """

    types: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def has_name(self) -> bool:
        """True if any entity has a name."""
        return any(self.names)

    @property
    def has_default(self) -> bool:
        """True if any entity is the default entity of its type."""
        return "" in self.names


def entities_of(arguments: Arguments) -> Entities:
    """Returns the entities that the flags name."""
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
