"""The tool `kafka-leader-election`: makes preferred replicas the leaders of partitions, or elects any live replicas."""

from __future__ import annotations

from collections import Counter

from kafkapy.client.admin import Admin, ElectionType
from kafkapy.errors import Error
from kafkapy.tools.bootstrap import COMMAND_CONFIG, SERVERS_HELP, admin_properties
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.java_names import java_text
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError, ValueType
from kafkapy.tools.partition_file import field, read_json_object
from kafkapy.tools.tool import run_tool
from kafkapy.types import TopicPartition

_SCOPES = ("topic", "all-topic-partitions", "path-to-json-file")


def _election_type(text: str) -> ElectionType:
    if text.upper() not in ElectionType.__members__:
        raise ValueError(text)
    return ElectionType[text.upper()]


_ELECTION_TYPE = ValueType("[PREFERRED,UNCLEAN]", _election_type)


def check(arguments: Arguments) -> None:
    """Raises ToolError for a command line that Apache Kafka's tool refuses."""
    missing = [name for name in ("bootstrap-server", "election-type") if not arguments.has(name)]
    if missing:
        raise ToolError(f"Missing required option(s): {', '.join(missing)}")
    if sum(map(arguments.has, _SCOPES)) != 1:
        shown = ", ".join(_SCOPES)
        raise ToolError(f"One and only one of the following options is required: {shown}")
    if arguments.has("topic") and not arguments.has("partition"):
        raise ToolError("Missing required option(s): partition")
    if arguments.has("partition") and not arguments.has("topic"):
        raise ToolError("Option partition is only allowed if topic is used")


def read_partitions(path: str) -> list[TopicPartition]:
    """Returns the partitions of a JSON file. Raises ToolError for an invalid file."""
    content = read_json_object(path)
    if "partitions" not in content:
        raise ToolError('Replica election data is missing "partitions" field')
    if not isinstance(content["partitions"], list) or not content["partitions"]:
        raise ToolError("Replica election data is empty")
    found = [TopicPartition(field(each, "topic", str), field(each, "partition", int)) for each in content["partitions"]]
    duplicates = [partition for partition, count in Counter(found).items() if count > 1]
    if duplicates:
        raise ToolError(f"Replica election data contains duplicate partitions: {', '.join(map(str, duplicates))}")
    return found


def run(arguments: Arguments) -> int:
    """Elects leaders and prints the outcomes; returns 0, the exit code. Raises ToolError if an election failed."""
    if arguments.has("admin.config"):
        print(
            "Option --admin.config has been deprecated and will be removed in a future version. Use --command-config "
            "instead."
        )
    check(arguments)
    kind: ElectionType = arguments["election-type"]
    partitions: list[TopicPartition] | None = None
    if arguments.has("topic"):
        partitions = [TopicPartition(arguments["topic"], arguments["partition"])]
    elif arguments.has("path-to-json-file"):
        partitions = read_partitions(arguments["path-to-json-file"])
    config = "admin.config" if arguments.has("admin.config") else "command-config"
    with Admin(admin_properties(arguments, config)) as admin:
        results = admin.elect_leaders(kind, partitions)
    elected = list(results.values)
    valid = [partition for partition, error in results.errors.items() if error.error is Error.ELECTION_NOT_NEEDED]
    failed = {partition: error for partition, error in results.errors.items() if partition not in valid}
    if elected:
        shown = ", ".join(map(str, elected))
        print(f"Successfully completed leader election ({kind.name}) for partitions {shown}")
    if valid:
        print(f"Valid replica already elected for partitions {', '.join(map(str, valid))}")
    for partition, error in failed.items():
        print(f"Error completing leader election ({kind.name}) for partition: {partition}: {java_text(error)}")
    if failed:
        raise ToolError(f"{len(failed)} replica(s) could not be elected")
    return 0


TOOL = Tool(
    name="leader-election",
    description=(
        "This tool attempts to elect a new leader for a set of topic partitions. The type of elections supported are "
        "preferred replicas and unclean replicas."
    ),
    run=run,
    options=(
        Option("bootstrap-server", SERVERS_HELP, "host:port"),
        Option(
            "admin.config",
            "(DEPRECATED) Use --command-config instead.",
            "config file",
            completes="file",
            is_deprecated=True,
        ),
        COMMAND_CONFIG,
        Option(
            "path-to-json-file",
            "The JSON file with the list of partition for which leader elections should be performed. This is an "
            'example format.\n{"partitions":\n\t[{"topic": "foo", "partition": 1},\n\t {"topic": "foobar", '
            '"partition": 2}]\n}\n'
            "Not allowed if --all-topic-partitions or --topic flags are specified.",
            "Path to JSON file",
            completes="file",
        ),
        Option(
            "topic",
            "Name of topic for which to perform an election. Not allowed if --path-to-json-file or "
            "--all-topic-partitions is specified.",
            "topic name",
        ),
        Option(
            "partition",
            "Partition id for which to perform an election. REQUIRED if --topic is specified.",
            "partition id",
            INTEGER,
        ),
        Option(
            "all-topic-partitions",
            "Perform election on all of the eligible topic partitions based on the type of election (see the "
            "--election-type flag). Not allowed if --topic or --path-to-json-file is specified.",
        ),
        Option(
            "election-type",
            'Type of election to attempt. "preferred": the first replica, if it is not the leader. "unclean": any '
            "live replica, if there is no leader; records may be lost. REQUIRED.",
            "election type",
            _ELECTION_TYPE,
            choices=("preferred", "unclean"),
        ),
    ),
    examples=(
        Example(
            "The preferred leaders everywhere",
            "--bootstrap-server localhost:9092 --election-type preferred --all-topic-partitions",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
