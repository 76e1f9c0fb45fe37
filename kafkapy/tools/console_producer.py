"""`kafka-console-producer`: lines of standard input become records."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

from kafkapy.client import Producer
from kafkapy.config.properties import read_properties
from kafkapy.tools.bootstrap import await_broker, check_servers
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.line_reader import READER_PROPERTIES, InputRecord, LineReader, load_reader
from kafkapy.tools.option import INTEGER, LONG, Arguments, Option, UsageError, parse_key_values
from kafkapy.tools.tool import run_tool, script_name

log = logging.getLogger("kafkapy.tools.console_producer")

_DEPRECATED = "(DEPRECATED) As {}, which replaces it."


def merged(properties: dict[str, Any], key: str, arguments: Arguments, name: str) -> None:
    """A flag that stands for a configuration key: it wins when it is given, its default when nobody set the key."""
    if arguments.has(name) or key not in properties:
        properties[key] = arguments[name]


def producer_properties(arguments: Arguments) -> dict[str, Any]:
    """The producer's configuration: the file, the properties, and the flags that stand for keys."""
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
        merged(properties, key, arguments, name)
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
    """`--compression-codec` without a value is gzip."""
    if not arguments.has("compression-codec"):
        return "none"
    return arguments["compression-codec"] or "gzip"


def reader_properties(arguments: Arguments) -> dict[str, str]:
    """What the reader is configured with: its file, then the properties, and the topic."""
    properties: dict[str, str] = {}
    if arguments.has("reader-config"):
        properties.update(read_properties(arguments["reader-config"]))
    properties["topic"] = arguments["topic"]
    words = arguments.values("property") or arguments.values("reader-property")
    properties.update(parse_key_values(words))
    return properties


def check(arguments: Arguments) -> None:
    """UsageError for what cannot go together; a warning for what is deprecated."""
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
    """Sends what a reader reads.  One thread; delivery failures are logged, and counted in `failures`."""

    def __init__(self, producer: Producer, *, is_synchronous: bool) -> None:
        self._producer = producer
        self._is_synchronous = is_synchronous
        self.failures = 0

    def send_all(self, records: Iterator[InputRecord]) -> None:
        """Until the input ends. With `--sync` a failure ends it as well: ApiError, TimeoutError."""
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
        def told(metadata: Any, error: BaseException | None) -> None:
            if error is not None:
                self.failures += 1
                key = "null" if record.key is None else f"{len(record.key)} bytes"
                value = "null" if record.value is None else f"{len(record.value)} bytes"
                log.error(
                    "Error when sending message to topic %s with key: %s, value: %s with error: %s",
                    *(record.topic, key, value, error),
                )

        return told


def run(arguments: Arguments, source: BinaryIO | None = None) -> int:
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
    # Kafka's own ends with 0 whatever became of the records; a program that has to know uses our name.
    return 1 if console.failures and not script_name() else 0


OPTIONS = (
    Option("topic", "REQUIRED: The topic to write to.", "topic"),
    Option(
        "bootstrap-server",
        "REQUIRED: The brokers to ask first, as HOST1:PORT1,HOST2:PORT2. One that answers is enough.",
        "server to connect to",
    ),
    Option("sync", "Wait for the broker's answer after each record, and stop at the first that fails."),
    Option(
        "compression-codec",
        "none, gzip, snappy, lz4 or zstd; gzip if nothing follows the flag.",
        "compression-codec",
        argument_is_optional=True,
        choices=("none", "gzip", "snappy", "lz4", "zstd"),
    ),
    Option("batch-size", "batch.size: the most bytes of one partition's batch.", "size", INTEGER, 16384),
    Option("message-send-max-retries", "retries: how often a batch is sent again.", "", INTEGER, 3),
    Option("retry-backoff-ms", "retry.backoff.ms: the pause before a batch is sent again.", "", LONG, 100),
    Option("timeout", "linger.ms: how long a batch waits for more records.", "timeout_ms", LONG, 1000),
    Option(
        "request-required-acks",
        "acks: 0 does not wait, 1 waits for the leader, -1 or all for every in-sync replica.",
        "request required acks",
        default="-1",
        choices=("0", "1", "-1", "all"),
    ),
    Option(
        "request-timeout-ms", "request.timeout.ms: how long an answer may take.", "request timeout ms", INTEGER, 1500
    ),
    Option(
        "metadata-expiry-ms",
        "metadata.max.age.ms: after that long the metadata are asked for anew.",
        "metadata expiration interval",
        LONG,
        300000,
    ),
    Option("max-block-ms", "max.block.ms: how long sending may wait for room.", "max block on send", LONG, 60000),
    Option(
        "max-memory-bytes",
        "buffer.memory: the most bytes that wait to be sent.",
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
        "What makes records of the input: Kafka's own reader of lines, or a Python class as module:name.",
        "reader_class",
        default="org.apache.kafka.tools.LineMessageReader",
    ),
    Option("socket-buffer-size", "send.buffer.bytes: the size of the socket's buffer.", "size", INTEGER, 102400),
    Option("property", _DEPRECATED.format("--reader-property"), "prop", is_deprecated=True),
    Option(
        "reader-property",
        "How a line is read, as key=value; may come again.\n" + READER_PROPERTIES,
        "prop",
    ),
    Option(
        "reader-config",
        "A file of reader properties; --reader-property wins over it.",
        "config file",
        completes="file",
    ),
    Option("producer-property", _DEPRECATED.format("--command-property"), "producer_prop", is_deprecated=True),
    Option("command-property", "A configuration key of the producer, as key=value; may come again.", "producer_prop"),
    Option("producer.config", _DEPRECATED.format("--command-config"), "config file", is_deprecated=True),
    Option(
        "command-config",
        "A file of the producer's configuration; --command-property wins over it.",
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
        Example("Write each line that is typed", "--bootstrap-server localhost:9092 --topic greetings"),
        Example(
            "Key and value, divided by a colon",
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
