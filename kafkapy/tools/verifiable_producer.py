"""The tool `kafka-verifiable-producer`: writes increasing numbers and prints the fate of each record as JSON."""

from __future__ import annotations

import time
from typing import Any

from kafkapy.client import Producer, RecordMetadata
from kafkapy.errors import KafkapyError
from kafkapy.tools.bootstrap import await_broker
from kafkapy.tools.declaration import Example, Grammar, Tool
from kafkapy.tools.json_events import print_event, wall_ms
from kafkapy.tools.option import INTEGER, LONG, Arguments, Option
from kafkapy.tools.throttle import Throttle
from kafkapy.tools.tool import Termination, run_tool, stops_by
from kafkapy.tools.verifiable_parts import COMMAND_CONFIG, bootstrap_option, read_configuration


class VerifiableProducer:
    """Writes numbers as text and prints an event for each. One thread writes the numbers; the producer's thread prints
    the events about their delivery."""

    def __init__(self, producer: Producer, arguments: Arguments) -> None:
        self._producer = producer
        self._topic: str = arguments["topic"]
        self._prefix: int | None = arguments["value-prefix"]
        self._key_count: int | None = arguments["repeating-keys"]
        self._create_ms: int | None = (
            None if arguments["message-create-time"] == -1 else arguments["message-create-time"]
        )
        self._start_ms = wall_ms()
        self._is_stopped = False
        self.sent = 0
        self.acknowledged = 0

    def stop(self) -> None:
        """Makes `write` return. Any thread, and a signal's handler, may call this."""
        self._is_stopped = True

    def write(self, count: int, throttle: Throttle) -> None:
        """Sends `count` records, or records until `stop` is called if `count` is negative, at the rate of `throttle`.

        Does not wait for the delivery of the records.
        """
        while not self._is_stopped and (count < 0 or self.sent < count):
            number = self.sent
            start_ms = time.monotonic_ns() // 1_000_000
            self._send(number)
            throttle.after(number, start_ms)

    def _send(self, number: int) -> None:
        value = str(number) if self._prefix is None else f"{self._prefix}.{number}"
        key = str(number % self._key_count) if self._key_count else None
        timestamp = self._create_ms
        if self._create_ms is not None:
            self._create_ms += wall_ms() - self._start_ms
        self.sent += 1

        def report(metadata: RecordMetadata | None, error: BaseException | None) -> None:
            if metadata is None:
                self._print_failure(key, value, error)
                return
            self.acknowledged += 1
            place = {"offset": metadata.offset, "topic": metadata.topic, "partition": metadata.partition}
            print_event("producer_send_success", key=key, value=value, **place)

        try:
            self._producer.send(self._topic, value, key, timestamp=timestamp, on_delivery=report)
        except KafkapyError as error:
            self._print_failure(key, value, error)

    def _print_failure(self, key: str | None, value: str, error: BaseException | None) -> None:
        print_event(
            "producer_send_error",
            topic=self._topic,
            key=key,
            value=value,
            exception=type(error).__name__,
            message=str(error),
        )

    def print_totals(self, throughput: int) -> None:
        """Prints an event with the number of records and the average rate.

        `throughput` is the rate, in records per second, that the user wants; the event shows this rate too.
        """
        elapsed_ms = max(wall_ms() - self._start_ms, 1)
        print_event(
            "tool_data",
            sent=self.sent,
            acked=self.acknowledged,
            target_throughput=throughput,
            avg_throughput=1000 * self.acknowledged / elapsed_ms,
        )


def producer_properties(arguments: Arguments) -> dict[str, Any]:
    """Returns the producer's configuration; keys in the configuration file take precedence over the flags, as in
    Kafka. Keys and values are always sent as text."""
    return {
        "bootstrap.servers": arguments["bootstrap-server"],
        "acks": str(arguments["acks"]),
        "retries": "0",
        **read_configuration(arguments, "producer.config"),
        "key.serializer": "text",
        "value.serializer": "text",
    }


def run(arguments: Arguments) -> int:
    """Writes the records and prints the events; returns 0, the exit code."""
    properties = producer_properties(arguments)
    await_broker(properties)
    producer = Producer(properties)
    test = VerifiableProducer(producer, arguments)
    with stops_by(test.stop) as signals:
        print_event("startup_complete")
        try:
            test.write(arguments["max-messages"], Throttle(arguments["throughput"]))
        finally:
            producer.close()
            print_event("shutdown_complete")
            test.print_totals(arguments["throughput"])
    if signals:
        raise Termination(signals[0])
    return 0


OPTIONS = (
    Option("topic", "Produce messages to this topic.", "TOPIC", is_required=True),
    bootstrap_option(
        "REQUIRED: The server(s) to connect to. Comma-separated list of Kafka brokers in the form "
        "HOST1:PORT1,HOST2:PORT2,...",
        group="connection",
    ),
    Option(
        "max-messages",
        "Produce this many messages. If -1, produce messages until the process is killed externally.",
        "MAX-MESSAGES",
        INTEGER,
        -1,
    ),
    Option(
        "throughput",
        "If set >= 0, throttle maximum message throughput to *approximately* THROUGHPUT messages/sec.",
        "THROUGHPUT",
        INTEGER,
        -1,
    ),
    Option(
        "acks",
        "Acks required on each produced message. See Kafka docs on acks for details.",
        "ACKS",
        INTEGER,
        -1,
        choices=("0", "1", "-1"),
    ),
    Option(
        "producer.config",
        "(DEPRECATED) Producer config properties file. This option will be removed in a future version. Use "
        "--command-config instead.",
        "CONFIG-FILE",
        is_deprecated=True,
        completes="file",
    ),
    Option(
        "message-create-time",
        "Send messages with creation time starting at the arguments value, in milliseconds since epoch",
        "CREATE-TIME",
        LONG,
        -1,
    ),
    Option(
        "value-prefix",
        "If specified, each produced value will have this prefix with a dot separator",
        "VALUE-PREFIX",
        INTEGER,
    ),
    Option(
        "repeating-keys",
        "If specified, each produced record will have a key starting at 0 increment by 1 up to the number specified "
        "(exclusive), then the key is set to 0 again",
        "REPEATING-KEYS",
        INTEGER,
    ),
    COMMAND_CONFIG,
)
TOOL = Tool(
    name="verifiable-producer",
    description=(
        'This tool produces increasing integers to the specified topic and prints JSON metadata to stdout on each "send'
        '" request, making externally visible which messages have been acked and which have not.'
    ),
    run=run,
    options=OPTIONS,
    grammar=Grammar.ARGPARSE4J,
    kafka_name="verifiable-producer",
    required_groups=("connection",),
    examples=(
        Example("Write the numbers 0 to 9", "--bootstrap-server localhost:9092 --topic numbers --max-messages 10"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
