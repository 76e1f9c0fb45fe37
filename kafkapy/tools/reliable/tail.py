"""The service `kafkapy tail`: writes the lines of growing files to a topic."""

from __future__ import annotations

from kafkapy.client.reliable.file_tail import FileTail
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import Arguments, Option, UsageError
from kafkapy.tools.reliable.service import print_counts, run_until_signal, service_properties
from kafkapy.tools.short.options import CONNECTION
from kafkapy.tools.tool import run_tool


def run(arguments: Arguments) -> int:
    """Follows files until a signal arrives; returns 0, the exit code."""
    arguments.require("topic")
    if not arguments.positionals:
        raise UsageError("A file is required")
    key: str | None = arguments["key"]
    with FileTail(
        arguments.positionals,
        arguments["topic"],
        service_properties(arguments),
        name=arguments["name"],
        key=None if key is None else key.encode(),
        begins_at_end=arguments["new-only"],
    ) as tail:
        try:
            return run_until_signal("tail", tail.run, tail.stop)
        finally:
            print_counts(tail.counts)


TOOL = Tool(
    name="tail",
    description="Writes the lines of growing files to a topic, each exactly once: kafkapy tail FILE... -t TOPIC\n\n"
    "Survives rotation (app.log becomes app.log.1), truncation, and its own end: the positions are stored in the "
    "cluster, in the transactions that write the lines.",
    run=run,
    options=(
        Option("topic", "The topic to write to.", "topic", aliases=("t",)),
        Option("key", "The key of all records; by default none.", "text"),
        Option(
            "name",
            "A name that no other such program on this host has for the same topic; by default the topic.",
            "name",
        ),
        Option("new-only", "Begin at the present end of files that were not read before."),
        *CONNECTION,
    ),
    examples=(
        Example("One file", "/var/log/app.log -t app-logs -b localhost:9092"),
        Example("All logs of a folder, also later ones", "'/var/log/app/*.log' -t app-logs --name app"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
