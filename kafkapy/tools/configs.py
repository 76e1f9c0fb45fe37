"""The tool `kafka-configs`: prints and changes the configuration of topics, brokers, groups and client metrics, and
the quotas and SCRAM credentials of users, clients and addresses."""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.client.admin import Admin
from kafkapy.config.keys.group import ROWS as GROUP_KEYS
from kafkapy.config.table import TOPIC_ROWS
from kafkapy.decimal_text import is_number
from kafkapy.host_names import host_addresses
from kafkapy.tools.bootstrap import BOOTSTRAP_SERVER, COMMAND_CONFIG, JSON, ZOOKEEPER, admin_properties
from kafkapy.tools.config_alteration import alter
from kafkapy.tools.config_description import describe
from kafkapy.tools.config_entity import (
    BROKER_LOGGERS,
    BROKERS,
    CLIENTS,
    ENTITY_FLAGS,
    ENTITY_TYPES,
    IPS,
    USERS,
    Entities,
    InvalidConfig,
    entities_of,
)
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import Arguments, Option, ToolError, UsageError
from kafkapy.tools.tool import run_tool

_WITH_DEFAULTS = (USERS, CLIENTS, BROKERS, IPS)


def check(arguments: Arguments) -> Entities:
    """Returns the entities of the command. Raises UsageError or InvalidConfig for an invalid command line."""
    if arguments.has("alter") + arguments.has("describe") != 1:
        raise UsageError("Command must include exactly one action: --describe, --alter")
    arguments.exclude("describe", "add-config", "delete-config")
    entities = entities_of(arguments)
    types = entities.types
    if len(types) != len(set(types)):
        duplicates = [each for index, each in enumerate(types) if each in types[:index]]
        raise InvalidConfig(f"Duplicate entity type(s) specified: {','.join(duplicates)}")
    if not arguments.has("bootstrap-server") and not arguments.has("bootstrap-controller"):
        raise InvalidConfig("Either --bootstrap-server or --bootstrap-controller must be specified.")
    for each in types:
        if each not in ENTITY_TYPES:
            allowed = ", ".join(ENTITY_TYPES)
            raise InvalidConfig(
                f"Invalid entity type {each}, the entity type must be one of {allowed} with a --bootstrap-server or "
                "--bootstrap-controller argument"
            )
    if not types:
        raise InvalidConfig("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {USERS, CLIENTS}:
        raise InvalidConfig(f"Only '{USERS}' and '{CLIENTS}' entity types may be specified together")
    general = any(map(arguments.has, ("entity-name", "entity-type", "entity-default")))
    if general and any(map(arguments.has, ENTITY_FLAGS)):
        raise InvalidConfig("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
    if arguments.has("bootstrap-server") and arguments.has("bootstrap-controller"):
        raise InvalidConfig("Only one of --bootstrap-server or --bootstrap-controller can be specified")
    _check_names(entities)
    if arguments.has("describe"):
        _check_describe(entities)
    else:
        _check_alter(arguments, entities)
    return entities


def _check_names(entities: Entities) -> None:
    kind = entities.types[0]
    for name in filter(None, entities.names):
        if kind in (BROKERS, BROKER_LOGGERS) and not _is_integer(name):
            raise InvalidConfig(f"The entity name for {kind} must be a valid integer broker id, but it is: {name}")
        if kind == IPS and not _is_address(name):
            raise InvalidConfig(f"The entity name for {kind} must be a valid IP or resolvable host, but it is: {name}")


def _check_describe(entities: Entities) -> None:
    shown = ",".join(entities.types)
    if entities.has_default and not set(entities.types) & set(_WITH_DEFAULTS):
        raise InvalidConfig(f"--entity-default must not be specified with --describe of {shown}")
    if BROKER_LOGGERS in entities.types and not entities.has_name:
        raise InvalidConfig(f"An entity name must be specified with --describe of {shown}")


def _check_alter(arguments: Arguments, entities: Entities) -> None:
    if set(entities.types) & set(_WITH_DEFAULTS):
        if not entities.has_name and not entities.has_default:
            raise InvalidConfig(
                "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
            )
    elif not entities.has_name:
        raise InvalidConfig(f"An entity name must be specified with --alter of {','.join(entities.types)}")
    if arguments.has("add-config") and arguments.has("add-config-file"):
        raise InvalidConfig("Only one of --add-config or --add-config-file must be specified")
    if not any(map(arguments.has, ("add-config", "add-config-file", "delete-config"))):
        raise InvalidConfig(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )
    if len(entities.types) != len(entities.names):
        raise InvalidConfig("An entity name must be specified for every entity type")


def run(arguments: Arguments) -> int:
    """Carries out --describe or --alter; returns 0, the exit code.

    Raises UsageError for a wrong command line, and ToolError, which is printed without the usage, for wrong values.
    """
    try:
        entities = check(arguments)
        with Admin(admin_properties(arguments)) as admin:
            if arguments.has("alter"):
                alter(admin, arguments, entities)
            else:
                describe(admin, arguments, entities)
    except InvalidConfig as error:
        raise ToolError(str(error)) from error
    return 0


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return is_number(digits)


def _is_address(text: str) -> bool:
    try:
        host_addresses(text)
    except OSError:
        return False
    return True


def _names(names: Sequence[str]) -> str:
    return "".join(f"\n\t{name}" for name in sorted(names))


_USER_KEYS = (
    "SCRAM-SHA-256",
    "SCRAM-SHA-512",
    "consumer_byte_rate",
    "controller_mutation_rate",
    "producer_byte_rate",
    "request_percentage",
)
_CLIENT_KEYS = _USER_KEYS[2:]
OPTIONS = (
    BOOTSTRAP_SERVER,
    ZOOKEEPER,
    Option("bootstrap-controller", "The Kafka controllers to connect to.", "controller to connect to"),
    COMMAND_CONFIG,
    Option("alter", "Alter the configuration for the entity."),
    Option("describe", "List configs for the given entity."),
    Option("all", "List all configs for the given entity, including static configs if available."),
    Option(
        "entity-type",
        "Type of entity (topics/clients/users/brokers/broker-loggers/ips/client-metrics/groups)",
        "",
        choices=("topics", "clients", "users", "brokers", "broker-loggers", "ips", "client-metrics", "groups"),
    ),
    Option(
        "entity-name",
        "Name of entity (topic name/client id/user principal name/broker id/ip/client metrics/group id)",
        "",
    ),
    Option("entity-default", "Default entity name for clients/users/brokers/ips (applies to that entity type)"),
    Option(
        "add-config",
        "Keys to set, as 'k1=v1,k2=[v1,v2,v2],k3=v3': brackets group values which contain commas. For entity-type "
        f"'topics':{_names(list(TOPIC_ROWS))}\nFor entity-type 'brokers': the keys that docs/configuration.md calls "
        f"dynamic\nFor entity-type 'users':{_names(_USER_KEYS)}\nFor entity-type 'clients':{_names(_CLIENT_KEYS)}\n"
        "For entity-type 'ips':\n\tconnection_creation_rate\nFor entity-type 'client-metrics':\n\tinterval.ms\n\tmatch"
        "\n\tmetrics\nFor entity-type 'groups':" + _names([row.name for row in GROUP_KEYS]),
        "",
    ),
    Option(
        "add-config-file",
        "Path to a properties file with configs to add. See add-config for a list of valid configurations.",
        "",
        completes="file",
    ),
    Option("delete-config", "config keys to remove 'k1,k2'", "", separator=","),
    Option("topic", "The topic's name.", "", aliases=("t",)),
    Option("client", "The client's ID.", "", aliases=("c",)),
    Option("client-defaults", "The config defaults for all clients."),
    Option("user", "The user's principal name.", "", aliases=("u",)),
    Option("user-defaults", "The config defaults for all users."),
    Option("broker", "The broker's ID.", "", aliases=("b",)),
    Option("broker-defaults", "The config defaults for all brokers."),
    Option("broker-logger", "The broker's ID for its logger config.", ""),
    Option("ip-defaults", "The config defaults for all IPs."),
    Option("ip", "The IP address.", ""),
    Option("group", "The group's ID.", ""),
    Option("client-metrics", "The client metrics config resource name.", ""),
    JSON,
)
TOOL = Tool(
    name="configs",
    description=(
        "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, "
        "client-metrics or group"
    ),
    run=run,
    options=OPTIONS,
    error_prefix="Error while executing config command: ",
    examples=(
        Example("The keys set for a topic", "--bootstrap-server localhost:9092 --describe --topic prices"),
        Example("All its keys, with defaults", "--bootstrap-server localhost:9092 --describe --topic prices --all"),
        Example(
            "Keep its records for an hour",
            "--bootstrap-server localhost:9092 --alter --topic prices --add-config retention.ms=3600000",
        ),
        Example(
            "Back to the default",
            "--bootstrap-server localhost:9092 --alter --topic prices --delete-config retention.ms",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
