"""The tool `kafka-producer-perf-test`: measures throughput and latency of a producer."""

from __future__ import annotations

import os
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from kafkapy.client import Producer
from kafkapy.config.properties import read_properties
from kafkapy.protocol.message_json import json_text
from kafkapy.tools.bootstrap import JSON, SERVERS_HELP, await_broker
from kafkapy.tools.declaration import Example, Grammar, Tool
from kafkapy.tools.metric_table import print_metrics
from kafkapy.tools.option import DOUBLE, INTEGER, LONG, Arguments, Option, ToolError, UsageError
from kafkapy.tools.producer_stats import ProducerStats
from kafkapy.tools.progress import Progress
from kafkapy.tools.throttle import Throttle
from kafkapy.tools.tool import run_tool
from kafkapy.types import random_uuid, uuid_to_string

DEFAULT_TRANSACTION_MS = 3000
_LETTERS = bytes(65 + byte % 26 for byte in range(256))
_SOURCES = ("bootstrap-server", "command-property", "producer-props", "producer.config", "command-config")


def check(arguments: Arguments) -> None:
    """Raises UsageError, with Apache Kafka's message, if flags have invalid values or exclude each other."""
    if arguments["num-records"] <= 0:
        raise UsageError("--num-records should be greater than zero.")
    if max(arguments["warmup-records"], 0) >= arguments["num-records"]:
        raise UsageError(
            "The value for --warmup-records must be strictly fewer than the number of records in the test, "
            "--num-records."
        )
    if arguments.has("record-size") and arguments["record-size"] <= 0:
        raise UsageError("--record-size should be greater than zero.")
    if not any(map(arguments.has, _SOURCES)):
        raise UsageError(
            "At least one of --bootstrap-server, --command-property, --producer-props, --producer.config or "
            "--command-config must be specified."
        )
    for new, old in (("command-property", "producer-props"), ("command-config", "producer.config")):
        if arguments.has(new) and arguments.has(old):
            raise UsageError(f"--{new} and --{old} cannot be specified together.")
    if arguments.has("transaction-duration-ms") and arguments["transaction-duration-ms"] <= 0:
        raise UsageError("--transaction-duration-ms should be greater than zero.")
    if arguments["reporting-interval"] <= 0:
        raise UsageError("--reporting-interval should be greater than zero.")


def producer_properties(arguments: Arguments) -> dict[str, Any]:
    """Returns the producer's configuration; it has a `transactional.id` if records are sent in transactions.

    Raises ToolError for a property that is not KEY=VALUE.
    """
    for old, new in (("producer-props", "command-property"), ("producer.config", "command-config")):
        if arguments.has(old):
            print(f"Option --{old} has been deprecated and will be removed in a future version. Use --{new} instead.")
    properties: dict[str, Any] = {}
    config = "producer.config" if arguments.has("producer.config") else "command-config"
    if arguments.has(config):
        properties.update(read_properties(arguments[config]))
    for word in arguments.values("producer-props") or arguments.values("command-property"):
        pieces = word.split("=")
        if len(pieces) != 2:
            raise ToolError(f"Invalid property: {word}")
        properties[pieces[0]] = pieces[1]
    properties["key.serializer"] = properties["value.serializer"] = "bytes"
    properties.setdefault("client.id", "perf-producer-client")
    if arguments.has("bootstrap-server"):
        properties["bootstrap.servers"] = arguments["bootstrap-server"]
    if arguments.has("transactional-id"):
        properties["transactional.id"] = arguments["transactional-id"]
    elif arguments.has("transaction-duration-ms"):
        properties.setdefault("transactional.id", f"performance-producer-{uuid_to_string(random_uuid())}")
    return properties


def read_payloads(path: str, delimiter: str) -> list[bytes]:
    """Returns the values in a file; `delimiter` is the regular expression of the text between them, as in Apache
    Kafka's tool.

    Raises ToolError if the file has no values, or if the expression is not valid.
    """
    print(f"Reading payloads from: {os.path.abspath(path)}")
    if not os.path.exists(path) or not os.path.getsize(path):
        raise ToolError("File does not exist or empty file provided.")
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        content = file.read()
    try:
        pattern = re.compile(delimiter)
    except re.error as error:
        raise ToolError(f"--payload-delimiter {delimiter} is not a regular expression: {error}") from None
    payloads = _divided(content, pattern)
    if not payloads:
        raise ToolError(f"{path} contains nothing but delimiters.")
    print(f"Number of records read: {len(payloads)}")
    return payloads


def _divided(content: str, delimiter: re.Pattern[str]) -> list[bytes]:
    """Returns the parts of a text between delimiters, without an empty part before a delimiter at the start of the
    text, or after one at its end."""
    pieces: list[bytes] = []
    position = 0
    for found in delimiter.finditer(content):
        if found.end() == found.start():
            continue  # the expression matches the empty text
        if found.start() > 0:
            pieces.append(content[position : found.start()].encode())
        position = found.end()
    return [*pieces, content[position:].encode()] if position < len(content) else pieces


def payloads_of(arguments: Arguments) -> Callable[[int], bytes]:
    """Returns a function of a record's number that returns the record's value.

    If --payload-file is given, the value is a random one of the values in the file; if --record-size is given, it
    consists of that many random letters; otherwise it is the number as text.
    """
    generator = random.Random(0)
    if arguments.has("payload-file"):
        payloads = read_payloads(arguments["payload-file"], arguments["payload-delimiter"])
        return lambda number: generator.choice(payloads)
    if arguments.has("record-size"):
        size = arguments["record-size"]
        return lambda number: generator.randbytes(size).translate(_LETTERS)
    return lambda number: b"%d" % number


class ProducerTest:
    """One run of the test. One thread sends; the producer's thread reports deliveries."""

    def __init__(self, producer: Producer, arguments: Arguments, transaction_ms: int | None) -> None:
        self._producer = producer
        self._topic: str = arguments["topic"]
        self._count: int = arguments["num-records"]
        self._warmup = max(arguments["warmup-records"], 0)
        self._interval_ms: int = arguments["reporting-interval"]
        self._transaction_ms = transaction_ms
        self._throttle = Throttle(arguments["throughput"])
        self.is_json: bool = arguments["json"]
        self.stats = ProducerStats(self._count, self._interval_ms, is_silent=self.is_json)
        self.steady: ProducerStats | None = None
        self.failures = 0

    def send_all(self, payload_of: Callable[[int], bytes]) -> None:
        """Sends all records, at most as many per second as the flags allow; does not wait for their delivery.

        `payload_of` returns the value of the record with a given number.
        """
        with Progress(self._count, "records") as progress:
            self.stats.before_output = progress.clear
            for number in self._transactions(range(self._count)):
                if self._warmup and number == self._warmup:
                    self.steady = ProducerStats(
                        self._count - self._warmup, self._interval_ms, is_steady=True, is_silent=self.is_json
                    )
                    self.steady.before_output = progress.clear
                    self.stats.is_silent = True
                payload = payload_of(number)
                start_ms = monotonic_ms()
                self._producer.send(
                    self._topic, payload, on_delivery=self._on_delivery(start_ms, len(payload), self.steady)
                )
                self._throttle.after(number, start_ms)
                progress.advance()

    def _transactions(self, numbers: range) -> Iterator[int]:
        """Yields the numbers in `numbers`, and begins and commits transactions between them if the test uses
        transactions.

        The caller sends the record with each number before it takes the next number. A transaction begins before its
        first number. It is committed when its duration has passed, or after the last number.
        """
        if self._transaction_ms is None:
            yield from numbers
            return
        started_ms = None
        for number in numbers:
            if started_ms is None:
                self._producer.begin_transaction()
                started_ms = monotonic_ms()
            yield number
            if monotonic_ms() - started_ms >= self._transaction_ms:
                self._producer.commit_transaction()
                started_ms = None
        if started_ms is not None:
            self._producer.commit_transaction()

    def _on_delivery(self, start_ms: int, size: int, steady: ProducerStats | None) -> Callable[[Any, Any], None]:
        def on_delivery(metadata: Any, error: BaseException | None) -> None:
            if error is not None:
                self.failures += 1
                print(error, file=sys.stderr)
                return
            end_ms = monotonic_ms()
            self.stats.record(end_ms - start_ms, size, end_ms)
            if steady is not None:
                steady.record(end_ms - start_ms, size, end_ms)

        return on_delivery

    def print_totals(self) -> None:
        """Prints the summary of all records, and of the records after the warm-up if there is a warm-up."""
        totals = [self.stats] + ([self.steady] if self.steady is not None else [])
        if self.is_json:
            shown = [each.totals() for each in totals]
            print(json_text(shown[0] | {"steadyState": shown[1]} if len(shown) > 1 else shown[0]))
        else:
            for each in totals:
                print(each.total_line())


def monotonic_ms() -> int:
    """Returns the time in ms of a clock that never jumps."""
    return time.monotonic_ns() // 1_000_000


def run(arguments: Arguments) -> int:
    """Runs the test and prints its results; returns 0, the exit code."""
    check(arguments)
    payload_of = payloads_of(arguments)
    properties = producer_properties(arguments)
    transaction_ms = None
    if "transactional.id" in properties:
        given = arguments["transaction-duration-ms"]
        transaction_ms = DEFAULT_TRANSACTION_MS if given is None else given
    await_broker(properties)
    with Producer(properties) as producer:
        if transaction_ms is not None:
            producer.init_transactions()
        if arguments["warmup-records"] > 0:
            print(
                f"Warmup first {arguments['warmup-records']} records. Steady state results will print after the "
                "complete test summary."
            )
        test = ProducerTest(producer, arguments, transaction_ms)
        test.send_all(payload_of)
        producer.flush()
        test.print_totals()
        if arguments["print-metrics"]:
            client_id, times = properties["client.id"], producer.throttle_times
            print_metrics(
                {
                    f"producer-metrics:record-send-total:{{client-id={client_id}}}": test.stats.count,
                    f"producer-metrics:record-error-total:{{client-id={client_id}}}": test.failures,
                    f"producer-metrics:byte-total:{{client-id={client_id}}}": test.stats.bytes,
                    f"producer-metrics:produce-throttle-time-avg:{{client-id={client_id}}}": times.average_ms,
                    f"producer-metrics:produce-throttle-time-max:{{client-id={client_id}}}": times.max_ms,
                }
            )
    return 0


_EXACTLY_ONE = " Exactly one of --record-size, --payload-file and --payload-monotonic is required."
_OVER = " The flag takes precedence over --command-property and --command-config."
OPTIONS = (
    Option("bootstrap-server", SERVERS_HELP + _OVER, "BOOTSTRAP-SERVER"),
    Option("topic", "The topic to write to.", "TOPIC", is_required=True),
    Option("num-records", "The number of records to send.", "NUM-RECORDS", LONG, is_required=True),
    Option("record-size", "The size of each value in bytes." + _EXACTLY_ONE, "RECORD-SIZE", INTEGER, group="payload"),
    Option(
        "payload-file",
        "A UTF-8 file of values, one of which is chosen at random for each record." + _EXACTLY_ONE,
        "PAYLOAD-FILE",
        group="payload",
        completes="file",
    ),
    Option("payload-monotonic", "The values are 0, 1, 2, ..." + _EXACTLY_ONE, group="payload"),
    Option(
        "payload-delimiter",
        "The separator of the values in --payload-file, as a regular expression: \\t is a tab.",
        "PAYLOAD-DELIMITER",
        default="\\n",
    ),
    Option(
        "throughput",
        "The approximate limit of records per second; -1 for no limit.",
        "THROUGHPUT",
        DOUBLE,
        is_required=True,
    ),
    Option(
        "producer-props",
        "(DEPRECATED) Use --command-property instead.",
        "PROP-NAME=PROP-VALUE",
        is_many=True,
        is_deprecated=True,
    ),
    Option(
        "command-property", "Configuration keys of the producer, as key=value.", "PROP-NAME=PROP-VALUE", is_many=True
    ),
    Option(
        "producer.config",
        "(DEPRECATED) Use --command-config instead.",
        "CONFIG-FILE",
        is_deprecated=True,
        completes="file",
    ),
    Option("command-config", "A file of the producer's configuration.", "CONFIG-FILE", completes="file"),
    Option("print-metrics", "Print the producer's metrics at the end."),
    Option(
        "transactional-id",
        "Send in transactions with this id." + _OVER,
        "TRANSACTIONAL-ID",
    ),
    Option(
        "transaction-duration-ms",
        "Send in transactions, each of which is committed after this time; 3000 if only --transactional-id is given.",
        "TRANSACTION-DURATION",
        LONG,
    ),
    Option(
        "warmup-records",
        "The number of first records that a second summary leaves out.",
        "WARMUP-RECORDS",
        LONG,
        0,
    ),
    Option("reporting-interval", "The milliseconds between progress lines.", "INTERVAL-MS", LONG, 5000),
    JSON,
)
TOOL = Tool(
    name="producer-perf-test",
    description="This tool is used to verify the producer performance. With --transactional-id or "
    "--transaction-duration-ms, or a transactional.id in the configuration, records are sent in transactions.",
    run=run,
    options=OPTIONS,
    grammar=Grammar.ARGPARSE4J,
    kafka_name="kafka-producer-perf-test",
    required_groups=("payload",),
    examples=(
        Example(
            "A million records of 100 bytes, as fast as possible",
            "--bootstrap-server localhost:9092 --topic test --num-records 1000000 --record-size 100 --throughput -1",
        ),
        Example(
            "10,000 records per second, compressed and lingering",
            "--bootstrap-server localhost:9092 --topic test --num-records 100000 --record-size 1000 "
            "--throughput 10000 --command-property compression.type=lz4 linger.ms=10",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
