"""The tool `kafka-console-share-consumer`: prints the records that a share group delivers, and acknowledges them."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any, BinaryIO

from kafkapy.client import AcknowledgeType, ConsumerRecord, ShareConsumer, WakeupError
from kafkapy.config.properties import read_properties
from kafkapy.errors import KafkapyError
from kafkapy.tools.bootstrap import BOOTSTRAP_SERVER, JSON, await_broker
from kafkapy.tools.console_consumer import (
    DEPRECATED,
    DESERIALIZER_OPTIONS,
    FORMATTER_OPTIONS,
    LONGEST_POLL_S,
    NO_RECORD_IN_TIME,
    RecordOutput,
    formatter_of,
    named_group,
    print_deprecated,
)
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.message_formatter import MessageFormatter
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError, UsageError, parse_key_values
from kafkapy.tools.tool import run_tool, sentence, stops_by

log = logging.getLogger("kafkapy.tools.console_share_consumer")


def check(arguments: Arguments) -> None:
    """Raises UsageError for flags that exclude each other or are missing."""
    if not arguments.has("topic"):
        raise UsageError("--topic is a required argument")
    arguments.require("bootstrap-server")
    if arguments.has("reject") and arguments.has("release"):
        raise UsageError("At most one of --reject and --release may be specified.")
    for old, new in (
        ("consumer-property", "command-property"),
        ("consumer-config", "command-config"),
        ("property", "formatter-property"),
    ):
        if arguments.has(old) and arguments.has(new):
            raise UsageError(f"Options --{old} and --{new} cannot be specified together.")


def consumer_properties(arguments: Arguments) -> dict[str, Any]:
    """Returns the configuration of the share consumer. Raises UsageError if several groups are named."""
    print_deprecated(arguments, ("consumer-property", "command-property"), ("consumer-config", "command-config"))
    config = "consumer-config" if arguments.has("consumer-config") else "command-config"
    from_file = read_properties(arguments[config]) if arguments.has(config) else {}
    extra = parse_key_values(arguments.values("consumer-property") or arguments.values("command-property"))
    properties: dict[str, Any] = {"client.id": "console-share-consumer", **from_file, **extra}
    group = named_group(arguments, from_file, extra, "consumer-config")
    return properties | {
        "bootstrap.servers": arguments["bootstrap-server"],
        "group.id": "console-share-consumer" if group is None else group,
        "share.acknowledgement.mode": "explicit",
        "key.deserializer": "bytes",
        "value.deserializer": "bytes",
    }


class ConsoleShareConsumer:
    """Prints records as they are delivered and acknowledges each. Not thread-safe, but any thread may call `stop`."""

    def __init__(
        self,
        consumer: ShareConsumer,
        formatter: MessageFormatter,
        output: BinaryIO,
        kind: AcknowledgeType,
        *,
        rejects_errors: bool,
    ) -> None:
        self._consumer = consumer
        self._formatter = formatter
        self._output = output
        self._kind = kind
        self._rejects_errors = rejects_errors
        self.message_count = 0

    def stop(self) -> None:
        """Makes `print_all` return. Any thread may call it."""
        self._consumer.wakeup()

    def print_all(self, max_messages: int, timeout_ms: int | None) -> None:
        """Prints until `max_messages` records were printed (-1: no limit), or until `stop` is called.

        Also ends when no record has arrived for `timeout_ms`; if `timeout_ms` is None, it waits for records without
        end.
        """
        try:
            while max_messages < 0 or self.message_count < max_messages:
                records = self._receive(timeout_ms)
                if records is None:
                    return
                self._print(records if max_messages < 0 else records[: max_messages - self.message_count])
        except WakeupError:
            return
        except KafkapyError as error:
            log.error("Error processing message, terminating consumer process: %s", error)

    def _receive(self, timeout_ms: int | None) -> list[ConsumerRecord] | None:
        start = time.monotonic()
        limit_s = LONGEST_POLL_S if timeout_ms is None else timeout_ms / 1000
        while True:
            records = self._consumer.poll(limit_s)
            if records:
                return list(records)
            if timeout_ms is not None and time.monotonic() - start >= limit_s:
                log.error(NO_RECORD_IN_TIME, timeout_ms)
                return None

    def _print(self, records: list[ConsumerRecord]) -> None:
        """Prints records, and acknowledges those that the output has accepted; the group delivers all others again."""
        output = RecordOutput(self._output)
        kinds: list[AcknowledgeType] = []
        try:
            try:
                for record in records:
                    text, kind = self._formatted(record)
                    kinds.append(kind)
                    output.write(text)
            finally:
                output.flush()
        finally:
            for record, kind in zip(records[: output.accepted], kinds, strict=False):
                self._consumer.acknowledge(record, kind)

    def _formatted(self, record: ConsumerRecord) -> tuple[bytes, AcknowledgeType]:
        """Returns the text of a record, and how it is to be acknowledged. Raises ToolError for a record that cannot be
        formatted, unless such records are rejected."""
        self.message_count += 1
        try:
            return self._formatter.format(record), self._kind
        except Exception as error:  # a deserializer of the user may raise any exception
            if not self._rejects_errors:
                raise ToolError(f"Unknown error when running consumer: {sentence(error)}") from None
            log.error("Error processing message, rejecting this message: %s", sentence(error))
            return b"", AcknowledgeType.REJECT


def run(arguments: Arguments, output: BinaryIO | None = None) -> int:
    """Prints records to `output`, or to standard output if `output` is None; returns the exit code.

    The code is 0, or 128 plus the signal's number if a signal ended the tool.
    """
    check(arguments)
    properties = consumer_properties(arguments)
    formatter = formatter_of(arguments)
    await_broker(properties)
    sys.stdout.flush()
    kind = AcknowledgeType.ACCEPT
    if arguments["reject"] or arguments["release"]:
        kind = AcknowledgeType.REJECT if arguments["reject"] else AcknowledgeType.RELEASE
    max_messages = arguments["max-messages"] if arguments.has("max-messages") else -1
    timeout_ms = arguments["timeout-ms"] if arguments.has("timeout-ms") and arguments["timeout-ms"] >= 0 else None
    consumer = ShareConsumer(properties)
    stream = sys.stdout.buffer if output is None else output
    console = ConsoleShareConsumer(
        consumer, formatter, stream, kind, rejects_errors=arguments["reject-message-on-error"]
    )
    with stops_by(console.stop) as signals:
        try:
            consumer.subscribe(arguments["topic"])
            console.print_all(max_messages, timeout_ms)
        finally:
            consumer.close()
            print(f"Processed a total of {console.message_count} messages", file=sys.stderr)
    if arguments["enable-systest-events"]:
        print("shutdown_complete")
    return 128 + signals[0] if signals else 0


OPTIONS = (
    Option("topic", "REQUIRED: The topic to read.", "topic"),
    Option("consumer-property", DEPRECATED.format("--command-property"), "consumer_prop", is_deprecated=True),
    Option("command-property", "A configuration key of the consumer, as key=value; may be repeated.", "consumer_prop"),
    Option("consumer-config", DEPRECATED.format("--command-config"), "config file", is_deprecated=True),
    Option(
        "command-config",
        "A file of the consumer's configuration; --command-property takes precedence over it.",
        "config file",
        completes="file",
    ),
    *FORMATTER_OPTIONS,
    Option(
        "max-messages",
        "End after this many records; without it the consumer runs until it is interrupted.",
        "num_messages",
        INTEGER,
    ),
    Option("timeout-ms", "End when no record is received for this many milliseconds.", "timeout_ms", INTEGER),
    Option("reject", "Reject the records: the group does not deliver them again."),
    Option("release", "Release the records: the group delivers them again."),
    Option("reject-message-on-error", "Reject a record that cannot be formatted, and continue."),
    BOOTSTRAP_SERVER,
    *DESERIALIZER_OPTIONS,
    Option("group", "The share group; by default console-share-consumer.", "share group id"),
    Option("enable-systest-events", "Print shutdown_complete at the end."),
    JSON,
)
TOOL = Tool(
    name="console-share-consumer",
    description=(
        "This tool helps to read data from Kafka topics using share groups and outputs it to standard output."
    ),
    run=run,
    options=OPTIONS,
    examples=(
        Example(
            "Accept ten records of a topic",
            "--bootstrap-server localhost:9092 --topic tasks --group workers --max-messages 10",
        ),
        Example(
            "Look at records without taking them from the group",
            "--bootstrap-server localhost:9092 --topic tasks --group workers --release --timeout-ms 2000 "
            "--formatter-property print.delivery=true",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
