"""The program `kafka.tools.ExportZkOffsets` of Apache Kafka 0.8 to 0.10: writes offsets in ZooKeeper to a file.

The file has a line for each offset: `/consumers/GROUP/offsets/TOPIC/PARTITION:OFFSET`.
"""

from __future__ import annotations

from pathlib import Path

from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import Arguments, Option, ToolError
from kafkapy.tools.tool import run_tool
from kafkapy.tools.zookeeper.brokers import connected
from kafkapy.tools.zookeeper.errors import ZooKeeperRequestError
from kafkapy.tools.zookeeper.old_groups import CONSUMERS_PATH, OldGroups

ZKCONNECT = Option("zkconnect", "The address of ZooKeeper.", "hosts", default="localhost:2181")


def run(arguments: Arguments) -> None:
    """Writes the offsets of groups in ZooKeeper to the file of --output-file, a line for each partition.

    Raises ToolError if a group does not exist or ZooKeeper fails, and OSError if the file cannot be written.
    """
    arguments.require("output-file")
    client = connected(arguments["zkconnect"])
    try:
        groups = OldGroups(client)
        names = arguments.values("group") or groups.names()
        missing = next((name for name in names if not groups.exists(name)), None)
        if missing is not None:
            raise ToolError(f"The group {missing} does not exist below {CONSUMERS_PATH}.")
        lines = [
            f"{CONSUMERS_PATH}/{name}/offsets/{topic}/{partition}:{offset}\n"
            for name in names
            for topic, partition, offset in groups.offsets(name)
        ]
    except ZooKeeperRequestError as error:
        raise ToolError(str(error)) from None
    finally:
        client.close()
    Path(arguments["output-file"]).write_text("".join(lines))


TOOL = Tool(
    name="export-zk-offsets",
    description="Writes the offsets of consumers that use ZooKeeper to a file. It is the program "
    "kafka.tools.ExportZkOffsets of Apache Kafka 0.8 to 0.10.",
    run=run,
    options=(
        ZKCONNECT,
        Option("group", "The group, or several separated by commas; by default all.", "group", separator=","),
        Option("output-file", "REQUIRED: The file to write.", "file", completes="file"),
    ),
    examples=(Example("All groups", "--zkconnect localhost:2181 --output-file offsets.txt"),),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
