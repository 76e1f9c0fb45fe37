"""The tool `kafka-consumer-perf-test`: measures how fast a consumer reads a topic."""

from __future__ import annotations

import random
import re
from typing import Any

from kafkapy.client import Consumer, ConsumerRecord, TopicPartition
from kafkapy.protocol.message_json import json_text
from kafkapy.tools import perf_options
from kafkapy.tools.bootstrap import BOOTSTRAP_SERVER, JSON, ZOOKEEPER_AND_SERVERS, await_broker
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.java_date import JavaDateFormat
from kafkapy.tools.json_events import wall_ms
from kafkapy.tools.metric_table import print_metrics
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError, UsageError
from kafkapy.tools.perf_options import read_configuration, record_count, warn_of_deprecated_flags
from kafkapy.tools.progress import Progress
from kafkapy.tools.tool import Termination, run_tool, stops_by

MEGABYTE = 1024 * 1024
POLL_S = 0.1
_HEADER = (
    "{}, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, "
    "fetch.nMsg.sec"
)


def check(arguments: Arguments) -> None:
    """Raises UsageError for flags that are missing or exclude each other, and ToolError for an interval of 0.

    Prints warnings of deprecated flags.
    """
    arguments.require_one_of("messages", "num-records")
    arguments.require("bootstrap-server")
    arguments.require_one_of("topic", "include")
    arguments.exclude("consumer.config", "command-config")
    warn_of_deprecated_flags(arguments)
    if not re.fullmatch(r"\d+", arguments["reporting-interval"]):
        value = arguments["reporting-interval"]
        raise UsageError(f"Cannot parse argument '{value}' of option reporting-interval")
    if int(arguments["reporting-interval"]) <= 0:
        raise ToolError("Reporting interval must be greater than 0.")


def consumer_properties(arguments: Arguments) -> dict[str, Any]:
    """Returns the consumer's configuration: the properties that the flags name, and the group, fetch size and reset."""
    properties = read_configuration(arguments, "perf-consumer-client")
    group = arguments["group"] if arguments.has("group") else f"perf-consumer-{random.randrange(100000)}"
    return properties | {
        "group.id": group,
        "max.partition.fetch.bytes": str(arguments["fetch-size"]),
        "auto.offset.reset": "latest" if arguments["from-latest"] else "earliest",
    }


class JoinTimes:
    """A rebalance listener that measures how long the consumer is without partitions, in ms.

    `total_ms` is the time of all rebalances, and `round_ms` the time of those in the present reporting interval.
    """

    def __init__(self) -> None:
        self._assigned: set[TopicPartition] = set()
        self._since_ms = wall_ms()
        self.total_ms = 0
        self.round_ms = 0

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self._assigned.difference_update(partitions)
        if not self._assigned:
            self._since_ms = wall_ms()

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        if not self._assigned:
            elapsed = wall_ms() - self._since_ms
            self.total_ms += elapsed
            self.round_ms += elapsed
        self._assigned.update(partitions)

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self.on_partitions_revoked(partitions)


def per_second(amount: float, elapsed_ms: int) -> float:
    """Returns `amount` divided by the time in seconds. If `elapsed_ms` is 0, returns infinity, or NaN if both are 0."""
    if elapsed_ms:
        return amount * 1000.0 / elapsed_ms
    return float("inf") if amount else float("nan")


def shown_decimal(number: float) -> str:
    """Formats a number as `%.4f` does in Java."""
    if number != number:
        return "NaN"
    return "Infinity" if number == float("inf") else f"{number:.4f}"


class ConsumerTest:
    """One run of the test. Not thread-safe, but a signal's handler may call `stop`."""

    def __init__(self, consumer: Consumer, arguments: Arguments, dates: JavaDateFormat) -> None:
        self._consumer = consumer
        self._wanted: int = record_count(arguments)
        self._timeout_ms: int = arguments["timeout"]
        self._interval_ms = int(arguments["reporting-interval"])
        self._shows_details: bool = arguments["show-detailed-stats"]
        self._dates = dates
        self._is_stopped = False
        self.joins = JoinTimes()
        self.count = 0
        self.bytes = 0

    def stop(self) -> None:
        """Makes `read_all` return after its current poll."""
        self._is_stopped = True

    def read_all(self) -> None:
        """Reads until the wanted number of records has arrived, until no record arrives in time, or until `stop` is
        called."""
        self.start_ms = reported_ms = consumed_ms = now = wall_ms()
        reported_count = reported_bytes = 0
        with Progress(self._wanted, "records") as progress:
            while self.count < self._wanted and now - consumed_ms <= self._timeout_ms and not self._is_stopped:
                records = self._consumer.poll(POLL_S)
                now = wall_ms()
                if not records:
                    continue
                consumed_ms = now
                self.count += len(records)
                self.bytes += sum(map(content_size, records))
                progress.advance(len(records))
                if now - reported_ms >= self._interval_ms:
                    if self._shows_details:
                        progress.clear()
                        self._report(reported_ms, now, self.count - reported_count, self.bytes - reported_bytes)
                    self.joins.round_ms = 0
                    reported_ms, reported_count, reported_bytes = now, self.count, self.bytes
        self.end_ms = wall_ms()
        if self.count < self._wanted and not self._is_stopped:
            print(
                "WARNING: Exiting before consuming the expected number of records: timeout "
                f"({self._timeout_ms} ms) exceeded. You can use the --timeout option to increase the timeout."
            )

    def _report(self, start_ms: int, end_ms: int, count: int, size: int) -> None:
        """Prints the line of the reporting interval from `start_ms` to `end_ms`, with its records and bytes."""
        fetch_ms = end_ms - start_ms - self.joins.round_ms
        megabytes = size / MEGABYTE
        fetch_rates = (0.0, 0.0) if fetch_ms <= 0 else (per_second(megabytes, fetch_ms), per_second(count, fetch_ms))
        cells = [
            self._dates.format(end_ms),
            "0",
            shown_decimal(self.bytes / MEGABYTE),
            shown_decimal(per_second(megabytes, end_ms - start_ms)),
            str(self.count),
            shown_decimal(per_second(count, end_ms - start_ms)),
            str(self.joins.round_ms),
            str(fetch_ms),
            *map(shown_decimal, fetch_rates),
        ]
        print(", ".join(cells), flush=True)

    def totals(self) -> dict[str, Any]:
        """Returns the values of the summary, by the names of its columns."""
        elapsed_ms = self.end_ms - self.start_ms
        fetch_ms = elapsed_ms - self.joins.total_ms
        megabytes = self.bytes / MEGABYTE
        return {
            "start.time": self._dates.format(self.start_ms),
            "end.time": self._dates.format(self.end_ms),
            "data.consumed.in.MB": megabytes,
            "MB.sec": per_second(megabytes, elapsed_ms),
            "data.consumed.in.nMsg": self.count,
            "nMsg.sec": per_second(self.count, elapsed_ms),
            "rebalance.time.ms": self.joins.total_ms,
            "fetch.time.ms": fetch_ms,
            "fetch.MB.sec": per_second(megabytes, fetch_ms),
            "fetch.nMsg.sec": per_second(self.count, fetch_ms),
        }


def content_size(record: ConsumerRecord) -> int:
    """Returns the number of bytes of a record's key and value."""
    return len(record.key or b"") + len(record.value or b"")


def run(arguments: Arguments) -> int:
    """Runs the test and prints its results; returns 0, the exit code."""
    check(arguments)
    dates = JavaDateFormat(arguments["date-format"])
    properties = consumer_properties(arguments)
    await_broker(properties)
    if not arguments["hide-header"] and not arguments["json"]:
        print(_HEADER.format("time, threadId" if arguments["show-detailed-stats"] else "start.time, end.time"))
    with Consumer(properties) as consumer:
        test = ConsumerTest(consumer, arguments, dates)
        topics = [arguments["topic"]] if arguments.has("topic") else re.compile(rf"\A(?:{arguments['include']})\Z")
        consumer.subscribe(topics, test.joins)
        with stops_by(test.stop) as signals:
            test.read_all()
    totals = test.totals()
    if arguments["json"]:
        print(json_text(totals))
    elif not arguments["show-detailed-stats"]:
        print(", ".join(shown_decimal(each) if isinstance(each, float) else str(each) for each in totals.values()))
    if arguments["print-metrics"]:
        client_id, times = properties["client.id"], consumer.throttle_times
        print_metrics(
            {
                f"consumer-fetch-manager-metrics:records-consumed-total:{{client-id={client_id}}}": test.count,
                f"consumer-fetch-manager-metrics:bytes-consumed-total:{{client-id={client_id}}}": test.bytes,
                f"consumer-fetch-manager-metrics:fetch-throttle-time-avg:{{client-id={client_id}}}": times.average_ms,
                f"consumer-fetch-manager-metrics:fetch-throttle-time-max:{{client-id={client_id}}}": times.max_ms,
            }
        )
    if signals:
        raise Termination(signals[0])
    return 0


OPTIONS = (
    BOOTSTRAP_SERVER,
    ZOOKEEPER_AND_SERVERS,
    Option("topic", "The topic to read.", "topic"),
    Option("include", "A regular expression; topics whose whole name matches it are read.", "Java regex (String)"),
    Option("group", "The group to read in; by default a new group.", "gid"),
    Option(
        "fetch-size", "max.partition.fetch.bytes: the bytes of a partition in one response.", "size", INTEGER, 1048576
    ),
    Option("command-property", "A configuration key of the consumer, as key=value; may be repeated.", "prop1=val1"),
    Option("from-latest", "Begin with new records, unless the group has committed an offset."),
    Option("print-metrics", "Print the consumer's metrics at the end."),
    Option("show-detailed-stats", "Print a line in each reporting interval instead of a summary."),
    *perf_options.OPTIONS,
    JSON,
)
TOOL = Tool(
    name="consumer-perf-test",
    description="This tool is used to verify the consumer performance.",
    run=run,
    options=OPTIONS,
    examples=(
        Example("Read a million records", "--bootstrap-server localhost:9092 --topic test --num-records 1000000"),
        Example(
            "A progress line every second",
            "--bootstrap-server localhost:9092 --topic test --num-records 1000000 --show-detailed-stats "
            "--reporting-interval 1000",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
