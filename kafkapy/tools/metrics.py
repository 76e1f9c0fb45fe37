"""The tool `kafkapy metrics`: prints the metrics of a running broker, once or repeatedly.

It reads the page of the broker's metrics listener (`kafkapy.metrics.listener`), or any page in Prometheus's format.
"""

from __future__ import annotations

import base64
import csv
import re
import sys
import time
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ssl import SSLContext
from urllib.parse import unquote, urlsplit

from prometheus_client.parser import text_string_to_metric_families

from kafkapy.config.properties import read_properties
from kafkapy.errors import ConfigError
from kafkapy.metrics.http_server import parse_address
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import DOUBLE, INTEGER, Arguments, Option, ToolError, UsageError
from kafkapy.tools.tool import run_tool

DEFAULT_URL = "http://localhost:9404/metrics"
LISTENER_KEY = "kafkapy.metrics.listener"
TLS_KEY = "kafkapy.metrics.tls.enable"
USER_KEY, PASSWORD_KEY = "kafkapy.metrics.username", "kafkapy.metrics.password"
TIMEOUT_S = 30
# Addresses of a listener on every interface, which is reached as localhost.
EVERY_ADDRESS = ("0.0.0.0", "::")
# The largest number of bytes read of a page; the page of 2,000 topics has about three megabytes.
LARGEST_PAGE = 1 << 28
COUNTED = ("_total", "_count", "_sum", "_bucket")

OPTIONS = (
    Option(
        "url",
        f"The address of the page, {DEFAULT_URL} without --config; https, and user:password@ are accepted.",
        "url",
    ),
    Option(
        "config",
        f"The broker's configuration file; its {LISTENER_KEY} is the address, with TLS and password if it has them.",
        "file",
        completes="file",
    ),
    Option(
        "match", "Print only series whose name and labels contain a match of this regular expression.", "expression"
    ),
    Option("follow", "Print a page at this interval, with counters as rates per second.", "seconds", DOUBLE),
    Option("count", "With --follow: end after this many pages.", "number", INTEGER),
    Option("csv", "Print CSV: time, metric, labels, value."),
)


class Series(NamedTuple):
    """A time series on a metrics page: its name, its labels as text, and its value."""

    name: str
    labels: str
    value: float

    @property
    def only_grows(self) -> bool:
        """Returns whether the series only grows. This is so if its name has the ending of a counter, or of a
        histogram's counts."""
        return self.name.endswith(COUNTED)


class PageAddress(NamedTuple):
    """The address of a metrics page, with TLS, user and password for it. Its representation hides the password."""

    url: str
    tls: SSLContext | None = None  # for https; None for the machine's authorities
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"PageAddress({self.url})"


def page_address(arguments: Arguments) -> PageAddress:
    """Returns the address of the metrics page that --url or the file of --config names, or the default address.

    Raises UsageError if both flags are given, and ToolError if the file names no valid metrics listener.
    """
    if arguments.has("url") and arguments.has("config"):
        raise UsageError("--url and --config cannot be used together")
    if not arguments.has("config"):
        return PageAddress(str(arguments["url"] or DEFAULT_URL))
    return address_in_file(str(arguments["config"]))


def address_in_file(path: str) -> PageAddress:
    """Returns the address of the metrics page of the broker whose configuration file is `path`.

    Raises ToolError if the file names no valid metrics listener.
    """
    properties = read_properties(path)
    listener = properties.get(LISTENER_KEY, "")
    if not listener:
        raise ToolError(f"{path} sets no {LISTENER_KEY}: this broker has no metrics page")
    try:
        host, port = parse_address(listener)
    except ValueError as error:
        raise ToolError(f"{LISTENER_KEY} in {path}: {error}") from error
    if host in EVERY_ADDRESS:
        host = "localhost"
    tls = _own_context(path) if properties.get(TLS_KEY, "").strip().lower() == "true" else None
    url = f"{'http' if tls is None else 'https'}://{f'[{host}]' if ':' in host else host}:{port}/metrics"
    return PageAddress(url, tls, properties.get(USER_KEY, ""), properties.get(PASSWORD_KEY, ""))


def _own_context(path: str) -> SSLContext:
    """Returns the TLS context of a client for the metrics listener of the broker whose configuration file is `path`.

    The broker's own certificate is trusted, and is the client's certificate if the listener asks for one. Raises
    ToolError if the configuration is invalid or its key store cannot be used.
    """
    from kafkapy.config.broker_config import BrokerConfig
    from kafkapy.config.listener_ssl import listener_ssl_settings
    from kafkapy.security.tls.python_context import client_context
    from kafkapy.security.tls.tls_material import load_material

    try:
        material = load_material(listener_ssl_settings(BrokerConfig.load(path), "METRICS", "SSL"), is_server=True)
        context = client_context(material._replace(trust_store=material.key_store))
    except ConfigError as error:
        raise ToolError(str(error)) from error
    context.check_hostname = False  # the certificate itself is trusted, so its names do not matter
    return context


def fetch(address: PageAddress) -> str:
    """Returns the text of a page. Raises ToolError if it cannot be read."""
    url = address.url
    try:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:  # unbalanced brackets, or a port that is not a number
        parts, port = urlsplit(""), 0
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ToolError(
            f"{_shown(url)} is not the address of a page: accepted is http://host:port/metrics, with https and "
            "user:password@ if the listener has them"
        )
    path = parts.path if parts.path not in ("", "/") else "/metrics"
    connection: HTTPConnection = (
        HTTPSConnection(parts.hostname, port, timeout=TIMEOUT_S, context=address.tls)
        if parts.scheme == "https"
        else HTTPConnection(parts.hostname, port, timeout=TIMEOUT_S)
    )
    user, password = unquote(parts.username or "") or address.user, unquote(parts.password or "") or address.password
    headers = {}
    if user:
        headers["Authorization"] = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        text = response.read(LARGEST_PAGE).decode("utf-8", "replace")
    except (OSError, HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ToolError(f"{_shown(url)} cannot be read: {reason}") from error
    finally:
        connection.close()
    if response.status != 200:
        raise ToolError(f"{_shown(url)} cannot be read: {response.status} {response.reason}")
    return text


def _shown(url: str) -> str:
    """Returns a URL without its password."""
    return re.sub(r"//[^/@]*@", "//", url)


def read_series(text: str, wanted: re.Pattern[str]) -> list[Series]:
    """Returns the series of a page in which `wanted` matches a part of `name{labels}`.

    Raises ToolError if the page is not in Prometheus's format.
    """
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
    """Prints pages. If `rates` is set, it prints the growth of each counter per second since the previous page, instead
    of its value."""

    def __init__(self, *, as_csv: bool, rates: bool) -> None:
        self._csv = csv.writer(sys.stdout, lineterminator="\n") if as_csv else None
        self._rates = rates
        self._before: dict[tuple[str, str], float] = {}
        self._before_s = 0.0
        if self._csv is not None:
            self._csv.writerow(("time", "metric", "labels", "value"))

    def print_page(self, series: list[Series], wall_s: float, monotonic_s: float) -> None:
        """Prints the series of a page that was read at `wall_s`, in seconds since 1970.

        `monotonic_s` is the same moment by a clock that never jumps, from which the rates are computed.
        """
        shown = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(wall_s))
        if self._rates and self._csv is None:
            print(f"-- {shown}")
        for name, labels, value in self._values(series, monotonic_s):
            if self._csv is not None:
                self._csv.writerow((shown, name, labels, f"{value:g}" if value % 1 else f"{value:.0f}"))
            else:
                print(f"{name}{{{labels}}} {value:.10g}" if labels else f"{name} {value:.10g}")
        sys.stdout.flush()

    def _values(self, series: list[Series], monotonic_s: float) -> Iterator[tuple[str, str, float]]:
        before, self._before = self._before, {}
        passed_s = monotonic_s - self._before_s
        self._before_s = monotonic_s
        for each in series:
            if not (self._rates and each.only_grows):
                yield each
                continue
            key = (each.name, each.labels)
            self._before[key] = each.value
            if key in before:
                yield f"{each.name}:per_second", each.labels, max(0.0, each.value - before[key]) / passed_s


def run(arguments: Arguments) -> int:
    """Prints one page or, if --follow is given, page after page; returns 0, the exit code.

    With --follow it ends after the number of pages that --count names, or at an interruption.
    """
    address = page_address(arguments)
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
        printer.print_page(read_series(fetch(address), wanted), time.time(), time.monotonic())
        left = None if left is None else left - 1
        if interval_s is None or left == 0:
            return 0
        time.sleep(interval_s)


TOOL = Tool(
    name="metrics",
    description="Prints the metrics of a running broker that has a metrics listener.",
    run=run,
    options=OPTIONS,
    needs_arguments=False,
    examples=(
        Example("All metrics, once", "--config /etc/kafkapy/server.properties"),
        Example("Bytes in and out per second, every five seconds", "--follow 5 --match 'bytes(in|out)_total'"),
        Example("The lag of a group, as CSV", "--match 'consumergroup_lag.*readers' --follow 10 --csv"),
    ),
)


def main(arguments: Sequence[str]) -> int:
    return run_tool(TOOL, arguments)
