"""The tool `kafka-preferred-replica-election` of Apache Kafka 0.8 to 2.8: elects preferred replicas as leaders.

It runs `leader-election --election-type preferred`, which replaces it.
"""

from __future__ import annotations

from kafkapy.tools import leader_election
from kafkapy.tools.bootstrap import COMMAND_CONFIG, SERVERS_HELP, ZOOKEEPER
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import Arguments, Option
from kafkapy.tools.tool import parse, run_tool

_PASSED_ON = ("bootstrap-server", "path-to-json-file", "admin.config", "command-config")


def run(arguments: Arguments) -> int:
    """Elects the preferred replicas of the partitions in a file, or of all partitions if no file is given.

    Returns the exit code of `kafka-leader-election`, which does the work.
    """
    words = ["--election-type", "preferred"]
    for name in _PASSED_ON:
        if arguments.has(name):
            words += [f"--{name}", arguments[name]]
    if not arguments.has("path-to-json-file"):
        words.append("--all-topic-partitions")
    _, passed = parse(leader_election.TOOL, words)
    return leader_election.run(passed)


TOOL = Tool(
    name="preferred-replica-election",
    description="This tool helps to restore the leadership of partitions to their preferred replicas. It is a tool of "
    "Apache Kafka 0.8 to 2.8; since 2.4, leader-election --election-type preferred replaces it.",
    run=run,
    options=(
        Option("bootstrap-server", SERVERS_HELP, "host:port"),
        ZOOKEEPER,
        Option(
            "path-to-json-file",
            'The JSON file with the list of partitions, as {"partitions": [{"topic": "foo", "partition": 1}]}; by '
            "default all partitions.",
            "list of partitions for which preferred replica leader election needs to be triggered",
            completes="file",
        ),
        Option(
            "admin.config",
            "(DEPRECATED) Use --command-config instead.",
            "config file",
            completes="file",
            is_deprecated=True,
        ),
        COMMAND_CONFIG,
    ),
    examples=(Example("All partitions", "--bootstrap-server localhost:9092"),),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
