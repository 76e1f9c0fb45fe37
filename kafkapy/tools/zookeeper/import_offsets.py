"""The program `kafka.tools.ImportZkOffsets` of Apache Kafka 0.8 to 0.10: sets offsets in ZooKeeper from a file."""

from __future__ import annotations

import re
from pathlib import Path

from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import Arguments, Option, ToolError
from kafkapy.tools.tool import run_tool
from kafkapy.tools.zookeeper.brokers import connected
from kafkapy.tools.zookeeper.errors import ZooKeeperRequestError
from kafkapy.tools.zookeeper.export_offsets import ZKCONNECT
from kafkapy.tools.zookeeper.old_groups import CONSUMERS_PATH

_LINE = re.compile(rf"({CONSUMERS_PATH}/[^/]+/offsets/[^/]+/\d+):(\d+)")


def run(arguments: Arguments) -> None:
    """Sets the offsets in the file of --input-file in ZooKeeper.

    Raises OSError if the file cannot be read, and ToolError if ZooKeeper fails. A malformed line also raises ToolError,
    before any offset is set.
    """
    arguments.require("input-file")
    offsets = read_offsets(Path(arguments["input-file"]))
    client = connected(arguments["zkconnect"])
    try:
        for path, data in offsets.items():
            if client.exists(path) is None:
                client.ensure(path, data)
            else:
                client.set(path, data)
    except ZooKeeperRequestError as error:
        raise ToolError(str(error)) from None
    finally:
        client.close()


def read_offsets(file: Path) -> dict[str, bytes]:
    """Returns the data of the nodes to write, by the path of the node. Each line of the file has one path and its
    offset.

    Raises ToolError for a line that is not `/consumers/GROUP/offsets/TOPIC/PARTITION:OFFSET`.
    """
    offsets: dict[str, bytes] = {}
    for number, line in enumerate(file.read_text().splitlines(), 1):
        match = _LINE.fullmatch(line.strip())
        if match is None:
            form = f"{CONSUMERS_PATH}/GROUP/offsets/TOPIC/PARTITION:OFFSET"
            raise ToolError(f"{file}, line {number}: expected {form}, not {line!r}")
        offsets[match[1]] = match[2].encode()
    return offsets


TOOL = Tool(
    name="import-zk-offsets",
    description="Sets the offsets of consumers that use ZooKeeper, from a file that export-zk-offsets has written. The "
    "consumers should be stopped. It is the program kafka.tools.ImportZkOffsets of Apache Kafka 0.8 to 0.10.",
    run=run,
    options=(ZKCONNECT, Option("input-file", "REQUIRED: The file to read.", "file", completes="file")),
    examples=(Example("The offsets of a file", "--zkconnect localhost:2181 --input-file offsets.txt"),),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
