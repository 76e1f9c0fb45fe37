"""The tool `kafka-get-offsets`: prints the offsets of partitions, at their ends or at a time."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

from kafkapy.client.admin import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    Admin,
)
from kafkapy.errors import ApiError
from kafkapy.tools.bootstrap import COMMAND_CONFIG, JSON, SERVERS_HELP, admin_properties
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.json_output import print_json
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError
from kafkapy.tools.tool import run_tool
from kafkapy.tools.topic_filter import topic_filter
from kafkapy.types import TopicPartition

TIMES = {
    "latest": LATEST,
    "earliest": EARLIEST,
    "max-timestamp": MAX_TIMESTAMP,
    "earliest-local": EARLIEST_LOCAL,
    "latest-tiered": LATEST_TIERED,
    "earliest-pending-upload": EARLIEST_PENDING_UPLOAD,
}
_RULE = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")
PartitionFilter = Callable[[TopicPartition], bool]


def parse_time(text: str) -> int:
    """Returns a time in ms since 1970, or the negative number of a name such as `latest`.

    Raises ToolError for another text.
    """
    if text in TIMES:
        return TIMES[text]
    try:
        return int(text)
    except ValueError:
        raise ToolError(
            f"Malformed time argument {text}. Please use -1 or latest / -2 or earliest / -3 or max-timestamp / -4 or "
            "earliest-local / -5 or latest-tiered / -6 or earliest-pending-upload, or a specified long format timestamp"
        ) from None


def by_rules(text: str) -> PartitionFilter:
    """Returns a filter of partitions by rules such as `topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3`.

    A partition passes if any of the rules matches. Raises ToolError for an invalid rule.
    """
    rules = [_rule(each) for each in text.split(",")]
    return lambda partition: any(rule(partition) for rule in rules)


def _rule(text: str) -> PartitionFilter:
    matched = _RULE.fullmatch(text)
    if matched is None:
        raise ToolError(f"Invalid rule specification: {text}")
    matches = topic_filter(matched[1]) if matched[1] else lambda name: True
    if matched[2]:
        lowest, end = int(matched[2]), int(matched[2]) + 1
    else:
        lowest, end = int(matched[3] or 0), int(matched[4] or 2**31 - 1)
    return lambda partition: matches(partition.topic) and lowest <= partition.partition < end


def by_topic_and_partitions(topic: str | None, partitions: str) -> PartitionFilter:
    """Returns a filter of partitions by an expression for the topic and a list of partition numbers.

    If `topic` is None, the filter matches all topics; if `partitions` is "", it matches all partition numbers. Raises
    ToolError for an invalid number.
    """
    matches = topic_filter(topic) if topic is not None else lambda name: True
    try:
        numbers = {int(each) for each in partitions.split(",") if each}
    except ValueError:
        raise ToolError(
            f"--partitions expects a comma separated list of numeric partition ids, but received: {partitions}"
        ) from None
    return lambda partition: matches(partition.topic) and (not numbers or partition.partition in numbers)


def run(arguments: Arguments) -> int:
    """Prints topic:partition:offset for each chosen partition; returns 0, the exit code."""
    arguments.require("bootstrap-server")
    try:
        print_offsets(arguments)
    except (ToolError, ValueError) as error:
        raise ToolError(f"Error occurred: {error}") from error
    return 0


def print_offsets(arguments: Arguments) -> None:
    """Prints the offsets. Raises ToolError or ValueError for errors of the user."""
    rules = arguments["topic-partitions"]
    if rules is not None and (arguments.has("topic") or arguments.has("partitions")):
        raise ToolError("--topic-partitions cannot be used with --topic or --partitions")
    chooses = (
        by_rules(rules)
        if rules is not None
        else by_topic_and_partitions(arguments["topic"], arguments["partitions"] or "")
    )
    time = parse_time(arguments["time"])
    limit = arguments["offsets"]
    if limit < 1:
        raise ToolError(f"--offsets expects a number of at least 1, but received: {limit}")
    with Admin(admin_properties(arguments)) as admin:
        partitions = _partitions(admin, chooses, excludes_internal=arguments.has("exclude-internal-topics"))
        if not partitions:
            raise ToolError("Could not match any topic-partitions with the specified filters")
        times = dict.fromkeys(partitions, time)
        found = admin.list_offsets(times) if limit == 1 else admin.list_segment_offsets(times, limit)
        shown: list[tuple[str, int, list[int]]] = []
        for partition in partitions:
            try:
                result = found[partition]
            except ApiError as error:
                what = f"Skip getting offsets for topic-partition {partition} due to error: {error.message}"
                print(what, file=sys.stderr)
                continue
            offsets = result if isinstance(result, list) else [result.offset]
            if limit > 1 or offsets[0] >= 0:
                shown.append((*partition, offsets))
        _print(shown, as_json=arguments["json"])


def _print(rows: list[tuple[str, int, list[int]]], *, as_json: bool) -> None:
    if as_json:
        found = [(topic, number, offset) for topic, number, offsets in rows for offset in offsets]
        print_json([{"topic": topic, "partition": number, "offset": offset} for topic, number, offset in found])
        return
    for topic, number, offsets in rows:
        print(f"{topic}:{number}:{','.join(map(str, offsets))}")


def _partitions(admin: Admin, chooses: PartitionFilter, *, excludes_internal: bool) -> list[TopicPartition]:
    names = admin.list_topics(include_internal=not excludes_internal)
    found = admin.describe_topics(names).check() if names else {}
    partitions = [TopicPartition(name, each.partition) for name in found for each in found[name].partitions]
    return sorted(filter(chooses, partitions), key=str)


TOOL = Tool(
    name="get-offsets",
    description="An interactive shell for getting topic-partition offsets.",
    run=run,
    error_prefix="Error occurred: ",
    options=(
        Option(
            "bootstrap-server",
            SERVERS_HELP,
            "HOST1:PORT1,...,HOST3:PORT3",
            aliases=("broker-list",),
        ),
        Option(
            "topic-partitions",
            "Comma separated list of topic-partition patterns to get the offsets for, with the format of "
            "'([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?'. The first group is an optional regex for the topic "
            "name, if omitted, it matches any topic name. The section after ':' is a number, a range 'NUMBER-NUMBER' "
            "(without its upper end), 'NUMBER-', '-NUMBER', or missing, which means all partitions.",
            "topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3",
        ),
        Option(
            "topic",
            "The topic to get the offsets for. It also accepts a regular expression. If not present, all authorized "
            "topics are queried. Cannot be used if --topic-partitions is present.",
            "topic",
        ),
        Option(
            "partitions",
            "Comma separated list of partition ids to get the offsets for. If not present, all partitions of the "
            "authorized topics are queried. Cannot be used if --topic-partitions is present.",
            "partition ids",
        ),
        Option(
            "time",
            "Print the first offset at this time or later; partitions without such a record are left out.",
            "<timestamp> / -1 or latest / -2 or earliest / -3 or max-timestamp / -4 or earliest-local / -5 or "
            "latest-tiered / -6 or earliest-pending-upload",
            default="latest",
        ),
        Option(
            "offsets",
            "Print up to this number of offsets of each partition, the greatest first: the end of the log and the "
            "first offset of each segment, as before Kafka 3.0. With a timestamp: of the segments that were last "
            "written before it. Brokers of Apache Kafka 4 do not support numbers above 1.",
            "count",
            type=INTEGER,
            default=1,
            is_ours=True,
        ),
        COMMAND_CONFIG,
        Option(
            "exclude-internal-topics",
            "By default, internal topics are included. If specified, internal topics are excluded.",
        ),
        JSON,
    ),
    examples=(
        Example("The end of each partition of a topic", "--bootstrap-server localhost:9092 --topic prices"),
        Example(
            "The beginning of two partitions",
            "--bootstrap-server localhost:9092 --topic-partitions prices:0-2 --time earliest",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
