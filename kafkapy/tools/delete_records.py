"""The tool `kafka-delete-records`: deletes the records of partitions before given offsets."""

from __future__ import annotations

from collections import Counter

from kafkapy.client.admin import Admin
from kafkapy.tools.bootstrap import COMMAND_CONFIG, JSON, SERVERS_HELP, admin_properties
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.java_names import java_text
from kafkapy.tools.json_output import print_json
from kafkapy.tools.option import Arguments, Option, ToolError
from kafkapy.tools.partition_file import field, read_json_object
from kafkapy.tools.tool import run_tool
from kafkapy.types import TopicPartition


def read_offsets(path: str) -> dict[TopicPartition, int]:
    """Reads a JSON file, and returns for each partition the offset before which its records are to be deleted.

    Raises ToolError for an invalid file.
    """
    content = read_json_object(path)
    version = content.get("version", 1)
    if version != 1:
        raise ToolError(f"Not supported version field value {version}")
    if not isinstance(content.get("partitions"), list):
        raise ToolError("Missing partitions field")
    entries = [
        (TopicPartition(field(each, "topic", str), field(each, "partition", int)), field(each, "offset", int))
        for each in content["partitions"]
    ]
    duplicates = [partition for partition, count in Counter(partition for partition, _ in entries).items() if count > 1]
    if duplicates:
        shown = ",".join(map(str, duplicates))
        raise ToolError(f"Offset json file contains duplicate topic partitions: {shown}")
    return dict(entries)


def run(arguments: Arguments) -> int:
    """Deletes the records, and prints the low watermark or the error of each partition; returns 0, the exit code."""
    arguments.require("bootstrap-server", "offset-json-file")
    offsets = read_offsets(arguments["offset-json-file"])
    with Admin(admin_properties(arguments)) as admin:
        if not arguments["json"]:
            print("Executing records delete operation")
        results = admin.delete_records(offsets)
    if arguments["json"]:
        print_json(
            [
                {
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "low_watermark": results.values.get(partition),
                    "error": None if partition not in results.errors else results.errors[partition].error.name,
                }
                for partition in offsets
            ]
        )
        return 0
    print("Records delete operation completed:")
    for partition in offsets:
        if partition in results.errors:
            print(f"partition: {partition}\terror: {java_text(results.errors[partition])}")
        else:
            print(f"partition: {partition}\tlow_watermark: {results[partition]}")
    return 0


TOOL = Tool(
    name="delete-records",
    description="This tool helps to delete records of the given partitions down to the specified offset.",
    run=run,
    options=(
        Option("bootstrap-server", SERVERS_HELP, "server(s) to use for bootstrapping"),
        Option(
            "offset-json-file",
            "REQUIRED: The JSON file with offset per partition. The format to use is:\n"
            '{"partitions":\n  [{"topic": "foo", "partition": 1, "offset": 1}],\n "version":1\n}',
            "Offset json file path",
            completes="file",
        ),
        COMMAND_CONFIG,
        JSON,
    ),
    examples=(
        Example(
            "Delete the records before the offsets of a file (-1 is the end)",
            "--bootstrap-server localhost:9092 --offset-json-file offsets.json",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
