"""The tool `kafka-e2e-latency`: measures the time from sending a record until a waiting consumer has received it."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Sequence
from typing import Any

from kafkapy.client import Consumer, ConsumerRecord, Producer, TopicPartition
from kafkapy.client.admin import Admin, NewTopic
from kafkapy.config.properties import read_properties
from kafkapy.protocol.message_json import json_text
from kafkapy.tools.bootstrap import BOOTSTRAP_SERVER, JSON, await_broker
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError, UsageError
from kafkapy.tools.progress import Progress
from kafkapy.tools.tool import run_tool

_POLL_S = 60.0
_LINE_EVERY = 1000
_POSITIONAL = ("--bootstrap-server", "--topic", "--num-records", "--producer-acks", "--record-size", "--command-config")
Headers = tuple[tuple[str, bytes | None], ...]


def with_flags(words: Sequence[str]) -> list[str]:
    """Converts Kafka's old positional arguments into flags.

    The arguments are servers, topic, number of records, acks, size of a record in bytes, and optionally a file. Other
    command lines are returned unchanged. Raises ToolError for a wrong number of arguments.
    """
    if not words or "-h" in words or any(word.startswith("--") for word in words):
        return list(words)
    if len(words) not in (5, 6):
        raise ToolError(
            f"Invalid number of arguments. Expected 5 or 6 positional arguments, but got {len(words)}. Usage: "
            "bootstrap-server topic num-records producer-acks record-size [optional] command-config"
        )
    print(
        "WARNING: Positional argument usage is deprecated and will be removed in Apache Kafka 5.0. Please use named "
        f"arguments instead: {', '.join(_POSITIONAL)}"
    )
    return [part for flag, word in zip(_POSITIONAL, words, strict=False) if word.strip() for part in (flag, word)]


def check(arguments: Arguments) -> None:
    """Raises UsageError, with Kafka's text, for invalid values."""
    arguments.require("bootstrap-server", "topic", "num-records", "producer-acks", "record-size")
    if arguments["producer-acks"] not in ("1", "all"):
        raise UsageError(
            "Invalid value for --producer-acks. Latency testing requires synchronous acknowledgement. Please use '1' "
            "or 'all'."
        )
    if arguments["num-records"] <= 0:
        raise UsageError("Value for --num-records must be a positive integer.")
    for name in ("record-size", "record-key-size", "record-header-key-size", "num-headers"):
        if arguments[name] < 0:
            raise UsageError(f"Value for --{name} must be a non-negative integer.")
    if arguments["record-header-size"] < -1:
        raise UsageError("Value for --record-header-size must be a non-negative integer or -1 for null header value.")


class LatencyTest:
    """Sends records one after the other; each record is sent when the record before it has been received. Not
    thread-safe."""

    def __init__(self, producer: Producer, consumer: Consumer, arguments: Arguments) -> None:
        self._producer = producer
        self._consumer = consumer
        self._arguments = arguments
        self._random = random.Random(0)
        self.latencies_ns: list[int] = []

    def run(self) -> None:
        """Sends and receives all records."""
        arguments = self._arguments
        is_quiet = arguments["json"]
        count: int = arguments["num-records"]
        with Progress(count, "records") as progress:
            for number in range(count):
                key = self._letters(arguments["record-key-size"]) if arguments["record-key-size"] else None
                value = self._letters(arguments["record-size"])
                headers = self._headers()
                start = time.perf_counter_ns()
                self._producer.send(arguments["topic"], value, key, headers=headers or None).result()
                records = self._consumer.poll(_POLL_S)
                elapsed = time.perf_counter_ns() - start
                self._check(records, key, value, headers)
                if number % _LINE_EVERY == 0 and not is_quiet:
                    progress.clear()
                    print(f"{number}\t{elapsed / 1e6}")
                self.latencies_ns.append(elapsed)
                progress.advance()

    def totals(self) -> dict[str, Any]:
        """Returns the average and the percentiles in ms by name; the percentiles are rounded down."""
        count = len(self.latencies_ns)
        sorted_ms = sorted(latency // 1_000_000 for latency in self.latencies_ns)
        found: dict[str, Any] = {"averageLatencyMs": sum(self.latencies_ns) / count / 1e6}
        for name, share in (("p50Ms", 0.5), ("p99Ms", 0.99), ("p99.9Ms", 0.999)):
            found[name] = sorted_ms[int(count * share)]
        return found

    def _letters(self, size: int) -> bytes:
        return bytes([65 + self._random.randrange(26)]) * size

    def _headers(self) -> Headers:
        arguments = self._arguments
        value_size = arguments["record-header-size"]
        return tuple(
            (
                self._letters(arguments["record-header-key-size"]).decode(),
                None if value_size < 0 else self._letters(value_size),
            )
            for _ in range(arguments["num-headers"])
        )

    def _check(self, records: Sequence[ConsumerRecord], key: bytes | None, value: bytes, headers: Headers) -> None:
        """Raises ToolError unless exactly the record that was sent is received."""
        if not records:
            raise ToolError("poll() timed out before finding a result (timeout:[60000ms])")
        read = records[0]
        if read.value != value:
            raise ToolError(
                f"The message value read [{_shown(read.value)}] did not match the message value sent [{_shown(value)}]"
            )
        if read.key != key:
            raise ToolError(
                f"The message key read [{_shown(read.key)}] did not match the message key sent [{_shown(key)}]"
            )
        if tuple(read.headers) != headers:
            raise ToolError(f"The message headers read {read.headers} did not match the message headers sent {headers}")
        if len(records) != 1:
            raise ToolError(f"Only one result was expected during this test. We found [{len(records)}]")


def _shown(data: bytes | None) -> str:
    return "null" if data is None else data.decode("utf-8", "replace")


def begin(consumer: Consumer, topic: str, properties: dict[str, Any]) -> None:
    """Creates the topic if it does not exist, and positions the consumer at the topic's end."""
    with Admin(properties) as admin:
        if topic not in admin.list_topics():
            print(
                f'Topic "{topic}" does not exist. Will create topic with 1 partition(s) and replication factor = 1',
                flush=True,
            )
            admin.create_topics([NewTopic(topic, 1, 1)]).check()
    partitions = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
    consumer.assign(partitions)
    consumer.seek_to_end(partitions)
    for partition in partitions:
        consumer.position(partition)


def consumer_properties(properties: dict[str, Any]) -> dict[str, Any]:
    """Returns the consumer's configuration: the user's `properties`, overridden by what the measurement needs."""
    return {
        **properties,
        "group.id": f"test-group-{time.time_ns() // 1_000_000}",
        "enable.auto.commit": "false",
        "auto.offset.reset": "latest",
        "key.deserializer": "bytes",
        "value.deserializer": "bytes",
        "fetch.max.wait.ms": "0",
    }


def producer_properties(properties: dict[str, Any], acks: str) -> dict[str, Any]:
    """Returns the producer's configuration: the user's `properties`, overridden by what the measurement needs."""
    return {
        **properties,
        "linger.ms": "0",
        "max.block.ms": str(2**63 - 1),
        "acks": acks,
        "key.serializer": "bytes",
        "value.serializer": "bytes",
    }


def run(arguments: Arguments) -> int:
    """Runs the test and prints its results; returns 0, the exit code."""
    check(arguments)
    properties: dict[str, Any] = {}
    if arguments.has("command-config"):
        properties.update(read_properties(arguments["command-config"]))
    properties["bootstrap.servers"] = arguments["bootstrap-server"]
    await_broker(properties)
    with (
        Consumer(consumer_properties(properties)) as consumer,
        Producer(producer_properties(properties, arguments["producer-acks"])) as producer,
    ):
        begin(consumer, arguments["topic"], properties)
        test = LatencyTest(producer, consumer, arguments)
        test.run()
    totals = test.totals()
    if arguments["json"]:
        print(json_text(totals))
    else:
        print(f"Avg latency: {totals['averageLatencyMs']:.4f} ms")
        print(f"Percentiles: 50th = {totals['p50Ms']}, 99th = {totals['p99Ms']}, 99.9th = {totals['p99.9Ms']}")
    return 0


OPTIONS = (
    BOOTSTRAP_SERVER,
    Option("topic", "REQUIRED: The topic to write to and to read; it is created if it does not exist.", "topic-name"),
    Option("num-records", "REQUIRED: The number of records to send.", "count", INTEGER),
    Option(
        "producer-acks",
        "REQUIRED: The acknowledgements that the producer waits for.",
        "producer-acks",
        choices=("1", "all"),
    ),
    Option("record-size", "REQUIRED: The size of each value in bytes.", "bytes", INTEGER),
    Option(
        "record-key-size",
        "The size of each key; 0 for records without a key.",
        "bytes",
        INTEGER,
        0,
        argument_is_optional=True,
    ),
    Option("record-header-key-size", "The size of each header's name.", "bytes", INTEGER, 0, argument_is_optional=True),
    Option(
        "record-header-size",
        "The size of each header's value; -1 for null.",
        "bytes",
        INTEGER,
        0,
        argument_is_optional=True,
    ),
    Option("num-headers", "The number of headers of each record.", "count", INTEGER, 0, argument_is_optional=True),
    Option(
        "command-config",
        "A file with the configuration of producer and consumer.",
        "config-file",
        argument_is_optional=True,
        completes="file",
    ),
    JSON,
)
TOOL = Tool(
    name="end-to-end-latency",
    description="This tool measures end-to-end latency in Kafka by sending messages and timing their reception.",
    run=run,
    options=OPTIONS,
    examples=(
        Example(
            "10,000 records of 100 bytes, acknowledged by the leader",
            "--bootstrap-server localhost:9092 --topic test --num-records 10000 --producer-acks 1 --record-size 100",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    try:
        words = with_flags(arguments)
    except ToolError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return run_tool(TOOL, words)
