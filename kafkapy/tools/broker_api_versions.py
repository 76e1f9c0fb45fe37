"""The tool `kafka-broker-api-versions`: prints the APIs that each broker serves, with their versions."""

from __future__ import annotations

from kafkapy.client.admin import Admin, BrokerVersions, Node, VersionRange
from kafkapy.client.admin.results import Results
from kafkapy.protocol.api import API_TABLE, ApiKey
from kafkapy.tools.bootstrap import COMMAND_CONFIG, JSON, SERVERS_HELP, admin_properties
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.java_names import java_text
from kafkapy.tools.json_output import print_json
from kafkapy.tools.option import Arguments, Option
from kafkapy.tools.tool import run_tool


def api_lines(served: dict[int, VersionRange], listener: str = "broker") -> list[str]:
    """Returns a line for each API of a node: the versions that the node serves, and the version that kafkapy's client
    uses.

    `served` maps the key of each API that the node serves to its versions. `listener` is "broker" or "controller"; APIs
    that Kafka declares for listeners of this kind have a line even if the node does not serve them.
    """
    known = sorted(set(served) | {int(key) for key in ApiKey if listener in API_TABLE[key].listeners})
    return [_line(key, served.get(key)) for key in known]


def _line(key: int, versions: VersionRange | None) -> str:
    api = API_TABLE.get(ApiKey(key)) if key in list(ApiKey) else None
    name = f"UNKNOWN({key})" if api is None else api.name
    start = f"{name}({key}): " if api is not None else f"{name}: "
    if versions is None:
        return f"{start}UNSUPPORTED"
    lowest, highest = versions
    shown = f"{lowest}" if lowest == highest else f"{lowest} to {highest}"
    if api is None:
        return start + shown
    our_lowest, our_highest = api.lowest, api.highest - api.latest_version_unstable
    usable = min(highest, our_highest)
    return f"{start}{shown} [usable: {usable if usable >= max(lowest, our_lowest) else 'UNSUPPORTED'}]"


def run(arguments: Arguments) -> int:
    """Prints the APIs of every broker or, with --bootstrap-controller, of every controller.

    Returns 0, the exit code.
    """
    if not arguments.has("bootstrap-controller"):
        arguments.require("bootstrap-server")
    with Admin(admin_properties(arguments)) as admin:
        brokers = admin.describe_cluster().brokers
        versions = admin.describe_versions([each.node_id for each in brokers])
    if arguments["json"]:
        print_json([_as_json(broker, versions) for broker in brokers])
        return 0
    listener = "controller" if arguments.has("bootstrap-controller") else "broker"
    for broker in brokers:
        error = versions.errors.get(broker.node_id)
        if error is not None:
            print(f"{_shown(broker)} -> ERROR: {java_text(error)}")
        else:
            lines = ",\n\t".join(api_lines(versions[broker.node_id].apis, listener))
            print(f"{_shown(broker)} -> (\n\t{lines}\n)")
    return 0


def _as_json(broker: Node, versions: Results[int, BrokerVersions]) -> dict[str, object]:
    """Returns the broker's object in the output of --json: with the versions of its APIs, or with the error."""
    found = {"broker": broker.node_id, "address": f"{broker.host}:{broker.port}"}
    error = versions.errors.get(broker.node_id)
    if error is not None:
        return {**found, "error": java_text(error)}
    apis = versions[broker.node_id].apis
    return {**found, "apis": {_name(key): list(each) for key, each in apis.items()}}


def _shown(broker: Node) -> str:
    rack = "null" if broker.rack is None else broker.rack
    return f"{broker.host}:{broker.port} (id: {broker.node_id} rack: {rack} isFenced: false)"


def _name(key: int) -> str:
    return API_TABLE[ApiKey(key)].name if key in list(ApiKey) else str(key)


TOOL = Tool(
    name="broker-api-versions",
    description="This tool helps to retrieve broker version information.",
    run=run,
    options=(
        Option("bootstrap-server", SERVERS_HELP, "server(s) to use for bootstrapping"),
        Option(
            "bootstrap-controller",
            "The controllers to connect to instead; their APIs are printed.",
            "controller(s) to use for bootstrapping",
            is_ours=True,
        ),
        COMMAND_CONFIG,
        JSON,
    ),
    examples=(Example("The APIs that the brokers serve", "--bootstrap-server localhost:9092"),),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
