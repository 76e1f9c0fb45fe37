"""The command `kafkapy consume`: prints the records of topics."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, BinaryIO

from kafkapy.client import Consumer, ConsumerRecord, TopicPartition
from kafkapy.tools.console_consumer import ConsoleConsumer
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.message_formatter import JsonFormatter, MessageFormatter
from kafkapy.tools.option import LONG, Arguments, Option, ToolError, UsageError
from kafkapy.tools.progress import Progress
from kafkapy.tools.short.offset_range import (
    POSITION_HELP,
    Position,
    offsets_of,
    parse_partition_numbers,
    parse_position,
)
from kafkapy.tools.short.options import CONNECTION, connection_properties, output_of, output_option
from kafkapy.tools.short.output import visible
from kafkapy.tools.short.record_format import VALUES_AS_LINES, RecordFormatter, iso_time
from kafkapy.tools.short.yaml_text import yaml_text
from kafkapy.tools.terminal import BOLD, has_colours, is_terminal, painted
from kafkapy.tools.tool import run_tool, stops_by

_COLUMNS = ("PARTITION", "OFFSET", "TIME", "KEY", "VALUE")
# Polls are short, because markers of transactions advance the position without a record that would end a poll.
POLL_S = 0.2
# Widths of the columns of records, which are printed before the later records are known.
_WIDTHS = (9, 10, 24, 16, 0)


class YamlFormatter(JsonFormatter):
    """A formatter that prints records as a YAML list, each with the fields of the JSON format."""

    def format(self, record: ConsumerRecord) -> bytes:
        return yaml_text([json.loads(super().format(record))]).encode()


class TableFormatter:
    """A formatter of records as the lines of a table, with the names of the columns before the first record."""

    def __init__(self, *, has_colours: bool) -> None:
        self._has_colours = has_colours
        self._has_begun = False

    def configure(self, properties: Mapping[str, str]) -> None:
        """Ignores the properties, because this formatter has none."""

    def format(self, record: ConsumerRecord) -> bytes:
        """Returns the record as a line of the table; the columns' names precede the line of the first record."""
        line = self._line((str(record.partition), str(record.offset), iso_time(record.timestamp), *_contents(record)))
        if self._has_begun:
            return f"{line}\n".encode()
        self._has_begun = True
        names = self._line(_COLUMNS)
        return f"{painted(names, BOLD) if self._has_colours else names}\n{line}\n".encode()

    def _line(self, cells: Sequence[str]) -> str:
        padded = (
            f"{cell:>{width}}" if index < 2 else f"{cell:<{width}}"
            for index, (cell, width) in enumerate(zip(cells, _WIDTHS, strict=True))
        )
        return "  ".join(padded).rstrip()


def _contents(record: ConsumerRecord) -> Iterator[str]:
    """Yields key and value as readable text: bytes that are not UTF-8 as \\xNN, and null as "-"."""
    for content in (record.key, record.value):
        yield "-" if content is None else visible(content.decode("utf-8", "backslashreplace"))


class Ranges:
    """The ranges of offsets that are read, one for each partition. Not thread-safe.

    If the records are not printed on a terminal, a progress bar on standard error shows how far the ranges are read;
    `close` erases the bar.
    """

    def __init__(self, consumer: Consumer, ends: Mapping[TopicPartition, int]) -> None:
        """`ends` has the exclusive end of each range; if it is empty, all partitions are read without end."""
        self._consumer = consumer
        self._ends = dict(ends)
        self._unread = set(ends)
        self._progress: Progress | None = None
        if ends and not is_terminal():
            self._position_sum = self._sum_of_positions()
            self._progress = Progress(sum(ends.values()) - self._position_sum, "offsets")

    def close(self) -> None:
        """Erases the progress bar."""
        if self._progress is not None:
            self._progress.clear()

    def _sum_of_positions(self) -> int:
        return sum(min(self._consumer.position(each), end) for each, end in self._ends.items())

    def is_done(self) -> bool:
        """Returns whether all ranges have been read, and pauses the partitions whose range has been read.

        Also advances the progress bar. If there are no ranges, the partitions are read without end, and the result is
        False.
        """
        if not self._ends:
            return False
        if self._progress is not None:
            before, self._position_sum = self._position_sum, self._sum_of_positions()
            self._progress.advance(self._position_sum - before)
        done = [each for each in self._unread if self._consumer.position(each) >= self._ends[each]]
        if done:
            self._consumer.pause(done)
            self._unread.difference_update(done)
        return not self._unread

    def includes(self, record: ConsumerRecord) -> bool:
        """Returns whether a record is to be printed.

        A record is printed if its offset is before the end of its partition's range, or if the partition is read
        without end.
        """
        end = self._ends.get(TopicPartition(record.topic, record.partition))
        return end is None or record.offset < end


def check(arguments: Arguments) -> None:
    """Raises UsageError for flags that are missing or exclude each other."""
    if not arguments.positionals:
        raise UsageError("A topic is required")
    for name in ("from", "to", "exit", "partitions"):
        arguments.exclude("group", name)
    arguments.exclude("to", "exit")
    arguments.exclude("format", "output")
    if arguments["count"] is not None and arguments["count"] < 0:
        raise UsageError(f"{arguments['count']} is not a number of records")


def formatter_of(arguments: Arguments) -> MessageFormatter:
    """Returns the formatter that --output or --format selects; by default it prints only values, one per line.

    Raises UsageError for an unknown output format or an invalid format string.
    """
    output = output_of(arguments)
    if output == "json":
        return JsonFormatter()
    if output == "yaml":
        return YamlFormatter()
    if output == "table":
        return TableFormatter(has_colours=has_colours())
    return RecordFormatter(arguments["format"] or VALUES_AS_LINES, (arguments["null"] or "").encode())


def consumer_properties(arguments: Arguments) -> dict[str, Any]:
    """Returns the consumer's configuration. Raises ToolError if no broker can be reached."""
    properties = connection_properties(arguments)
    properties.setdefault("client.id", "kafkapy-consume")
    properties.setdefault("auto.offset.reset", "earliest")
    properties["key.deserializer"] = properties["value.deserializer"] = "bytes"
    properties["allow.auto.create.topics"] = "false"
    if arguments.declares("group") and arguments["group"] is not None:
        properties["group.id"] = arguments["group"]
    if arguments["read-committed"]:
        properties["isolation.level"] = "read_committed"
    return properties


def partitions_of(consumer: Consumer, topics: Sequence[str], numbers: Sequence[int]) -> list[TopicPartition]:
    """Returns the partitions of `topics` that have one of `numbers`, or all partitions if `numbers` is empty.

    Raises ToolError for a topic, or a number of a partition, that does not exist.
    """
    found: list[TopicPartition] = []
    for topic in topics:
        known = {each.partition for each in consumer.partitions_for(topic)}
        if not known:
            raise ToolError(f"there is no topic {topic}")
        missing = [number for number in numbers if number not in known]
        if missing:
            raise ToolError(f"topic {topic} has no partition {missing[0]}; number of partitions: {len(known)}")
        found += [TopicPartition(topic, number) for number in sorted(numbers or known)]
    return found


def begin(
    consumer: Consumer, arguments: Arguments, start: Position, stop: Position | None
) -> dict[TopicPartition, int]:
    """Subscribes the consumer if --group is given; otherwise assigns it the partitions, beginning at `start`.

    Returns the exclusive end of each partition that `stop` names; {} with --group, or if `stop` is None.
    """
    if arguments["group"] is not None:
        consumer.subscribe(list(arguments.positionals))
        return {}
    numbers = parse_partition_numbers(arguments["partitions"]) if arguments["partitions"] is not None else []
    partitions = partitions_of(consumer, arguments.positionals, numbers)
    consumer.assign(partitions)
    ends = offsets_of(stop, consumer, partitions) if stop is not None else {}
    for partition, offset in offsets_of(start, consumer, partitions).items():
        consumer.seek(partition, offset)
    return ends


def run(arguments: Arguments, output: BinaryIO | None = None) -> int:
    """Prints records to `output`, or to standard output if `output` is None; returns the exit code.

    The code is 128 plus the signal's number if a signal ended the command, 1 after an error of the consumer, otherwise
    0.
    """
    check(arguments)
    now_ms = time.time_ns() // 1_000_000
    start = parse_position(arguments["from"], now_ms)
    stop_text = "end" if arguments["exit"] else arguments["to"]
    stop = parse_position(stop_text, now_ms) if stop_text is not None else None
    formatter = formatter_of(arguments)
    consumer = Consumer(consumer_properties(arguments))
    stream = sys.stdout.buffer if output is None else output
    with stops_by(consumer.wakeup) as signals, ExitStack() as stack:
        try:
            ranges = Ranges(consumer, begin(consumer, arguments, start, stop))
            stack.callback(ranges.close)
            console = ConsoleConsumer(
                consumer,
                formatter,
                stream,
                skips_errors=False,
                is_done=ranges.is_done,
                is_wanted=ranges.includes,
                poll_s=POLL_S,
            )
            console.print_all(-1 if arguments["count"] is None else arguments["count"], None)
        finally:
            consumer.close()
    if signals:
        return 128 + signals[0]
    return 1 if console.has_failed else 0


TOOL = Tool(
    name="consume",
    completes="topic",
    description="Prints the records of topics: kafkapy consume TOPIC... [flags]\n\n"
    "Without flags, prints the values of all records from the start, one per line, then waits for new ones.",
    run=run,
    options=(
        Option(
            "from", f"The position at which to begin in each partition: {POSITION_HELP}.", "position", default="start"
        ),
        Option(
            "to",
            "The position before which to end in each partition; its present end if that comes first.",
            "position",
        ),
        Option("exit", "End at the present end of each partition, as --to end does.", aliases=("e",)),
        Option("count", "End after this many records.", "records", LONG, aliases=("n",)),
        Option("partitions", "The partitions to read, such as 0,2-4; by default all.", "numbers", aliases=("p",)),
        Option(
            "group",
            "Read as a member of this group, and commit the offsets of printed records.",
            "group",
            aliases=("g",),
        ),
        Option("read-committed", "Leave out records of aborted and open transactions."),
        Option(
            "format",
            "What to print of each record: %t topic, %p partition, %o offset, %T timestamp, %k key, %v value, "
            "%K and %V their sizes, %h headers, with encodings such as %T{iso}, %k{hex}, %v{base64}, %V{big32}; \\n, "
            "\\t, \\xNN. The default is '%v\\n'.",
            "format",
            aliases=("f",),
        ),
        Option("null", "The text that is printed for a null key or value; by default none.", "text"),
        output_option("Print records with all fields: one JSON object per line, a table or YAML."),
        *CONNECTION,
    ),
    examples=(
        Example("The last ten records of each partition, then new ones", "prices --from -10"),
        Example("The records of the last hour, with key and time", "prices --from @-1h -e -f '%T{iso} %k %v\\n'"),
        Example("One JSON object per line", "prices -e -o json"),
        Example("Binary records, each with its sizes", "images -e -f '%K{big32}%k%V{big32}%v'"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
