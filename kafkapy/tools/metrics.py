"""`kafkapy metrics`: prints the metrics of a running broker, once or again and again.

It asks the broker's metrics listener (`kafkapy.metrics.listener`), or any other page in Prometheus's format.
"""

from __future__ import annotations

import csv
import re
import sys
import time
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection, HTTPException
from typing import NamedTuple
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from kafkapy.config.properties import read_properties
from kafkapy.metrics.http_server import parse_address
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import DOUBLE, INTEGER, Arguments, Option, ToolError, UsageError
from kafkapy.tools.tool import run_tool

DEFAULT_URL = "http://localhost:9404/metrics"
LISTENER_KEY = "kafkapy.metrics.listener"
TIMEOUT_S = 30
# A listener on these is asked where every machine is itself.
EVERY_ADDRESS = ("0.0.0.0", "::")
# A page is read up to here; one of 2,000 topics has about three megabytes.
LARGEST_PAGE = 1 << 28
COUNTED = ("_total", "_count", "_sum", "_bucket")

OPTIONS = (
    Option("url", f"Where the page is, {DEFAULT_URL} unless --config says otherwise.", "url"),
    Option("config", f"The broker's configuration file: its {LISTENER_KEY} is asked.", "file", completes="file"),
    Option("match", "Only series in whose name and labels this regular expression is found.", "expression"),
    Option("follow", "Print again every so many seconds; of what only grows, how fast it grew.", "seconds", DOUBLE),
    Option("count", "With --follow: end after so many pages.", "number", INTEGER),
    Option("csv", "Print lines of time, name, labels and value, for a spreadsheet."),
)


class Series(NamedTuple):
    """One number of a page."""

    name: str
    labels: str
    value: float

    @property
    def only_grows(self) -> bool:
        return self.name.endswith(COUNTED)


def page_url(arguments: Arguments) -> str:
    """UsageError or ToolError if it is not clear whom to ask."""
    if arguments.has("url") and arguments.has("config"):
        raise UsageError("--url and --config cannot be used together")
    if not arguments.has("config"):
        return str(arguments["url"] or DEFAULT_URL)
    listener = read_properties(arguments["config"]).get(LISTENER_KEY, "")
    if not listener:
        raise ToolError(f"{arguments['config']} sets no {LISTENER_KEY}: this broker has no metrics page")
    try:
        host, port = parse_address(listener)
    except ValueError as error:
        raise ToolError(f"{LISTENER_KEY} in {arguments['config']}: {error}") from error
    if host in EVERY_ADDRESS:
        host = "localhost"
    return f"http://[{host}]:{port}/metrics" if ":" in host else f"http://{host}:{port}/metrics"


def fetch(url: str) -> str:
    """The text of the page; ToolError with one sentence if it cannot be had."""
    try:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        port = parts.port or 80
    except ValueError:  # brackets that are not closed, a port that is no number
        parts, port = urlsplit(""), 0
    if parts.scheme != "http" or not parts.hostname:
        raise ToolError(f"{url} is not the address of a page: accepted is http://host:port/metrics")
    path = parts.path if parts.path not in ("", "/") else "/metrics"
    connection = HTTPConnection(parts.hostname, port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        text = response.read(LARGEST_PAGE).decode("utf-8", "replace")
    except (OSError, HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ToolError(f"{url} cannot be read: {reason}") from error
    finally:
        connection.close()
    if response.status != 200:
        raise ToolError(f"{url} cannot be read: {response.status} {response.reason}")
    return text


def read_series(text: str, wanted: re.Pattern[str]) -> list[Series]:
    """ToolError for what is no page of metrics."""
    found: list[Series] = []
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
                if wanted.search(f"{sample.name}{{{labels}}}"):
                    found.append(Series(sample.name, labels, sample.value))
    except ValueError as error:
        raise ToolError(f"the page is not in Prometheus's format: {error}") from error
    return found


class Printer:
    """Prints page after page. With `rates`, of what only grows the difference to the page before, in a second."""

    def __init__(self, *, as_csv: bool, rates: bool) -> None:
        self._csv = csv.writer(sys.stdout, lineterminator="\n") if as_csv else None
        self._rates = rates
        self._before: dict[tuple[str, str], float] = {}
        self._before_s = 0.0
        if self._csv is not None:
            self._csv.writerow(("time", "metric", "labels", "value"))

    def print_page(self, series: list[Series], now_s: float) -> None:
        shown = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(now_s))
        if self._rates and self._csv is None:
            print(f"-- {shown}")
        for name, labels, value in self._values(series, now_s):
            if self._csv is not None:
                self._csv.writerow((shown, name, labels, f"{value:g}" if value % 1 else f"{value:.0f}"))
            else:
                print(f"{name}{{{labels}}} {value:.10g}" if labels else f"{name} {value:.10g}")
        sys.stdout.flush()

    def _values(self, series: list[Series], now_s: float) -> Iterator[tuple[str, str, float]]:
        before, self._before = self._before, {}
        passed_s = now_s - self._before_s
        self._before_s = now_s
        for each in series:
            if not (self._rates and each.only_grows):
                yield each
                continue
            key = (each.name, each.labels)
            self._before[key] = each.value
            if key in before:
                yield f"{each.name}:per_second", each.labels, max(0.0, each.value - before[key]) / passed_s


def run(arguments: Arguments) -> int:
    url = page_url(arguments)
    try:
        wanted = re.compile(arguments["match"] or "")
    except re.error as error:
        raise UsageError(f"--match: {error}") from error
    interval_s = arguments["follow"]
    if interval_s is not None and interval_s <= 0:
        raise UsageError("--follow takes a number of seconds above 0")
    printer = Printer(as_csv=arguments["csv"], rates=interval_s is not None)
    left = arguments["count"]
    while True:
        printer.print_page(read_series(fetch(url), wanted), time.time())
        left = None if left is None else left - 1
        if interval_s is None or left == 0:
            return 0
        time.sleep(interval_s)


TOOL = Tool(
    name="metrics",
    description="Prints the metrics of a running broker, whose configuration has to name a metrics listener.",
    run=run,
    options=OPTIONS,
    needs_arguments=False,
    examples=(
        Example("everything, once", "--config /etc/kafkapy/server.properties"),
        Example("what goes in and out, every five seconds", "--follow 5 --match 'bytes(in|out)_total'"),
        Example("the lag of a group, as a table", "--match 'consumergroup_lag.*readers' --follow 10 --csv"),
    ),
)


def main(arguments: Sequence[str]) -> int:
    return run_tool(TOOL, arguments)
