"""The tool `kafka-jmx`: prints metrics by the names of Apache Kafka's beans, which it reads from the metrics page.

A broker without a JVM has no JMX. The metrics page uses the names that the rules of the Prometheus JMX exporter derive
from the names of the beans. The tool applies these rules to the name of a bean, to find its metrics on the page.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping

from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.java_date import JavaDateFormat
from kafkapy.tools.json_events import wall_ms
from kafkapy.tools.metrics import DEFAULT_URL, PageAddress, address_in_file, fetch, read_series
from kafkapy.tools.option import INTEGER, Arguments, Option, ToolError, UsageError
from kafkapy.tools.tool import run_tool

FORMATS = ("original", "properties", "csv", "tsv")
_SERVICE_URL = re.compile(r"service:jmx:rmi:///jndi/rmi://([^/]*):([0-9]+)/jmxrmi")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_QUANTILES = {
    "0.5": "50thPercentile",
    "0.75": "75thPercentile",
    "0.95": "95thPercentile",
    "0.98": "98thPercentile",
    "0.99": "99thPercentile",
    "0.999": "999thPercentile",
}
_FIRST_LOOK_S = 10.0
_EVERYTHING = re.compile("")


class Attribute(NamedTuple):
    """An attribute of a bean on the page, and its value.

    `series` is the name of the time series, and `base` the same name without the ending that stands for the attribute,
    such as `_total`. `name` is the attribute's name in JMX, such as "Count".
    """

    series: str
    base: str
    labels: Mapping[str, str]
    name: str
    value: float

    @property
    def bean(self) -> str:
        """The name of the bean in the spelling of the metrics page: `base` and the labels, as `base{label=value}`.

        The spelling of Apache Kafka's bean cannot be derived from the page.
        """
        labels = ",".join(f"{name}={value}" for name, value in self.labels.items())
        return f"{self.base}{{{labels}}}" if labels else self.base


class Query:
    """The name of a bean, `kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec`, with `*` for any text."""

    def __init__(self, text: str) -> None:
        """Parses the name of a bean. Raises UsageError if `text` is not an object name of JMX."""
        domain, colon, rest = text.partition(":")
        pairs = [each.partition("=") for each in rest.split(",") if each != "*"]
        if not colon or not domain or not all(equals for _, equals, _ in pairs):
            raise UsageError(f"Invalid object name: {text}")
        self.text = text
        properties = {name: value for name, _, value in pairs}
        self.is_pattern = "*" in text or "?" in text
        self._accepts_more_labels = rest.split(",")[-1] == "*"
        # Without a `name` the bean has several attributes, such as byte-rate.
        self._has_name = "name" in properties
        words = [domain, properties.pop("type", ""), properties.pop("name", "").removesuffix("PerSec")]
        more = "(?:_.*)?" if self._accepts_more_labels and not self._has_name else ""
        self._base = re.compile("_".join(_pattern(each) for each in words if each) + more)
        self._labels = {name.replace("-", "_"): re.compile(_glob(value)) for name, value in properties.items()}

    def attribute(self, found: Attribute) -> str | None:
        """Returns the name that the attribute `found` has in the bean of this query.

        Returns None if it belongs to another bean.
        """
        if found.labels.keys() - self._labels.keys() and not self._accepts_more_labels:
            return None
        if self._labels.keys() - found.labels.keys():
            return None
        if any(not each.fullmatch(found.labels[name]) for name, each in self._labels.items()):
            return None
        if self._has_name or self.is_pattern:
            return found.name if self._base.fullmatch(found.base) else None
        matched = self._base.match(found.series)
        if matched is None or found.series[matched.end() : matched.end() + 1] != "_":
            return None
        return found.series[matched.end() + 1 :].replace("_", "-")


def _glob(text: str) -> str:
    """Returns the regular expression for a text in which `*` stands for any characters and `?` for any single
    character."""
    return re.escape(text).replace(r"\*", ".*").replace(r"\?", ".")


def _pattern(text: str) -> str:
    """Returns the regular expression that finds a part of a bean's name in the names on the metrics page.

    Names on the page are written in lower case with underscores. `text` is the part of the bean's name, in which `*`
    stands for any characters and `?` for any single character.
    """
    plain = re.sub(r"[^a-z0-9*?]", "_", re.sub("(?<=[a-z])Percent$", "_percent", text).lower())
    return _glob(plain)


def attributes_of(page: str) -> Iterator[Attribute]:
    """Yields the attributes on a metrics page. Raises ToolError if the page is in another format."""
    for series in read_series(page, _EVERYTHING):
        labels = dict(_LABEL.findall(series.labels))
        quantile = labels.pop("quantile", None)
        if quantile is not None:
            yield Attribute(
                series.name,
                series.name,
                labels,
                _QUANTILES.get(f"{float(quantile):g}", f"quantile-{quantile}"),
                series.value,
            )
        elif series.name.endswith(("_total", "_count")) and "le" not in labels:
            yield Attribute(series.name, series.name.rpartition("_")[0], labels, "Count", series.value)
        elif not series.name.endswith(("_bucket", "_sum")):
            yield Attribute(series.name, series.name, labels, "Value", series.value)


def chosen(found: Iterable[Attribute], queries: list[Query], wanted: frozenset[str]) -> dict[str, str]:
    """Returns the values of the attributes that the queries select, by `bean:attribute`.

    Without queries all attributes are selected. If `wanted` is not empty, attributes with other names are left out.
    """
    values: dict[str, str] = {}
    for each in found:
        names = [(query.text if not query.is_pattern else each.bean, query.attribute(each)) for query in queries]
        for bean, name in names or [(each.bean, each.name)]:
            if name is not None and (not wanted or name in wanted):
                values[f"{bean}:{name}"] = f"{each.value:.10g}"
    return values


def page_address(arguments: Arguments) -> PageAddress:
    """Returns the address of the metrics page: from the broker's file of --config, or from the address of --jmx-url.

    --jmx-url is an HTTP address or the address of a JMX service. The host and the port in a JMX address must be those
    of the metrics listener; the rest of the address is ignored. Raises UsageError for any other address.
    """
    if arguments.has("config"):
        return address_in_file(arguments["config"])
    url = str(arguments["jmx-url"] or DEFAULT_URL)
    matched = _SERVICE_URL.fullmatch(url)
    if matched is not None:
        url = f"{'https' if arguments['jmx-ssl-enable'] else 'http'}://{matched[1] or 'localhost'}:{matched[2]}/metrics"
    elif not url.startswith(("http://", "https://")):
        raise UsageError(f"{url} is neither the address of a metrics page (http://HOST:PORT/metrics) nor of JMX")
    user, _, password = str(arguments["jmx-auth-prop"] or "").partition("=")
    return PageAddress(url, None, user, password)


class Report:
    """Prints values in one of FORMATS, beginning with the time."""

    def __init__(self, layout: str, dates: JavaDateFormat | None) -> None:
        self._layout = layout
        self._dates = dates
        self._keys: list[str] | None = None

    def print(self, values: Mapping[str, str]) -> None:
        """Prints the values of one reading.

        In the format "original", a line with the names of the values comes first if the names differ from the names of
        the last reading.
        """
        now = wall_ms()
        values = {"time": str(now) if self._dates is None else self._dates.format(now), **values}
        keys = ["time", *sorted(values.keys() - {"time"})]
        if self._layout == "original":
            if keys != self._keys:
                print(",".join(f'"{key}"' for key in keys))
                self._keys = keys
            print(",".join(values[key] for key in keys), flush=True)
            return
        form = {"properties": "{}={}", "csv": '{},"{}"', "tsv": "{}\t{}"}[self._layout]
        print("\n".join(form.format(key, values[key]) for key in keys), flush=True)


def run(arguments: Arguments) -> int:
    """Prints the attributes once, or repeatedly until an interruption; returns 0, the exit code.

    Raises ToolError if no attribute matches the flags.
    """
    queries = [Query(text) for text in arguments.values("object-name")]
    wanted = frozenset(filter(None, str(arguments["attributes"] or "").split(",")))
    layout = str(arguments["report-format"]).lower()
    report = Report(
        layout if layout in FORMATS else "original",
        JavaDateFormat(arguments["date-format"]) if arguments.has("date-format") else None,
    )
    address = page_address(arguments)
    interval_ms = arguments["reporting-interval"]
    values = _first_look(address, queries, wanted, waits=arguments["wait"])
    if not values:
        names = ", ".join(query.text for query in queries)
        raise ToolError(f"No matched attributes for the queried objects [{names}].")
    report.print(values)
    while interval_ms >= 0 and not arguments["one-time"]:
        time.sleep(interval_ms / 1000)
        report.print(chosen(attributes_of(fetch(address)), queries, wanted))
    return 0


def _first_look(address: PageAddress, queries: list[Query], wanted: frozenset[str], *, waits: bool) -> dict[str, str]:
    """Returns the values of the first reading of the page.

    If `waits` is set, reads the page again until each query has a value, and raises ToolError if a query has none after
    _FIRST_LOOK_S seconds. If any of the queries has wildcards, the page is read only once even if `waits` is set.
    """
    end_s = time.monotonic() + _FIRST_LOOK_S
    while True:
        values = chosen(attributes_of(fetch(address)), queries, wanted)
        missing = [query.text for query in queries if not any(key.startswith(f"{query.text}:") for key in values)]
        if not waits or not missing or any(query.is_pattern for query in queries):
            return values
        if time.monotonic() >= end_s:
            raise ToolError(
                f"Could not find all requested object names after {_FIRST_LOOK_S * 1000:.0f} ms. Missing "
                f"{', '.join(missing)}"
            )
        time.sleep(0.2)


TOOL = Tool(
    name="jmx",
    description="Dump JMX values to standard output. The values are those of the broker's metrics page "
    "(kafkapy.metrics.listener), by the names of Apache Kafka's beans.",
    run=run,
    needs_arguments=False,
    options=(
        Option(
            "object-name",
            "A JMX object name to use as a query. This can contain wild cards, and this option can be given multiple "
            "times to specify more than one query. If no objects are specified all objects will be queried.",
            "name",
        ),
        Option(
            "attributes",
            "The list of attributes to include in the query. This is a comma-separated list. If no attributes are "
            "specified all objects will be queried.",
            "name",
        ),
        Option(
            "reporting-interval",
            "Interval in MS with which to poll jmx stats; default value is 2 seconds. Value of -1 equivalent to "
            "setting one-time to true",
            "ms",
            INTEGER,
            2000,
        ),
        Option("one-time", "Flag to indicate run once only."),
        Option(
            "date-format",
            "The date format to use for formatting the time field. See java.text.SimpleDateFormat for options.",
            "format",
        ),
        Option(
            "jmx-url",
            f"The address of the metrics page, {DEFAULT_URL} by default; of a JMX service URL, host and port are used.",
            "service-url",
        ),
        Option(
            "config",
            "The broker's configuration file, which names the address.",
            "file",
            completes="file",
            is_ours=True,
        ),
        Option(
            "report-format",
            "output format name: either 'original', 'properties', 'csv', 'tsv'",
            "report-format",
            default="original",
        ),
        Option(
            "jmx-auth-prop",
            "A mechanism to pass property in the form 'username=password' when enabling remote JMX with password "
            "authentication.",
            "jmx-auth-prop",
        ),
        Option("jmx-ssl-enable", "Flag to enable remote JMX with SSL."),
        Option(
            "wait",
            "Wait for requested JMX objects to become available before starting output. Only supported when the list "
            "of objects is non-empty and contains no object name patterns.",
        ),
    ),
    examples=(
        Example(
            "Records per topic, every five seconds",
            "--object-name kafka.server:type=BrokerTopicMetrics,name=MessagesInPerSec,topic=prices "
            "--reporting-interval 5000",
        ),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
