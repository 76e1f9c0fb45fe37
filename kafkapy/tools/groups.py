"""The tool `kafka-groups`: lists groups of all types."""

from __future__ import annotations

from kafkapy.client.admin import Admin, GroupListing
from kafkapy.errors import ApiError
from kafkapy.tools.bootstrap import COMMAND_CONFIG, JSON, SERVERS_HELP, admin_properties
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.json_output import print_json
from kafkapy.tools.option import Arguments, Option, ToolError, UsageError
from kafkapy.tools.tool import run_tool

TYPES = ("Classic", "Consumer", "Share", "Streams")
_LEAST_WIDTH = 20
_FILTERS = ("consumer", "share", "streams")


def check(arguments: Arguments) -> None:
    """Raises UsageError or ToolError for a command line that Apache Kafka's tool refuses."""
    if not arguments.has("list"):
        raise UsageError("Command must include exactly one action: --list.")
    if arguments.has("group-type") and arguments["group-type"].capitalize() not in TYPES:
        raise ToolError("--group-type must be a valid group type.")
    for name in _FILTERS:
        arguments.exclude(
            name, *(each for each in ("consumer", "group-type", "protocol", "share", "streams") if each != name)
        )


def is_chosen(group: GroupListing, arguments: Arguments) -> bool:
    """Returns whether the filters of the command line select a group."""
    protocol: str | None = arguments["protocol"]
    if arguments.has("group-type"):
        return group.type == str(arguments["group-type"]).capitalize() and protocol in (None, group.protocol_type)
    if protocol is not None:
        return group.protocol_type == protocol
    if arguments.has("consumer"):
        return group.protocol_type in ("consumer", "") or group.type == "Consumer"
    wanted = next((name.capitalize() for name in ("share", "streams") if arguments.has(name)), None)
    return wanted in (None, group.type)


def run(arguments: Arguments) -> int:
    """Prints the groups; returns the exit code, which is 1 after an error of the broker.

    The error is printed to standard output, as by Apache Kafka's tool.
    """
    check(arguments)
    with Admin(admin_properties(arguments)) as admin:
        try:
            groups = [group for group in admin.list_groups() if is_chosen(group, arguments)]
        except ApiError as error:
            print(f"Error while executing groups command : {error.message}")
            return 1
    rows = [(group.group_id, group.type, group.protocol_type) for group in groups]
    if arguments["json"]:
        print_json([{"group": group, "type": kind, "protocol": protocol} for group, kind, protocol in rows])
        return 0
    width = max([_LEAST_WIDTH, *(len(cell) for row in rows for cell in row)])
    print(" ".join(f"{name:<{width}}" for name in ("GROUP", "TYPE", "PROTOCOL")))
    for row in rows:
        print("".join(f"{cell:<{width}} " for cell in row))
    return 0


TOOL = Tool(
    name="groups",
    description="This tool helps to list groups of all types.",
    run=run,
    options=(
        Option("bootstrap-server", SERVERS_HELP, "server to connect to", is_required=True),
        COMMAND_CONFIG,
        Option("list", "List the groups."),
        Option(
            "group-type",
            "Filter the groups based on group type. Valid types are: 'classic', 'consumer', 'share' and 'streams'.",
            "type",
            choices=tuple(each.lower() for each in TYPES),
        ),
        Option("protocol", "Filter the groups based on protocol type.", "protocol"),
        Option(
            "consumer",
            "Filter the groups to show all kinds of consumer groups, including classic and simple consumer groups. "
            "This matches group type 'consumer', and group type 'classic' where the protocol type is 'consumer' or "
            "empty.",
        ),
        Option("share", "Filter the groups to show share groups."),
        Option("streams", "Filter the groups to show streams groups."),
        JSON,
    ),
    examples=(
        Example("All groups with their types", "--bootstrap-server localhost:9092 --list"),
        Example("Groups of consumers", "--bootstrap-server localhost:9092 --list --consumer"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
