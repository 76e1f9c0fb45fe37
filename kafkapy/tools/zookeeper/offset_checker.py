"""The tool `kafka-consumer-offset-checker` of Kafka 0.8 to 0.10: the offsets and lags of a group in ZooKeeper."""

from __future__ import annotations

from kafkapy.client.admin import Admin
from kafkapy.tools.bootstrap import ZOOKEEPER
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError
from kafkapy.tools.tool import run_tool
from kafkapy.tools.zookeeper.brokers import connected, endpoints, read_registrations, servers_in_zookeeper
from kafkapy.tools.zookeeper.errors import ZooKeeperRequestError
from kafkapy.tools.zookeeper.old_groups import OldGroups

_CHECKER_ROW = "{:<15} {:<30} {:<3} {:<15} {:<15} {:<15} {}"
_COLUMNS = ("Group", "Topic", "Pid", "Offset", "logSize", "Lag", "Owner")


def run(arguments: Arguments) -> None:
    """Prints a line for each partition of the group's topics. Raises ToolError for a group that does not exist."""
    arguments.require("group", "zookeeper")
    group, connect_string = arguments["group"], arguments["zookeeper"]
    client = connected(connect_string)
    try:
        groups = OldGroups(client)
        topics = sorted(set(arguments.values("topic"))) or groups.topics(group)
        if not topics and not groups.exists(group):
            raise ToolError(f"Exiting due to: the group {group} does not exist below /consumers.")
        with Admin(bootstrap_servers=servers_in_zookeeper(connect_string)) as admin:
            rows = groups.owned(admin, group, topics)
        print(_CHECKER_ROW.format(*_COLUMNS))
        for each in rows:
            print(_CHECKER_ROW.format(group, each.topic, each.partition, *each.texts, each.owner))
        if arguments.has("broker-info"):
            print("BROKER INFO")
            for broker_id, registration in read_registrations(client).items():
                print(f"{broker_id} -> {','.join(endpoints(registration, 'PLAINTEXT'))}")
    except ZooKeeperRequestError as error:
        raise ToolError(f"Exiting due to: {error}.") from None
    finally:
        client.close()


TOOL = Tool(
    name="consumer-offset-checker",
    description="Prints the offsets, lags and owners of a group of consumers that use ZooKeeper. It is a tool of "
    "Apache Kafka 0.8 to 0.10; `consumer-groups --describe` shows the groups of later consumers.",
    run=run,
    options=(
        ZOOKEEPER,
        Option("group", "REQUIRED: The group of the consumers.", "group"),
        Option(
            "topic", "The topics, separated by commas; by default all that the group reads.", "topic", separator=","
        ),
        Option("broker-info", "Print the addresses of the brokers as well."),
        Option("retry.backoff.ms", "Ignored.", "ms", INTEGER, 3000, is_deprecated=True),
        Option("socket.timeout.ms", "Ignored.", "ms", INTEGER, 6000, is_deprecated=True),
    ),
    examples=(Example("The lags of a group", "--zookeeper localhost:2181 --group orders --broker-info"),),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
