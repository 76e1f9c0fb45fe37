"""The service `kafkapy mirror`: copies topics from one cluster to another, with MirrorMaker 1's flags."""

from __future__ import annotations

import re
from typing import Any

from kafkapy.client.reliable.mirror import Mirror
from kafkapy.config.properties import read_properties
from kafkapy.tools.bootstrap import await_broker
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError, UsageError
from kafkapy.tools.reliable.service import print_counts, run_until_signal
from kafkapy.tools.tool import run_tool

_IGNORED = "Accepted for MirrorMaker 1's command lines; has no effect here."


def pattern(text: str | None) -> str | None:
    """Returns the regular expression for a list of topics in MirrorMaker 1's syntax; None if `text` is None.

    A comma in `text` separates alternatives. Raises UsageError if the result is not a regular expression.
    """
    if text is None:
        return None
    joined = "|".join(part.strip() for part in text.split(",") if part.strip())
    try:
        re.compile(joined)
    except re.error as error:
        raise UsageError(f"{text} is not a regular expression: {error}") from error
    return joined


def cluster_properties(path: str) -> dict[str, Any]:
    """Returns the client properties in a file, without those that name serializers, deserializers or a partitioner.

    Raises ToolError if the file has no bootstrap.servers, or if none of them can be reached.
    """
    properties: dict[str, Any] = dict(read_properties(path))
    if not properties.get("bootstrap.servers"):
        raise ToolError(f"{path} has no bootstrap.servers")
    for name in ("key.deserializer", "value.deserializer", "key.serializer", "value.serializer", "partitioner.class"):
        properties.pop(name, None)
    await_broker(properties)
    return properties


def run(arguments: Arguments) -> int:
    """Mirrors until a signal arrives; returns 0, the exit code."""
    arguments.require("consumer.config", "producer.config")
    arguments.exclude("whitelist", "include")
    include = pattern(arguments["include"] or arguments["whitelist"])
    if include is None:
        raise UsageError("Exactly one of whitelist or include is required.")
    if "{topic}" not in arguments["rename"]:
        raise UsageError(f"{arguments['rename']} does not contain {{topic}}")
    with Mirror(
        cluster_properties(arguments["consumer.config"]),
        cluster_properties(arguments["producer.config"]),
        include,
        exclude=pattern(arguments["exclude"] or arguments["blacklist"]),
        rename=arguments["rename"],
        source_name=arguments["source-name"],
        target_name=arguments["target-name"],
        groups=pattern(arguments["groups"]),
    ) as mirror:
        try:
            return run_until_signal("mirror", mirror.run, mirror.stop)
        finally:
            print_counts(mirror.counts)


TOOL = Tool(
    name="mirror",
    description="Copies topics from one cluster to another, each record exactly once; translates groups' offsets.\n\n"
    "It has the flags of Apache Kafka's former kafka-mirror-maker.sh. docs/mirroring.md describes topologies.",
    run=run,
    kafka_name="MirrorMaker",
    options=(
        Option(
            "consumer.config", "The configuration of the source cluster's clients.", "config file", completes="file"
        ),
        Option(
            "producer.config", "The configuration of the target cluster's clients.", "config file", completes="file"
        ),
        Option(
            "include", "The regular expression of the topics to copy; a comma separates alternatives.", "Java regex"
        ),
        Option("whitelist", "The former name of --include.", "Java regex"),
        Option("exclude", "The regular expression of topics that are not copied.", "regex"),
        Option("blacklist", "The former name of --exclude.", "regex"),
        Option("rename", "The name of a copy, with {source} and {topic}.", "name", default="{topic}", is_ours=True),
        Option("source-name", "The name of the source cluster.", "name", default="source", is_ours=True),
        Option(
            "target-name",
            "The name of the target cluster: copies get a header with the clusters that they have come through, and "
            "records that have come through the target are not copied. Required if two clusters mirror each other "
            "under the same names of topics.",
            "name",
            is_ours=True,
        ),
        Option(
            "groups",
            "The regular expression of groups whose offsets are translated and committed at the target.",
            "regex",
            is_ours=True,
        ),
        Option("num.streams", _IGNORED, "Number of threads", INTEGER),
        Option("new.consumer", _IGNORED),
        Option("abort.on.send.failure", _IGNORED, "Stop the entire mirror maker when a send failure occurs"),
        Option("offset.commit.interval.ms", _IGNORED, "offset commit interval in millisecond", INTEGER),
    ),
    not_here=(
        ("message.handler", "a Java class"),
        ("message.handler.args", "the arguments of a Java class"),
        ("consumer.rebalance.listener", "a Java class"),
        ("rebalance.listener.args", "the arguments of a Java class"),
    ),
    examples=(
        Example(
            "Copy a topic, as with MirrorMaker 1",
            "--consumer.config consumer.properties --producer.config producer.properties --whitelist acls-foo",
        ),
        Example(
            "Copy everything under the source's name, with the offsets of all groups",
            "--consumer.config a.properties --producer.config b.properties --include '.*' --source-name a "
            "--rename '{source}.{topic}' --groups '.*'",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
