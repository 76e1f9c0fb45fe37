"""The tool `kafka-log-dirs`: prints the partitions in the log directories of brokers."""

from __future__ import annotations

import json
from typing import Any

from kafkapy.client.admin import Admin, LogDirDescription
from kafkapy.tools.bootstrap import COMMAND_CONFIG, SERVERS_HELP, admin_properties
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.java_names import java_text
from kafkapy.tools.option import Arguments, Option, ToolError
from kafkapy.tools.tool import run_tool


def run(arguments: Arguments) -> int:
    """Prints the log directories and their partitions as one line of JSON, after two lines of text.

    Returns 0, the exit code.
    """
    arguments.require("bootstrap-server", "describe")
    topics = {each for each in arguments["topic-list"].split(",") if each}
    with Admin(admin_properties(arguments)) as admin:
        known = sorted(each.node_id for each in admin.describe_cluster().brokers)
        wanted = _brokers(arguments["broker-list"]) or known
        missing = [each for each in wanted if each not in known]
        if missing:
            shown, existing = (",".join(map(str, each)) for each in (missing, known))
            raise ToolError(
                f"ERROR: The given brokers do not exist from --broker-list: {shown}. Current existent brokers: "
                f"{existing}"
            )
        print("Querying brokers for log directories information")
        described = admin.describe_log_dirs(wanted).check()
    print(f"Received log directory information from brokers {','.join(map(str, wanted))}")
    brokers = [
        {"broker": broker, "logDirs": [_directory(path, each, topics) for path, each in directories.items()]}
        for broker, directories in described.items()
    ]
    print(json.dumps({"brokers": brokers, "version": 1}, separators=(",", ":")))
    return 0


def _brokers(text: str) -> list[int]:
    try:
        return list(dict.fromkeys(int(each) for each in text.split(",") if each.strip()))
    except ValueError:
        raise ToolError(f"--broker-list takes ids of brokers, not {text}") from None


def _directory(path: str, described: LogDirDescription, topics: set[str]) -> dict[str, Any]:
    return {
        "partitions": [
            {
                "partition": str(partition),
                "size": replica.size,
                "offsetLag": replica.offset_lag,
                "isFuture": replica.is_future,
            }
            for partition, replica in described.replicas.items()
            if not topics or partition.topic in topics
        ],
        "error": None if described.error is None else java_text(described.error),
        "logDir": path,
    }


TOOL = Tool(
    name="log-dirs",
    description="This tool helps to query log directory usage on the specified brokers.",
    run=run,
    options=(
        Option(
            "bootstrap-server",
            SERVERS_HELP,
            "The server(s) to use for bootstrapping",
        ),
        COMMAND_CONFIG,
        Option("describe", "Describe the specified log directories on the specified brokers."),
        Option(
            "topic-list",
            'The list of topics to be queried in the form "topic1,topic2,topic3". All topics will be queried if no '
            "topic list is specified",
            "Topic list",
            default="",
        ),
        Option(
            "broker-list",
            'The list of brokers to be queried in the form "0,1,2". All brokers in the cluster will be queried if no '
            "broker list is specified",
            "Broker list",
            default="",
        ),
    ),
    examples=(
        Example(
            "The sizes of a topic's partitions", "--bootstrap-server localhost:9092 --describe --topic-list prices"
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
