"""The tool `kafkapy probe`: sends records through a broker, reads them back, and prints how long that takes.

It measures the latency and failures that a client experiences. If --listen is given, it also serves the results as
metrics for Prometheus. A record's key identifies the probe and its value is the record's number, so that several probes
may share a topic.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Protocol

from kafkapy.client import Consumer, Producer, TopicPartition
from kafkapy.config.properties import read_properties
from kafkapy.errors import ApiError
from kafkapy.metrics import probe_table as table
from kafkapy.metrics.http_server import HttpServer, Response
from kafkapy.metrics.metric import Metric
from kafkapy.metrics.page import PAGE_TYPE, Page
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.bootstrap import BOOTSTRAP_SERVER, COMMAND_CONFIG, await_broker
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import DOUBLE, INTEGER, TEXT, Arguments, Option, ToolError, UsageError
from kafkapy.tools.tool import run_tool

DEFAULT_TOPIC = "kafkapy-probe"
ENDS_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)

OPTIONS = (
    BOOTSTRAP_SERVER,
    COMMAND_CONFIG,
    Option(
        "topic",
        "The topic of the records, created if the broker creates topics automatically; it is not deleted afterwards.",
        "topic",
        TEXT,
        DEFAULT_TOPIC,
    ),
    Option("interval", "The seconds from one record to the next.", "seconds", DOUBLE, 1.0),
    Option("timeout", "The seconds after which a record counts as failed.", "seconds", DOUBLE, 5.0),
    Option(
        "count", "End after this many records; without it the probe runs until it is interrupted.", "number", INTEGER
    ),
    Option(
        "listen",
        "Serve the measurements to Prometheus at this host:port, or at this port of the loopback address.",
        "address",
    ),
    Option(
        "csv", "Print CSV: time, outcome, milliseconds to the acknowledgement and to the read, reason of a failure."
    ),
    Option("quiet", "Print failures only."),
)


class Outcome(NamedTuple):
    """The times of one record, in seconds: from sending until it was acknowledged, and from sending until it was read.

    A time is None if the record was not acknowledged, or not read, within the timeout or because of an error. `reason`
    then has the error's text; otherwise it is "".
    """

    produced_s: float | None
    read_s: float | None
    reason: str = ""


class Path(Protocol):
    """An object that sends a record and reads it back: a `BrokerPath`, or a simulation in tests.

    `send` sends the record with the given number and returns its outcome; `close` closes the clients that the path
    uses.
    """

    def send(self, number: int) -> Outcome: ...

    def close(self) -> None: ...


class BrokerPath:
    """The path through a broker: a producer, and a consumer that reads the topic's new records. Not thread-safe."""

    def __init__(self, properties: Mapping[str, Any], topic: str, timeout_s: float) -> None:
        self._key = f"{os.uname().nodename}-{os.getpid()}-{time.time_ns()}".encode()
        self._topic = topic
        self._timeout_s = timeout_s
        timeout_ms = max(1, int(timeout_s * 1000))
        self._producer = Producer(
            {
                **properties,
                "key.serializer": "bytes",
                "value.serializer": "bytes",
                "request.timeout.ms": timeout_ms,
                "acks": "all",
                "linger.ms": 0,
                "max.block.ms": timeout_ms,
                "delivery.timeout.ms": timeout_ms,
            }
        )
        self._consumer = Consumer(
            {
                **properties,
                "key.deserializer": "bytes",
                "value.deserializer": "bytes",
                "request.timeout.ms": timeout_ms,
                "default.api.timeout.ms": timeout_ms,
                "enable.auto.commit": False,
                "auto.offset.reset": "latest",
            }
        )
        self._is_reading = False

    def send(self, number: int) -> Outcome:
        """Sends record `number` and waits until it is read, at most for the timeout.

        Returns the times that were measured. An error or the end of the timeout is part of the outcome, not raised.
        """
        deadline_s = time.monotonic() + self._timeout_s
        try:
            if not self._is_reading:
                self._begin_reading()
            began_s = time.monotonic()
            future = self._producer.send(self._topic, b"%d" % number, key=self._key)
            future.result(max(0.001, deadline_s - began_s))
            produced_s = time.monotonic() - began_s
        except (ApiError, TimeoutError, OSError) as error:
            return Outcome(None, None, str(error) or type(error).__name__)
        while time.monotonic() < deadline_s:
            try:
                records = self._consumer.poll(max(0.001, deadline_s - time.monotonic()))
            except (ApiError, TimeoutError, OSError) as error:
                return Outcome(produced_s, None, str(error) or type(error).__name__)
            if any(record.key == self._key and record.value == b"%d" % number for record in records):
                return Outcome(produced_s, time.monotonic() - began_s)
        return Outcome(produced_s, None, "the record was acknowledged and could not be read in time")

    def _begin_reading(self) -> None:
        """Assigns all partitions of the topic to the consumer, and looks up their end offsets.

        It does so before the first record is sent, so that the consumer reads only records that were sent later.
        """
        partitions = [
            TopicPartition(self._topic, each.partition) for each in self._producer.partitions_for(self._topic)
        ]
        self._consumer.assign(partitions)
        for partition in partitions:
            self._consumer.position(partition)
        self._is_reading = True

    def close(self) -> None:
        self._producer.close(1.0)
        self._consumer.close()


class Measurements:
    """The counts and times of all records. The probe's thread adds them, the thread of the metrics page reads them."""

    def __init__(self) -> None:
        self.attempts = 0
        self.failures = 0
        self.is_up = False
        self.last_success_s = 0.0
        self._seconds: dict[str, list[float]] = {metric.name: [] for metric in (table.PRODUCE_SECONDS, table.SECONDS)}
        self._buckets = {name: [0] * (len(ENDS_S) + 1) for name in self._seconds}
        self._sums = dict.fromkeys(self._seconds, 0.0)

    def add(self, outcome: Outcome, wall_s: float) -> None:
        """Counts a record, and records its times; `wall_s` is the present time in seconds since 1970."""
        self.attempts += 1
        self.is_up = outcome.read_s is not None
        if outcome.produced_s is not None:
            self._observe(table.PRODUCE_SECONDS, outcome.produced_s)
        if outcome.read_s is None:
            self.failures += 1
        else:
            self.last_success_s = wall_s
            self._observe(table.SECONDS, outcome.read_s)

    def _observe(self, metric: Metric, seconds: float) -> None:
        self._buckets[metric.name][bisect_left(ENDS_S, seconds)] += 1
        self._sums[metric.name] += seconds

    def page(self) -> Response:
        """Returns the measurements as a page in Prometheus's text format."""
        page = Page()
        page.one(table.ATTEMPTS, self.attempts)
        page.one(table.FAILURES, self.failures)
        page.one(table.UP, int(self.is_up))
        page.one(table.LAST_SUCCESS, self.last_success_s)
        for metric in (table.PRODUCE_SECONDS, table.SECONDS):
            page.begin(metric)
            page.histogram(metric, (), ENDS_S, list(accumulate(self._buckets[metric.name])), self._sums[metric.name])
        return Response(memoryview(page.native), content_type=PAGE_TYPE)


class Report:
    """Prints a line for each record, as text or CSV, to standard output."""

    def __init__(self, *, as_csv: bool, only_failures: bool) -> None:
        self._csv = csv.writer(sys.stdout, lineterminator="\n") if as_csv else None
        self._only_failures = only_failures
        if self._csv is not None:
            self._csv.writerow(("time", "outcome", "produce_ms", "end_to_end_ms", "reason"))

    def print_line(self, outcome: Outcome, wall_s: float) -> None:
        """Prints the outcome of one record, with the time `wall_s` in seconds since 1970.

        Prints nothing for a record that was read if the report was created with `only_failures`.
        """
        is_good = outcome.read_s is not None
        if is_good and self._only_failures:
            return
        shown = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(wall_s))
        produced, read = _milliseconds(outcome.produced_s), _milliseconds(outcome.read_s)
        if self._csv is not None:
            self._csv.writerow((shown, "ok" if is_good else "failed", produced, read, outcome.reason))
        elif is_good:
            print(f"{shown} ok: acknowledged in {produced} ms, read in {read} ms")
        else:
            print(f"{shown} failed: {outcome.reason}")
        sys.stdout.flush()


def _milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1000:.2f}"


def probe(
    path: Path,
    measurements: Measurements,
    report: Report,
    *,
    interval_s: float,
    count: int | None,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Sends `count` records by `path`, one each `interval_s` seconds, and returns how many were not read in time.

    Sends records without end if `count` is None. Adds each outcome to `measurements`, and prints it by `report`.
    """
    number = 0
    while count is None or number < count:
        began_s = time.monotonic()
        outcome = path.send(number)
        measurements.add(outcome, time.time())
        report.print_line(outcome, time.time())
        number += 1
        if number != count:
            sleep(max(0.0, began_s + interval_s - time.monotonic()))
    return measurements.failures


def run(arguments: Arguments) -> int:
    """Probes the broker; returns the exit code: 1 if at least one record was not read in time, otherwise 0."""
    arguments.require("bootstrap-server")
    for name in ("interval", "timeout"):
        if arguments[name] <= 0:
            raise UsageError(f"--{name} takes a number of seconds above 0")
    properties = read_properties(arguments["command-config"]) if arguments.has("command-config") else {}
    properties["bootstrap.servers"] = arguments["bootstrap-server"]
    measurements = Measurements()
    server = _serve(arguments["listen"], measurements) if arguments.has("listen") else None
    if server is None:
        await_broker(properties)
    path = BrokerPath(properties, arguments["topic"], arguments["timeout"])
    report = Report(as_csv=arguments["csv"], only_failures=arguments["quiet"])
    try:
        failures = probe(path, measurements, report, interval_s=arguments["interval"], count=arguments["count"])
    finally:
        path.close()
        if server is not None:
            server.close()
    return 1 if failures else 0


def _serve(address: str, measurements: Measurements) -> HttpServer:
    try:
        server = HttpServer(address)
    except ValueError as error:
        raise UsageError(f"--listen: {error}") from error
    except OSError as error:
        raise ToolError(error.strerror or str(error)) from error
    server.start({"/metrics": measurements.page})
    return server


TOOL = Tool(
    name="probe",
    description="Sends records through a broker, reads them back, and prints how long that takes. Runs until it is "
    "interrupted, or until --count records are sent.\n"
    "Creates the topic kafkapy-probe, or the one of --topic, if the broker creates topics automatically, and does not "
    "delete it.\n"
    "Exit codes: 0 if all records were read in time, 1 if one failed or there is no broker, 130 or 143 if interrupted.",
    run=run,
    options=OPTIONS,
    examples=(
        Example("Ten records, a second apart", "--bootstrap-server localhost:9092 --count 10"),
        Example(
            "Until interrupted, with metrics for Prometheus", "--bootstrap-server localhost:9092 --listen 9405 --quiet"
        ),
    ),
)


def main(arguments: Sequence[str]) -> int:
    return run_tool(TOOL, arguments)
