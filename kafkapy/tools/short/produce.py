"""The command `kafkapy produce`: writes records to a topic."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from kafkapy.client import Producer
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError, UsageError
from kafkapy.tools.progress import Progress
from kafkapy.tools.short.options import CONNECTION, connection_properties, output_of, output_option
from kafkapy.tools.short.output import Table, print_table
from kafkapy.tools.short.record_format import BASE64, HEX, TOPIC, VALUES_AS_LINES, Field, decode, parse_format
from kafkapy.tools.short.record_reader import ReadRecord, RecordReader
from kafkapy.tools.tool import run_tool, sentence

_ENCODINGS = ("text", HEX, BASE64)
_MOST_ERRORS = 5
# The number of records between two looks at the position in the input.
_LOOK_EVERY = 100


def check(arguments: Arguments) -> None:
    """Raises UsageError for flags that are missing or exclude each other."""
    arguments.exclude("file", "format")
    arguments.exclude("tombstone", "file", "format")
    if len(arguments.positionals) > 1 and (arguments.has("file") or arguments.has("format")):
        raise UsageError("Values on the command line exclude --file and --format")
    if arguments["tombstone"] and (len(arguments.positionals) > 1 or arguments["key"] is None):
        raise UsageError("--tombstone writes a null value for --key, and takes no other value")
    if arguments["encoding"] not in _ENCODINGS:
        raise UsageError(f"{arguments['encoding']} is not an encoding: {', '.join(_ENCODINGS)}")
    if not arguments.positionals and not _names_topics(arguments["format"]):
        raise UsageError("A topic is required")


def _names_topics(format_text: str | None) -> bool:
    parts = parse_format(format_text) if format_text is not None else []
    return any(isinstance(part, Field) and part.letter == TOPIC for part in parts)


def records_of(arguments: Arguments, stream: BinaryIO | None) -> Iterator[ReadRecord]:
    """Yields the records to write: a tombstone, the values of the command line or of files, or the records of `stream`.

    If `stream` is None, standard input is read. Raises UsageError for invalid flags, and ToolError for input that does
    not match the format.
    """
    values = arguments.positionals[1:]
    encoding = "" if arguments["encoding"] == "text" else arguments["encoding"]
    if arguments["tombstone"]:
        yield ReadRecord()
    elif values:
        for value in values:
            yield ReadRecord(value=_decoded(value, encoding))
    elif arguments.has("file"):
        for path in arguments.values("file"):
            yield ReadRecord(value=Path(path).read_bytes())
    else:
        null = arguments["null"].encode() if arguments["null"] is not None else None
        reader = RecordReader(arguments["format"] or VALUES_AS_LINES, null)
        source = sys.stdin.buffer if stream is None else stream
        yield from with_progress(reader.read(source), source)


def with_progress(records: Iterator[ReadRecord], source: BinaryIO) -> Iterator[ReadRecord]:
    """Yields the records that are read from `source`, and shows a progress bar if `source` is a regular file."""
    size = _size_of(source)
    if not size:
        yield from records
        return
    before = source.tell()
    with Progress(size - before, "bytes") as progress:
        for number, record in enumerate(records):
            if number % _LOOK_EVERY == 0:
                position = source.tell()
                progress.advance(position - before)
                before = position
            yield record


def _size_of(source: BinaryIO) -> int:
    """Returns the number of bytes of a regular file; 0 for anything else."""
    try:
        status = os.fstat(source.fileno())
    except (OSError, ValueError):
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def _decoded(text: str, encoding: str) -> bytes:
    try:
        return decode(text.encode(), encoding)
    except ValueError:
        raise UsageError(f"{text} is not {encoding}") from None


def headers_of(arguments: Arguments) -> tuple[tuple[str, bytes | None], ...]:
    """Returns the headers that the flags --header give. Raises UsageError for a flag that is not NAME=VALUE."""
    headers: list[tuple[str, bytes | None]] = []
    for word in arguments.values("header"):
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise UsageError(f"{word} is not a header: NAME=VALUE is required")
        headers.append((name, value.encode()))
    return tuple(headers)


class Writer:
    """Sends records and collects their results. Not thread-safe."""

    def __init__(self, producer: Producer, arguments: Arguments) -> None:
        """Stores the fields that the flags give to all records. Raises UsageError for an invalid key or header."""
        encoding = "" if arguments["encoding"] == "text" else arguments["encoding"]
        self._producer = producer
        self._topic: str | None = arguments.positionals[0] if arguments.positionals else None
        self._key = None if arguments["key"] is None else _decoded(arguments["key"], encoding)
        self._partition: int | None = arguments["partition"]
        self._headers = headers_of(arguments)
        self._has_output = arguments["output"] is not None
        self.rows: list[tuple[Any, ...]] = []
        self.failures: list[str] = []

    def write(self, record: ReadRecord) -> None:
        """Sends a record. If the record has no topic, key, partition or headers, those that the flags give are used.

        Raises ToolError for a partition that the topic does not have.
        """
        try:
            self._producer.send(
                record.topic or self._topic or "",
                record.value,
                self._key if record.key is None else record.key,
                partition=self._partition if record.partition is None else record.partition,
                timestamp=record.timestamp,
                headers=record.headers or self._headers or None,
                on_delivery=self._on_delivery,
            )
        except ValueError as error:
            raise ToolError(str(error)) from None

    def _on_delivery(self, metadata: Any, error: BaseException | None) -> None:
        if error is not None:
            self.failures.append(sentence(error))
        elif self._has_output:
            self.rows.append((metadata.topic, metadata.partition, metadata.offset, metadata.timestamp))


def run(arguments: Arguments, stream: BinaryIO | None = None) -> int:
    """Writes the records and returns 0, the exit code.

    Raises UsageError for an invalid command line, and ToolError if a record was not written.
    """
    check(arguments)
    output = output_of(arguments)
    records = records_of(arguments, stream)
    properties = {"client.id": "kafkapy-produce", **connection_properties(arguments)}
    properties["key.serializer"] = properties["value.serializer"] = "bytes"
    if arguments["compression"] is not None:
        properties["compression.type"] = arguments["compression"]
    if arguments["acks"] is not None:
        properties["acks"] = arguments["acks"]
    with Producer(properties) as producer:
        writer = Writer(producer, arguments)
        for record in records:
            writer.write(record)
    if output is not None:
        print_table(Table(("TOPIC", "PARTITION", "OFFSET", "TIMESTAMP"), writer.rows), output)
    if writer.failures:
        shown = "; ".join(dict.fromkeys(writer.failures[:_MOST_ERRORS]))
        raise ToolError(f"{len(writer.failures)} records were not written: {shown}")
    return 0


TOOL = Tool(
    name="produce",
    completes="topic",
    description="Writes records to a topic: kafkapy produce TOPIC [VALUE...] [flags]\n\n"
    "Without values, each line of standard input is a value.",
    run=run,
    options=(
        Option("key", "The key of the records.", "key", aliases=("k",)),
        Option("header", "A header of the records; may be repeated.", "name=value", aliases=("H",)),
        Option(
            "partition", "The partition; by default the partitioner chooses one.", "number", INTEGER, aliases=("p",)
        ),
        Option("file", "A file whose whole content is a value; may be repeated.", "path", completes="file"),
        Option(
            "format",
            "How standard input is divided into records: %k key, %v value, %K and %V their sizes, %h headers, "
            "%p partition, %T timestamp, %t topic, with encodings such as %k{hex}, %v{base64}, %V{big32}; \\n, \\t, "
            "\\xNN. The default is '%v\\n'.",
            "format",
            aliases=("f",),
        ),
        Option("null", "The text in standard input that represents a null key or value.", "text"),
        Option("tombstone", "Write a null value for --key."),
        Option(
            "encoding",
            "The encoding of --key and of values on the command line.",
            "text|hex|base64",
            default="text",
            choices=_ENCODINGS,
        ),
        Option(
            "compression",
            "The codec of the batches.",
            "codec",
            choices=("none", "gzip", "snappy", "lz4", "zstd"),
            aliases=("z",),
        ),
        Option("acks", "How many replicas confirm a record: 0, 1 or all.", "acks", choices=("0", "1", "all")),
        output_option("Print where the records were written."),
        *CONNECTION,
    ),
    examples=(
        Example("Two records", "greetings hello world"),
        Example("Keys and values from lines such as apple=3", "prices -f '%k=%v\\n'"),
        Example("A whole file with a key", "images --file logo.png -k logo"),
        Example("Binary keys and values, each after its size", "images -f '%K{big32}%k%V{big32}%v'"),
        Example("Where the record was written", "prices -k apple 3 -o json"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
