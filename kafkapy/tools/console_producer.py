"""The tool `kafka-console-producer`: sends lines of standard input as records."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

from kafkapy.client import Producer
from kafkapy.config.properties import read_properties
from kafkapy.tools.bootstrap import BOOTSTRAP_SERVER, await_broker, check_servers
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.line_reader import READER_PROPERTIES, InputRecord, LineReader, load_reader
from kafkapy.tools.option import INTEGER, LONG, Arguments, Option, UsageError, parse_key_values
from kafkapy.tools.tool import run_tool, script_name

log = logging.getLogger("kafkapy.tools.console_producer")

_DEPRECATED = "(DEPRECATED) Use {} instead."


def merge(properties: dict[str, Any], key: str, arguments: Arguments, name: str) -> None:
    """Sets `key` in `properties` to the value of the flag `name`.

    If the user did not give the flag, sets `key` to the default of the flag, unless `key` is already set.
    """
    if arguments.has(name) or key not in properties:
        properties[key] = arguments[name]


def producer_properties(arguments: Arguments) -> dict[str, Any]:
    """Returns the producer's configuration from the file, the properties and the flags that the user gave.

    Properties override the file, and flags override both. compression.type always has the value of --compression-codec,
    even if the file or a property sets it. The default of --compression-codec is "none", as in Apache Kafka's tool.
    """
    properties: dict[str, Any] = {}
    config = "producer.config" if arguments.has("producer.config") else "command-config"
    if arguments.has(config):
        properties.update(read_properties(arguments[config]))
    words = arguments.values("producer-property") or arguments.values("command-property")
    properties.update(parse_key_values(words))
    properties["bootstrap.servers"] = arguments["bootstrap-server"]
    properties["compression.type"] = codec_of(arguments)
    properties.setdefault("client.id", "console-producer")
    for key in ("key.serializer", "value.serializer"):
        properties[key] = "bytes"
    for name, key in KEYS_OF_FLAGS.items():
        merge(properties, key, arguments, name)
    if arguments.has("max-partition-memory-bytes"):
        properties["batch.size"] = arguments["max-partition-memory-bytes"]
    return {key: str(value) for key, value in properties.items()}


KEYS_OF_FLAGS = {
    "timeout": "linger.ms",
    "request-required-acks": "acks",
    "request-timeout-ms": "request.timeout.ms",
    "message-send-max-retries": "retries",
    "retry-backoff-ms": "retry.backoff.ms",
    "socket-buffer-size": "send.buffer.bytes",
    "max-memory-bytes": "buffer.memory",
    "batch-size": "batch.size",
    "metadata-expiry-ms": "metadata.max.age.ms",
    "max-block-ms": "max.block.ms",
}


def codec_of(arguments: Arguments) -> str:
    """Returns the value of --compression-codec: "gzip" if the flag has no value, "none" without the flag."""
    if not arguments.has("compression-codec"):
        return "none"
    return arguments["compression-codec"] or "gzip"


def reader_properties(arguments: Arguments) -> dict[str, str]:
    """Returns the line reader's properties: the topic, and the properties in the reader's file and in the flags."""
    properties: dict[str, str] = {}
    if arguments.has("reader-config"):
        properties.update(read_properties(arguments["reader-config"]))
    properties["topic"] = arguments["topic"]
    words = arguments.values("property") or arguments.values("reader-property")
    properties.update(parse_key_values(words))
    return properties


def check(arguments: Arguments) -> None:
    """Raises UsageError for flags that exclude each other or are missing. Prints warnings of deprecated flags."""
    arguments.require("topic")
    for old, new in (("producer-property", "command-property"), ("property", "reader-property")):
        if arguments.has(old) and arguments.has(new):
            raise UsageError(f"Options --{new} and --{old} cannot be specified together.")
    if arguments.has("producer.config") and arguments.has("command-config"):
        raise UsageError("Options --command-config and --producer.config cannot be specified together.")
    for old, new in (
        ("producer-property", "command-property"),
        ("producer.config", "command-config"),
        ("property", "reader-property"),
    ):
        if arguments.has(old):
            print(f"Warning: --{old} is deprecated and will be removed in a future version. Use --{new} instead.")
    if arguments.has("max-partition-memory-bytes"):
        print(
            "Warning: --max-partition-memory-bytes is deprecated and will be removed in Apache Kafka 5.0. "
            "Use --batch-size instead."
        )
    check_servers(arguments["bootstrap-server"] or "")


class ConsoleProducer:
    """Sends the records of a reader; logs delivery failures and counts them in `failures`. Not thread-safe."""

    def __init__(self, producer: Producer, *, is_synchronous: bool) -> None:
        self._producer = producer
        self._is_synchronous = is_synchronous
        self.failures = 0

    def send_all(self, records: Iterator[InputRecord]) -> None:
        """Sends records until the input ends.

        If `--sync` is given, waits until each record is delivered, and raises ApiError or TimeoutError for the first
        failure.
        """
        for record in records:
            if self._is_synchronous:
                self._send(record).result()
            else:
                self._send(record, self._on_delivery(record))

    def _send(self, record: InputRecord, on_delivery: Any = None) -> Any:
        return self._producer.send(
            record.topic, record.value, record.key, headers=record.headers or None, on_delivery=on_delivery
        )

    def _on_delivery(self, record: InputRecord) -> Any:
        def on_delivery(metadata: Any, error: BaseException | None) -> None:
            if error is not None:
                self.failures += 1
                key = "null" if record.key is None else f"{len(record.key)} bytes"
                value = "null" if record.value is None else f"{len(record.value)} bytes"
                log.error(
                    "Error when sending message to topic %s with key: %s, value: %s with error: %s",
                    *(record.topic, key, value, error),
                )

        return on_delivery


def run(arguments: Arguments, source: BinaryIO | None = None) -> int:
    """Sends the lines of `source`, or of standard input if `source` is None; returns the exit code.

    The code is 1 if a record was not delivered, otherwise 0. If the program was started by the name of Apache Kafka's
    script, the code is always 0, because that script exits with 0 even if records were not delivered.
    """
    check(arguments)
    reader: LineReader = load_reader(arguments["line-reader"])
    reader.configure(reader_properties(arguments))
    properties = producer_properties(arguments)
    await_broker(properties)
    stream = sys.stdin.buffer if source is None else source
    reader.shows_prompt = stream.isatty() and sys.stdout.isatty()
    producer = Producer(properties)
    console = ConsoleProducer(producer, is_synchronous=arguments["sync"])
    try:
        console.send_all(reader.read_records(stream))
    finally:
        producer.close()
    # Kafka's script exits with 0 even if records were not delivered; under our own name the exit code is 1.
    return 1 if console.failures and not script_name() else 0


OPTIONS = (
    Option("topic", "REQUIRED: The topic to write to.", "topic"),
    BOOTSTRAP_SERVER,
    Option("sync", "Wait for the acknowledgement of each record, and end at the first that fails."),
    Option(
        "compression-codec",
        "none, gzip, snappy, lz4 or zstd; gzip without a value.",
        "compression-codec",
        argument_is_optional=True,
        choices=("none", "gzip", "snappy", "lz4", "zstd"),
    ),
    Option("batch-size", "batch.size: the largest size of a batch in bytes.", "size", INTEGER, 16384),
    Option("message-send-max-retries", "retries: how often a batch is sent again.", "", INTEGER, 3),
    Option("retry-backoff-ms", "retry.backoff.ms: the pause before a batch is sent again.", "", LONG, 100),
    Option("timeout", "linger.ms: the time that a batch waits for more records.", "timeout_ms", LONG, 1000),
    Option(
        "request-required-acks",
        "acks: 0 waits for no acknowledgement, 1 for the leader's, -1 or all for that of every in-sync replica.",
        "request required acks",
        default="-1",
        choices=("0", "1", "-1", "all"),
    ),
    Option(
        "request-timeout-ms", "request.timeout.ms: the longest time of a request.", "request timeout ms", INTEGER, 1500
    ),
    Option(
        "metadata-expiry-ms",
        "metadata.max.age.ms: the time after which metadata is requested again.",
        "metadata expiration interval",
        LONG,
        300000,
    ),
    Option(
        "max-block-ms",
        "max.block.ms: the longest time that sending waits for memory.",
        "max block on send",
        LONG,
        60000,
    ),
    Option(
        "max-memory-bytes",
        "buffer.memory: the bytes of records that may wait to be sent.",
        "total memory in bytes",
        LONG,
        33554432,
    ),
    Option(
        "max-partition-memory-bytes",
        _DEPRECATED.format("--batch-size"),
        "memory in bytes per partition",
        INTEGER,
        16384,
        is_deprecated=True,
    ),
    Option(
        "line-reader",
        "The reader of the input: Kafka's reader of lines, or a Python class as module:name.",
        "reader_class",
        default="org.apache.kafka.tools.LineMessageReader",
    ),
    Option("socket-buffer-size", "send.buffer.bytes: the size of the socket's buffer.", "size", INTEGER, 102400),
    Option("property", _DEPRECATED.format("--reader-property"), "prop", is_deprecated=True),
    Option(
        "reader-property",
        "A property of the reader, as key=value; may be repeated.\n" + READER_PROPERTIES,
        "prop",
    ),
    Option(
        "reader-config",
        "A file of reader properties; --reader-property takes precedence over it.",
        "config file",
        completes="file",
    ),
    Option("producer-property", _DEPRECATED.format("--command-property"), "producer_prop", is_deprecated=True),
    Option("command-property", "A configuration key of the producer, as key=value; may be repeated.", "producer_prop"),
    Option("producer.config", _DEPRECATED.format("--command-config"), "config file", is_deprecated=True),
    Option(
        "command-config",
        "A file of the producer's configuration; --command-property takes precedence over it.",
        "config file",
        completes="file",
    ),
)
TOOL = Tool(
    name="console-producer",
    description="This tool helps to read data from standard input and publish it to Kafka.",
    run=run,
    options=OPTIONS,
    examples=(
        Example("Send each line that is typed", "--bootstrap-server localhost:9092 --topic greetings"),
        Example(
            "Key and value, separated by a colon",
            "--bootstrap-server localhost:9092 --topic prices --reader-property parse.key=true "
            "--reader-property key.separator=:",
        ),
        Example(
            "A file, compressed, acknowledged by all replicas",
            "--bootstrap-server localhost:9092 --topic words --compression-codec zstd "
            "--request-required-acks all < words.txt",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
