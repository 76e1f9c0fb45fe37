"""The tool `kafka-client-metrics`: shows and changes which metrics clients send to the brokers (KIP-714)."""

from __future__ import annotations

from kafkapy.client.admin import Admin, ConfigChange, ConfigOperation, ConfigResource, ResourceType
from kafkapy.errors import ApiError
from kafkapy.tools.bootstrap import BOOTSTRAP_SERVER, COMMAND_CONFIG, JSON, admin_properties
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.json_output import print_json
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError, UsageError
from kafkapy.tools.tool import run_tool
from kafkapy.types import random_uuid, uuid_to_string

ACTIONS = ("alter", "delete", "describe", "list")
# The flags that an action excludes.
_EXCLUDED = {
    "delete": ("generate-name", "interval", "match", "metrics"),
    "describe": ("generate-name", "interval", "match", "metrics"),
    "list": ("name", "generate-name", "interval", "match", "metrics"),
}
_SELECTORS = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def check(arguments: Arguments) -> None:
    """Raises UsageError or ToolError for a command line that Apache Kafka's tool refuses."""
    if sum(map(arguments.has, ACTIONS)) != 1:
        raise UsageError("Command must include exactly one action: --alter, --delete, --describe or --list.")
    if not arguments.has("bootstrap-server"):
        raise ToolError("--bootstrap-server must be specified.")
    for action, others in _EXCLUDED.items():
        arguments.exclude(action, *others)
    if arguments.has("alter"):
        if arguments.has("name") == arguments.has("generate-name"):
            raise ToolError("One of --name or --generate-name must be specified with --alter.")
        _check_interval(arguments["interval"])
    if arguments.has("delete") and not arguments.has("name"):
        raise ToolError("A client metrics resource name must be specified with --delete.")


def _check_interval(text: str | None) -> None:
    try:
        INTEGER.parse(text or "0")
    except ValueError:
        raise ToolError("Invalid interval value. Enter an integer, or leave empty to reset.") from None


def run(arguments: Arguments) -> int:
    """Carries out the action; returns the exit code, which is 1 after an error of the broker.

    The error is printed to standard output, as by Apache Kafka's tool.
    """
    check(arguments)
    with Admin(admin_properties(arguments)) as admin:
        try:
            if arguments.has("alter"):
                alter(admin, arguments)
            elif arguments.has("delete"):
                delete(admin, arguments["name"])
            elif arguments.has("describe"):
                describe(admin, arguments["name"], as_json=arguments["json"])
            else:
                list_resources(admin, as_json=arguments["json"])
        except ApiError as error:
            print(f"Error while executing client metrics command : {error.message}")
            return 1
    return 0


def _resource(name: str) -> ConfigResource:
    return ConfigResource(ResourceType.CLIENT_METRICS, name)


def alter(admin: Admin, arguments: Arguments) -> None:
    """Sets the keys that the command line names; an empty value resets its key."""
    name = arguments["name"] if arguments.has("name") else uuid_to_string(random_uuid())
    values = {
        "interval.ms": arguments["interval"],
        "metrics": ",".join(arguments.values("metrics")) if arguments.has("metrics") else None,
        "match": ",".join(arguments.values("match")) if arguments.has("match") else None,
    }
    changes = [
        ConfigChange(key, value, ConfigOperation.SET if value else ConfigOperation.DELETE)
        for key, value in values.items()
        if value is not None
    ]
    admin.incremental_alter_configs({_resource(name): changes}).check()
    print(f"Altered client metrics config for {name}.")


def delete(admin: Admin, name: str) -> None:
    """Resets all keys of a resource, which deletes the resource."""
    changes = [ConfigChange(key, None, ConfigOperation.DELETE) for key in _configs(admin, name)]
    admin.incremental_alter_configs({_resource(name): changes}).check()
    print(f"Deleted client metrics config for {name}.")


def describe(admin: Admin, name: str | None, *, as_json: bool) -> None:
    """Prints the keys of the resource `name`; None means all resources."""
    names = _names(admin)
    if name is not None and name not in names:
        print(f"The client metric resource {name} doesn't exist and doesn't have dynamic config.")
        return
    found = {each: _configs(admin, each) for each in ([name] if name is not None else names)}
    if as_json:
        print_json(found)
        return
    for each, configs in found.items():
        print(f"Client metrics configs for {each} are:")
        for key, value in configs.items():
            print(f"  {key}={value}")


def list_resources(admin: Admin, *, as_json: bool) -> None:
    """Prints the names of all resources."""
    if as_json:
        print_json(_names(admin))
    else:
        print("\n".join(_names(admin)))


def _names(admin: Admin) -> list[str]:
    return [each.name for each in admin.list_config_resources([ResourceType.CLIENT_METRICS])]


def _configs(admin: Admin, name: str) -> dict[str, str | None]:
    entries = admin.describe_configs([_resource(name)])[_resource(name)]
    return {key: entry.value for key, entry in entries.items()}


TOOL = Tool(
    name="client-metrics",
    description="This tool helps to manipulate and describe client metrics configurations.",
    run=run,
    options=(
        BOOTSTRAP_SERVER,
        COMMAND_CONFIG,
        Option("alter", "Alter the configuration for the client metrics resource."),
        Option("delete", "Delete the configuration for the client metrics resource."),
        Option("describe", "List configurations for the client metrics resource."),
        Option("list", "List the client metrics resources."),
        Option("name", "Name of client metrics configuration resource.", "name"),
        Option("generate-name", "Generate a UUID to use as the name."),
        Option(
            "interval",
            "The metrics push interval in milliseconds.\nLeave empty to reset the interval.",
            "push interval",
        ),
        Option(
            "match",
            "Matching selector 'k1=v1,k2=v2'. The following is a list of valid selector names: "
            + "".join(f"\n\t{name}" for name in _SELECTORS),
            "k1=v1,k2=v2",
            separator=",",
        ),
        Option("metrics", "Telemetry metric name prefixes 'm1,m2'.", "m1,m2", separator=","),
        JSON,
    ),
    examples=(
        Example(
            "Have the producers of one program send their metrics every minute",
            "--bootstrap-server localhost:9092 --alter --name orders --match client_id=orders-.* "
            "--metrics org.apache.kafka.producer. --interval 60000",
        ),
        Example("All resources with their keys", "--bootstrap-server localhost:9092 --describe"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
