"""The tool `kafka-simple-consumer-shell` of Apache Kafka 0.8 to 1.1: prints the records of one partition.

The old tool fetched from one replica. This one fetches from the leader, as every client does today.
"""

from __future__ import annotations

import sys
from typing import Any, BinaryIO

from kafkapy.client import Consumer, ConsumerRecord, TopicPartition
from kafkapy.tools.bootstrap import COMMAND_CONFIG, SERVERS_HELP, await_broker
from kafkapy.tools.console_consumer import ConsoleConsumer
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.message_formatter import FORMATTER_PROPERTIES, MessageFormatter, make_formatter
from kafkapy.tools.option import INTEGER, LONG, Arguments, Option, ToolError, UsageError, parse_key_values
from kafkapy.tools.short.consume import POLL_S, Ranges
from kafkapy.tools.tool import run_tool, stops_by

_LATEST, _EARLIEST = -1, -2
_SHELL_FORMATTER = "kafka.tools.DefaultMessageFormatter"


class _NextOffsetFormatter:
    """A formatter for --print-offsets: prints the next offset, which is the record's offset + 1, and then the
    record."""

    def __init__(self, formatter: MessageFormatter) -> None:
        self._formatter = formatter

    def configure(self, properties: Any) -> None:
        """Ignores the properties, because the formatter that prints the record has them already."""

    def format(self, record: ConsumerRecord) -> bytes:
        return b"next offset = %d\n%s" % (record.offset + 1, self._formatter.format(record))


def consumer_properties(arguments: Arguments) -> dict[str, Any]:
    """Returns the consumer's configuration: a file, overridden by the tool's own flags.

    Keys and values are read as bytes.
    """
    from kafkapy.config.properties import read_properties

    properties: dict[str, Any] = {}
    if arguments.has("command-config"):
        properties.update(read_properties(arguments["command-config"]))
    return {
        **properties,
        "bootstrap.servers": arguments["bootstrap-server"],
        "client.id": arguments["clientId"],
        "max.partition.fetch.bytes": str(arguments["fetchsize"]),
        "fetch.max.wait.ms": str(arguments["max-wait-ms"]),
        "auto.offset.reset": "earliest",
        "key.deserializer": "bytes",
        "value.deserializer": "bytes",
    }


def run(arguments: Arguments, output: BinaryIO | None = None) -> int:
    """Prints records to `output`, or to standard output if `output` is None; returns the exit code.

    The code is 128 plus the signal's number if a signal ended the tool, 1 after an error of the consumer, otherwise 0.
    """
    arguments.require("bootstrap-server", "topic")
    if arguments["offset"] < _EARLIEST:
        raise UsageError(f"Invalid starting offset: {arguments['offset']}")
    formatter = make_formatter(arguments["formatter"], parse_key_values(arguments.values("property")))
    properties = consumer_properties(arguments)
    await_broker(properties)
    partition = TopicPartition(arguments["topic"], arguments["partition"])
    consumer = Consumer(properties)
    with stops_by(consumer.wakeup) as signals:
        try:
            known = {each.partition for each in consumer.partitions_for(partition.topic)}
            if partition.partition not in known:
                raise ToolError(f"Error: partition {partition.partition} does not exist for topic {partition.topic}")
            consumer.assign([partition])
            ends = consumer.end_offsets([partition]) if arguments.has("no-wait-at-logend") else {}
            consumer.seek(partition, start_offset(consumer, partition, arguments["offset"]))
            ranges = Ranges(consumer, ends)
            console = ConsoleConsumer(
                consumer,
                _NextOffsetFormatter(formatter) if arguments.has("print-offsets") else formatter,
                sys.stdout.buffer if output is None else output,
                skips_errors=arguments["skip-message-on-error"],
                is_done=ranges.is_done,
                is_wanted=ranges.includes,
                poll_s=POLL_S,
            )
            console.print_all(arguments["max-messages"], None)
        finally:
            consumer.close()
    if signals:
        return 128 + signals[0]
    return 1 if console.has_failed else 0


def start_offset(consumer: Consumer, partition: TopicPartition, offset: int) -> int:
    """Returns the start offset for `offset`, the value of --offset: -1 is the partition's end, -2 its start."""
    if offset == _LATEST:
        return consumer.end_offsets([partition])[partition]
    return consumer.beginning_offsets([partition])[partition] if offset == _EARLIEST else offset


TOOL = Tool(
    name="simple-consumer-shell",
    description="A low-level tool for fetching data directly from a particular partition. It is a tool of Apache Kafka "
    "0.8 to 1.1; console-consumer --partition replaces it.",
    run=run,
    options=(
        Option(
            "bootstrap-server",
            SERVERS_HELP,
            "hostname:port,...,hostname:port",
            aliases=("broker-list",),
        ),
        COMMAND_CONFIG,
        Option("topic", "REQUIRED: The topic to consume from.", "topic"),
        Option("partition", "The partition to consume from.", "partition", INTEGER, default=0),
        Option(
            "replica",
            "The replica id to consume from. The tool always reads from the leader.",
            "replica id",
            INTEGER,
            default=-1,
        ),
        Option(
            "offset",
            "The offset id to consume from, default to -2 which means from beginning; while value -1 means from end.",
            "consume offset",
            LONG,
            default=_EARLIEST,
        ),
        Option("clientId", "The ID of this client.", "clientId", default="SimpleConsumerShell"),
        Option("fetchsize", "The fetch size of each request.", "fetchsize", INTEGER, default=1 << 20),
        Option(
            "formatter",
            "The name of a class to use for formatting kafka messages for display.",
            "class",
            default=_SHELL_FORMATTER,
        ),
        Option(
            "property", "A property of the formatter, as key=value; may be repeated:\n" + FORMATTER_PROPERTIES, "prop"
        ),
        Option("print-offsets", "Print the offsets returned by the iterator."),
        Option("max-wait-ms", "The max amount of time each fetch request waits.", "ms", INTEGER, default=1000),
        Option("max-messages", "The number of messages to consume.", "num-messages", INTEGER, default=2147483647),
        Option("skip-message-on-error", "If there is an error when processing a message, skip it instead of halt."),
        Option("no-wait-at-logend", "If set, when the simple consumer reaches the end of the Log, it will stop."),
    ),
    examples=(
        Example(
            "All records of a partition, with the offset after each",
            "--broker-list localhost:9092 --topic prices --partition 1 --no-wait-at-logend --print-offsets",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
