"""The tool `kafka-share-consumer-perf-test`: measures how fast share consumers read a topic."""

from __future__ import annotations

import threading
from typing import Any

from kafkapy.client import ShareConsumer
from kafkapy.protocol.message_json import json_text
from kafkapy.tools import perf_options
from kafkapy.tools.bootstrap import BOOTSTRAP_SERVER, JSON, await_broker
from kafkapy.tools.consumer_perf_test import MEGABYTE, POLL_S, content_size, per_second, shown_decimal
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.java_date import JavaDateFormat
from kafkapy.tools.json_events import wall_ms
from kafkapy.tools.metric_table import print_metrics
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError, UsageError
from kafkapy.tools.perf_options import read_configuration, record_count, warn_of_deprecated_flags
from kafkapy.tools.progress import Progress
from kafkapy.tools.tool import Termination, run_tool, stops_by

_SHARE_HEADER = "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, fetch.time.ms"


def check(arguments: Arguments) -> None:
    """Raises UsageError for flags that are missing or exclude each other, and ToolError for an interval of 0.

    Prints warnings of deprecated flags.
    """
    arguments.require("topic", "bootstrap-server")
    arguments.require_one_of("messages", "num-records")
    arguments.exclude("consumer.config", "command-config")
    warn_of_deprecated_flags(arguments)
    if not str(arguments["reporting-interval"]).isdigit():
        raise UsageError(f"Value [{arguments['reporting-interval']}] did not match regex [^\\d+$]")
    if int(arguments["reporting-interval"]) <= 0:
        raise ToolError("Reporting interval must be greater than 0.")


def consumer_properties(arguments: Arguments) -> dict[str, Any]:
    """Returns the configuration of the share consumers, with the group and the fetch size that the flags name."""
    properties = read_configuration(arguments, "perf-share-consumer-client")
    return properties | {"group.id": arguments["group"], "fetch.max.bytes": str(arguments["fetch-size"])}


class Reader:
    """One share consumer of the test, which reads on a thread of its own."""

    def __init__(self, test: ShareConsumerTest, properties: dict[str, Any], number: int) -> None:
        self._test = test
        self._number = number
        self.client_id: str = properties["client.id"]
        self.consumer = ShareConsumer(properties)
        self.count = 0
        self.bytes = 0
        self.error: Exception | None = None
        self.thread = threading.Thread(target=self._run, name=self.client_id)

    def _run(self) -> None:
        try:
            self._read()
        except Exception as error:
            self.error = error
            self._test.stop()

    def _read(self) -> None:
        test = self._test
        reported_ms = consumed_ms = now = wall_ms()
        reported_count = reported_bytes = 0
        while test.wants_more and now - consumed_ms <= test.timeout_ms:
            records = self.consumer.poll(POLL_S)
            now = wall_ms()
            if not records:
                continue
            consumed_ms = now
            size = sum(map(content_size, records))
            self.count += len(records)
            self.bytes += size
            test.add(len(records), size)
            if now - reported_ms >= test.interval_ms:
                if test.shows_details:
                    self._report(reported_ms, now, self.count - reported_count, self.bytes - reported_bytes)
                reported_ms, reported_count, reported_bytes = now, self.count, self.bytes

    def _report(self, start_ms: int, end_ms: int, count: int, size: int) -> None:
        elapsed_ms = end_ms - start_ms
        dates = self._test.dates
        rates = (self.bytes / MEGABYTE, per_second(size / MEGABYTE, elapsed_ms), per_second(count, elapsed_ms))
        cells = [dates.format(start_ms), dates.format(end_ms), *map(shown_decimal, rates), str(self.count)]
        self._test.print(f"{', '.join(cells)}, {elapsed_ms} for share consumer {self._number}")


class ShareConsumerTest:
    """One run of the test. `stop` may be called by any thread, and by a signal's handler."""

    def __init__(self, properties: dict[str, Any], arguments: Arguments, dates: JavaDateFormat) -> None:
        self._wanted: int = record_count(arguments)
        self._topic: str = arguments["topic"]
        self.timeout_ms: int = arguments["timeout"]
        self.interval_ms = int(arguments["reporting-interval"])
        self.shows_details: bool = arguments["show-detailed-stats"]
        self.dates = dates
        self._is_stopped = False
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self.count = 0
        self.bytes = 0
        count = arguments["threads"]
        names = [properties["client.id"] if count == 1 else f"{properties['client.id']}-{n + 1}" for n in range(count)]
        self.readers = [Reader(self, {**properties, "client.id": name}, number) for number, name in enumerate(names, 1)]

    @property
    def wants_more(self) -> bool:
        """Returns whether the readers should poll again: too few records have been read, and `stop` was not called."""
        return self.count < self._wanted and not self._is_stopped

    def stop(self) -> None:
        """Makes all readers stop after their current poll."""
        self._is_stopped = True

    def add(self, count: int, size: int) -> None:
        """Adds `count` records of `size` bytes in total that one poll of a reader returned. Any thread may call it."""
        with self._lock:
            self.count += count
            self.bytes += size
            if self._progress is not None:
                self._progress.advance(count)

    def print(self, line: str) -> None:
        """Prints a reader's line of output, after erasing the progress bar. Any thread may call it."""
        with self._lock:
            if self._progress is not None:
                self._progress.clear()
            print(line, flush=True)

    def run(self) -> None:
        """Runs all readers until the wanted number of records was read, no record arrives in time, or `stop` is called.

        Prints a warning if no record arrived in time. Raises the first error of a reader.
        """
        self.start_ms = wall_ms()
        with Progress(self._wanted, "records") as self._progress:
            for reader in self.readers:
                reader.consumer.subscribe(self._topic)
                reader.thread.start()
            for reader in self.readers:
                reader.thread.join()
        self._progress = None
        self.end_ms = wall_ms()
        for reader in self.readers:
            if reader.error is not None:
                raise reader.error
        if self.count < self._wanted and not self._is_stopped:
            print(
                "WARNING: Exiting before consuming the expected number of records: timeout "
                f"({self.timeout_ms} ms) exceeded. You can use the --timeout option to increase the timeout."
            )

    def summary(self, count: int, size: int) -> str:
        """Returns the line for `count` records of `size` bytes in all.

        Its cells are the times of the start and the end, MB, MB per second, records per second, records, and the ms
        from start to end.
        """
        elapsed_ms = self.end_ms - self.start_ms
        megabytes = size / MEGABYTE
        rates = (megabytes, per_second(megabytes, elapsed_ms), per_second(count, elapsed_ms))
        cells = [self.dates.format(self.start_ms), self.dates.format(self.end_ms), *map(shown_decimal, rates)]
        return f"{', '.join(cells)}, {count}, {elapsed_ms}"


def run(arguments: Arguments) -> int:
    """Runs the test and prints its results; returns 0, the exit code."""
    check(arguments)
    dates = JavaDateFormat(arguments["date-format"])
    properties = consumer_properties(arguments)
    await_broker(properties)
    if not arguments["hide-header"] and not arguments["json"]:
        print(_SHARE_HEADER)
    test = ShareConsumerTest(properties, arguments, dates)
    try:
        with stops_by(test.stop) as signals:
            test.run()
        for reader in test.readers:
            reader.consumer.commit()
    finally:
        for reader in test.readers:
            reader.consumer.close(0.5)
    if arguments["show-consumer-stats"]:
        for number, reader in enumerate(test.readers, 1):
            shown = test.summary(reader.count, reader.bytes)
            print(f"Share consumer {number} having client id {reader.client_id} consumption metrics- {shown}")
    if arguments["json"]:
        elapsed_ms = test.end_ms - test.start_ms
        print(json_text({"records": test.count, "bytes": test.bytes, "fetch.time.ms": elapsed_ms}))
    else:
        print(test.summary(test.count, test.bytes))
    if arguments["print-metrics"]:
        for reader in test.readers:
            group = "consumer-share-fetch-manager-metrics"
            print_metrics(
                {
                    f"{group}:bytes-consumed-total:{{client-id={reader.client_id}}}": reader.bytes,
                    f"{group}:records-consumed-total:{{client-id={reader.client_id}}}": reader.count,
                }
            )
    if signals:
        raise Termination(signals[0])
    return 0


OPTIONS = (
    BOOTSTRAP_SERVER,
    Option("topic", "REQUIRED: The topic to read.", "topic"),
    Option("group", "The share group to read in.", "gid", default="perf-share-consumer"),
    Option("fetch-size", "fetch.max.bytes: the bytes of one response.", "size", INTEGER, 1048576),
    Option("command-property", "A configuration key of the consumers, as key=value; may be repeated.", "prop1=val1"),
    Option("print-metrics", "Print the consumers' metrics at the end."),
    Option("show-detailed-stats", "Print a line of each consumer in each reporting interval."),
    Option("threads", "The number of share consumers, each on a thread of its own.", "count", INTEGER, 1),
    Option("show-consumer-stats", "Print a summary of each share consumer too."),
    *perf_options.OPTIONS,
    JSON,
)
TOOL = Tool(
    name="share-consumer-perf-test",
    description="This tool is used to verify the share consumer performance.",
    run=run,
    options=OPTIONS,
    examples=(
        Example(
            "Read a million records with three share consumers",
            "--bootstrap-server localhost:9092 --topic test --group perf --num-records 1000000 --threads 3",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
