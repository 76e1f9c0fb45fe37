"""The command `kafkapy find`: prints the records of a topic that have a key."""

from __future__ import annotations

import sys
import time
from typing import BinaryIO

from kafkapy.client import Consumer, ConsumerRecord
from kafkapy.client.partitioner import default_partition
from kafkapy.tools.console_consumer import ConsoleConsumer
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import LONG, Arguments, Option, UsageError
from kafkapy.tools.short.consume import POLL_S, Ranges, consumer_properties, formatter_of, partitions_of
from kafkapy.tools.short.offset_range import POSITION_HELP, offsets_of, parse_position
from kafkapy.tools.short.options import CONNECTION, output_option
from kafkapy.tools.tool import run_tool, stops_by


def key_of(arguments: Arguments) -> bytes:
    """Returns the key to find: the command line's second word, which is in hexadecimal if --hex is given.

    Raises UsageError unless the command line has exactly a topic and a key.
    """
    if len(arguments.positionals) != 2:
        raise UsageError("A topic and a key are required")
    arguments.exclude("format", "output")
    text = arguments.positionals[1]
    if not arguments["hex"]:
        return text.encode()
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise UsageError(f"{text} is not hexadecimal") from None


def run(arguments: Arguments, output: BinaryIO | None = None) -> int:
    """Prints the records with the key to `output`, or to standard output if `output` is None; returns the exit code.

    The code is 128 plus the signal's number if a signal ended the command, 1 if there is no such record or an error of
    the consumer has ended the reading, otherwise 0.
    """
    key = key_of(arguments)
    topic = arguments.positionals[0]
    now_ms = time.time_ns() // 1_000_000
    start, stop = parse_position(arguments["from"], now_ms), parse_position(arguments["to"] or "end", now_ms)
    formatter = formatter_of(arguments)
    stream = sys.stdout.buffer if output is None else output
    found: list[ConsumerRecord] = []
    consumer = Consumer(consumer_properties(arguments))
    with stops_by(consumer.wakeup) as signals:
        try:
            partitions = partitions_of(consumer, [topic], [])
            if arguments["hashed"]:
                partitions = [partitions[default_partition(key, len(partitions))]]
            consumer.assign(partitions)
            ranges = Ranges(consumer, offsets_of(stop, consumer, partitions))
            for partition, offset in offsets_of(start, consumer, partitions).items():
                consumer.seek(partition, offset)

            def is_wanted(record: ConsumerRecord) -> bool:
                if record.key != key or not ranges.includes(record):
                    return False
                if found and arguments["last"]:
                    found.pop()
                if not found or arguments["last"]:
                    found.append(record)
                return not arguments["last"]

            console = ConsoleConsumer(
                consumer,
                formatter,
                stream,
                skips_errors=False,
                is_done=ranges.is_done,
                is_wanted=is_wanted,
                poll_s=POLL_S,
            )
            console.print_all(-1 if arguments["count"] is None else arguments["count"], None)
        finally:
            consumer.close()
    if arguments["last"] and found:
        stream.write(formatter.format(found[0]))
        stream.flush()
    if signals:
        return 128 + signals[0]
    return 0 if found and not console.has_failed else 1


TOOL = Tool(
    name="find",
    description="Prints the records of a topic that have a key: kafkapy find TOPIC KEY [flags]\n\n"
    "Reads the topic up to its present end. Ends with status 1 if no record has the key.",
    run=run,
    options=(
        Option("hashed", "Read only the partition that Kafka's default partitioner chooses for the key."),
        Option("last", "Print only the latest record that was read."),
        Option("from", f"Where to begin in each partition: {POSITION_HELP}.", "position", default="start"),
        Option("to", "Where to end in each partition, at its present end at the latest.", "position"),
        Option("hex", "The key is given as hexadecimal digits."),
        Option("count", "End after this many records.", "records", LONG, aliases=("n",)),
        Option("read-committed", "Leave out records of aborted and open transactions."),
        Option("format", "What to print of each record, as in `kafkapy consume`.", "format", aliases=("f",)),
        Option("null", "The text that is printed for a value that is null; by default none.", "text"),
        output_option("Print records with all fields: one JSON object per line, a table or YAML."),
        *CONNECTION,
    ),
    examples=(
        Example("All records of a customer", "orders customer-17 -o table"),
        Example("The latest one, reading one partition", "orders customer-17 --hashed --last"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
