"""The tool `kafka-cluster`: prints the cluster's id and its brokers' endpoints, and unregisters a broker."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kafkapy.client.admin import Admin, Node
from kafkapy.errors import ApiError, Error
from kafkapy.tools.bootstrap import JSON, admin_properties
from kafkapy.tools.declaration import Command, Example, Grammar, Tool
from kafkapy.tools.json_output import print_json
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError
from kafkapy.tools.tool import run_tool

_CONNECTION = "connection"


def run(arguments: Arguments) -> int:
    """Carries out the subcommand; returns the exit code, 0."""
    if arguments.has("config"):
        if arguments.has("command-config"):
            raise ToolError("--config and --command-config cannot be specified together.")
        print(
            "Option --config has been deprecated and will be removed in a future version. Use --command-config instead."
        )
    config = "config" if arguments.has("config") else "command-config"
    with Admin(admin_properties(arguments, config)) as admin:
        if arguments.command == "cluster-id":
            _cluster_id(admin, as_json=arguments["json"])
        elif arguments.command == "unregister":
            _unregister(admin, arguments["id"])
        else:
            _list_endpoints(admin, arguments)
    return 0


def _cluster_id(admin: Admin, *, as_json: bool) -> None:
    cluster_id = admin.describe_cluster().cluster_id
    if as_json:
        print_json({"cluster_id": cluster_id})
    elif cluster_id is None:
        print("No cluster ID found. The Kafka version is probably too old.")
    else:
        print(f"Cluster ID: {cluster_id}")


def _unregister(admin: Admin, broker: int) -> None:
    try:
        admin.unregister_broker(broker)
        print(f"Broker {broker} is no longer registered.")
    except ApiError as error:
        if error.error is not Error.UNSUPPORTED_VERSION:
            raise
        print("The target cluster does not support the broker unregistration API.")


def _list_endpoints(admin: Admin, arguments: Arguments) -> None:
    includes_fenced = arguments.has("include-fenced-brokers")
    is_controllers = arguments.has("bootstrap-controller")
    if includes_fenced and is_controllers:
        raise ToolError("The option --include-fenced-brokers is only supported with --bootstrap-server option")
    cluster = admin.describe_cluster(include_fenced=includes_fenced)
    if arguments["json"]:
        print_json([{**node._asdict(), "is_fenced": node.node_id in cluster.fenced} for node in cluster.brokers])
        return
    print("\n".join(endpoint_lines(cluster.brokers, cluster.fenced, is_controllers=is_controllers)))


def endpoint_lines(nodes: Iterable[Node], fenced: Collection[int], *, is_controllers: bool) -> list[str]:
    """Returns the lines of a table of brokers, or of controllers if `is_controllers`, ordered by id.

    The column STATE shows whether a broker is fenced: `fenced` has the ids of the fenced brokers. The table of
    controllers lacks this column.
    """
    ordered = sorted(nodes)
    hosts = max((len(node.host) for node in ordered), default=100)
    racks = max((len(node.rack) for node in ordered if node.rack is not None), default=10)
    rows = [("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")]
    kind = "controller" if is_controllers else "broker"
    for node in ordered:
        state = "fenced" if node.node_id in fenced else "unfenced"
        rows.append((str(node.node_id), node.host, str(node.port), _rack(node), state, kind))
    lines = []
    for number, host, port, rack, state, kind in rows:
        shown_state = "" if is_controllers else f"{state:<10} "
        lines.append(f"{number:<10} {host:<{hosts}} {port:<10} {rack:<{racks}} {shown_state}{kind:<15}")
    return lines


def _rack(node: Node) -> str:
    return "null" if node.rack is None else node.rack


_CONNECTIONS = (
    Option(
        "bootstrap-server",
        "A list of host/port pairs to use for establishing the connection to the Kafka cluster.",
        "BOOTSTRAP_SERVER",
        aliases=("b",),
        group=_CONNECTION,
    ),
    Option(
        "bootstrap-controller",
        "A list of host/port pairs to use for establishing the connection to the KRaft controllers.",
        "BOOTSTRAP_CONTROLLER",
        aliases=("C",),
        group=_CONNECTION,
    ),
    Option(
        "config",
        "(DEPRECATED) Use --command-config instead.",
        "CONFIG",
        completes="file",
        is_deprecated=True,
    ),
    Option(
        "command-config",
        "Config properties file for the Admin client.",
        "COMMAND_CONFIG",
        aliases=("c",),
        completes="file",
    ),
)
TOOL = Tool(
    name="cluster",
    description="The Kafka cluster tool.",
    run=run,
    grammar=Grammar.ARGPARSE4J,
    kafka_name="kafka-cluster",
    commands=(
        Command(
            "cluster-id",
            "Get information about the ID of a cluster.",
            (*_CONNECTIONS, JSON),
            required_groups=(_CONNECTION,),
        ),
        Command(
            "unregister",
            "Unregister a broker.",
            (
                *_CONNECTIONS,
                Option("id", "The ID of the broker to unregister.", "ID", INTEGER, aliases=("i",), is_required=True),
            ),
            required_groups=(_CONNECTION,),
        ),
        Command(
            "list-endpoints",
            "List endpoints",
            (
                *_CONNECTIONS,
                Option("include-fenced-brokers", "Whether to include fenced brokers when listing broker endpoints"),
                JSON,
            ),
            required_groups=(_CONNECTION,),
        ),
    ),
    examples=(
        Example("The cluster's id", "cluster-id --bootstrap-server localhost:9092"),
        Example("Its brokers", "list-endpoints --bootstrap-server localhost:9092"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
