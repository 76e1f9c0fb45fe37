"""Writes the pages and modules that are made of tables in the code: `.venv/bin/python docs/generate.py`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs.sample_properties import sample_properties
from docs.typed_keys import broker_keys, topic_keys
from kafkapy.__main__ import TOOLS, script_names
from kafkapy.config.row import REQUIRED, Row
from kafkapy.config.startup_rules import REMOVED_KEYS
from kafkapy.config.table import BROKER_ROWS, OWN_ROWS, TOPIC_ROWS, TOPIC_SYNONYMS
from kafkapy.config.value import default_value, format_value
from kafkapy.metrics.probe_table import METRICS as PROBE_METRICS
from kafkapy.metrics.table import METRICS
from kafkapy.protocol.api import API_TABLE
from kafkapy.server.api_registry import ApiRegistry
from kafkapy.server.handlers import HANDLER_MODULES
from kafkapy.tools.declaration import Tool
from kafkapy.tools.option import Option
from tests.clients.legacy.catalog import ALL_CODECS, TRIED_AS_INSTALLED, TRIED_CLIENTS, TriedClient

MADE_BY = "<!-- made by docs/generate.py; change the rows in kafkapy/config/keys instead -->"
MADE_BY_HANDLERS = "<!-- made by docs/generate.py; the versions stand at the handlers, in kafkapy/server/handlers -->"
MADE_BY_METRICS = "<!-- made by docs/generate.py; change the rows in kafkapy/metrics/table.py instead -->"
MODES = {"READ_ONLY": "at start", "PER_BROKER": "per broker", "CLUSTER_WIDE": "cluster-wide"}

CONFIGURATION = f"""{MADE_BY}
# Configuration

Every key of Apache Kafka 4.3, with its names, types, defaults and accepted values. A `server.properties` brought from
Apache Kafka starts as it is.

- A key that Kafka has and that changes nothing here (marked *no effect*) earns a warning that names it, and so does an
  unknown key, with the nearest known one if it looks like a typing error.
- A bad value of a known key is fatal, and so is what would weaken or change the service: SASL and SSL listeners,
  `authorizer.class.name`, principal builder and quota callback classes, policies that are not
  [Python classes](policies.md), configuration providers, tiered storage,
  `zookeeper.connect`, and `process.roles` without both roles.
- A file that holds control characters, a file with no key that a broker knows, and an unknown key of `--override` that
  looks like a typing error are refused.
- Without a configuration file the broker listens on `localhost:9092`, keeps its data in `kafkapy/data` below
  `$XDG_DATA_HOME` (or `~/.local/share`), and internal topics have one replica.
- *Changes* says when a key can change: at start, for one broker while it runs, or for all brokers while they run.
- SIGHUP has a broker read its file again. Keys that may change for all brokers while they run are taken over; others
  that differ are named in the log and wait for a restart. What was changed through the protocol still beats the file. A
  file with a bad value changes nothing. A broker that was started without a file ends at SIGHUP, as Apache Kafka does.

"""

COMPATIBILITY = f"""{MADE_BY_HANDLERS}
# Compatibility

The APIs that clients may ask for, in the versions that this broker serves, beside those of Apache Kafka 4.3.0. An API
that no line says is served is not announced, and a request for it closes the connection, as in Kafka. Without an
authorizer, as here, the APIs 29 to 31 respond with SECURITY_DISABLED. The APIs 71 and 72 are announced only while
`kafkapy.metrics.listener` is set, because nothing else receives clients' metrics.

"""


CLIENTS = """
## Clients tried

In tests/clients and tests/clients/legacy these write and read with every codec they know, byte for byte, each what the
others wrote. What a client has no word for is left out of what it reads, as Apache Kafka before 4 did: headers for
clients before 0.11, timestamps for clients before 0.10; offsets and order stay. A client that does not know zstd cannot
read it.

"""

TOOLS_HEAD = """
## Tools

`kafkapy <tool>`, or the same program through a link with the name of Apache Kafka's script, with or without `.sh`.
A flag marked *ours* is not in Apache Kafka 4.3; *(deprecated)* is as there.

"""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _default(row: Row) -> str:
    if row.default is REQUIRED:
        return "(required)"
    value = format_value(row.type, default_value(row))
    return "(unset)" if value is None else f"`{value}`" if value else "(empty)"


def _accepted(row: Row) -> str:
    accepted = "" if row.validator is None else str(row.validator)
    return f"`{_cell(accepted)}`" if accepted else ""


def configuration() -> str:
    """docs/configuration.md: every broker and topic key."""
    lines = [
        "## Broker keys",
        "",
        "| key | type | default | accepted | changes | meaning |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in sorted(BROKER_ROWS.items()):
        meaning = _cell(row.documentation) + ("" if row.has_effect else " *No effect.*")
        cells = (f"`{name}`", row.type.name.lower(), _default(row), _accepted(row), MODES[row.mode.name], meaning)
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "## Keys of kafkapy's own",
        "",
        "| key | type | default | accepted | meaning |",
        "|---|---|---|---|---|",
    ]
    for name, row in sorted(OWN_ROWS.items()):
        cells = (f"`{name}`", row.type.name.lower(), _default(row), _accepted(row), _cell(row.documentation))
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "## Topic keys",
        "",
        "A topic without its own value has the broker's: the first key named that is set.",
        "",
    ]
    lines += ["| key | type | default | accepted | broker's keys | meaning |", "|---|---|---|---|---|---|"]
    for name, row in sorted(TOPIC_ROWS.items()):
        broker_keys = ", ".join(f"`{key}`" for key, _ in TOPIC_SYNONYMS.get(name, ()))
        cells = (
            f"`{name}`",
            row.type.name.lower(),
            _default(row),
            _accepted(row),
            broker_keys,
            _cell(row.documentation),
        )
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        "## Keys of Kafka 3.9 that 4.x no longer has",
        "",
        "Ignored with a warning, and so is `zookeeper.*`:",
        "",
    ]
    lines.append(", ".join(f"`{name}`" for name in sorted(REMOVED_KEYS)) + ".")
    return CONFIGURATION + "\n".join(lines) + "\n"


METRICS_PAGE = f"""{MADE_BY_METRICS}
# Metrics

`kafkapy.metrics.listener=localhost:9404` in the configuration makes the broker serve, over HTTP:

| path | what |
|---|---|
| `/metrics` | this page's metrics, for Prometheus |
| `/live` | 200 if the broker's main thread answers: restart it if not |
| `/ready` | 200 if the broker serves clients: send it none if not |

The listener has no authentication and no encryption: keep it on loopback, or behind what has both. Nothing is served
without the key. [packaging/prometheus](../packaging/prometheus) has alerts, [packaging/grafana](../packaging/grafana)
a dashboard.

- Names that begin with `kafka_` are those that the usual rules of the Prometheus JMX exporter make of Apache Kafka's
  metrics, so that dashboards made for it show data. What has no such name begins with `kafkapy_` or `process_`.
- A topic's counters go with the topic, as in Apache Kafka. Without the label `topic` a series is the sum of all topics.
- `kafkapy.metrics.series.limit` bounds the topics, partitions, groups, committed offsets and clients' values that have
  series of their own; the others are summed under `(other)`.
- Quantiles are of the last minute, or of the time since the last page if that is longer.
- Apache Kafka's division of a request's time (`requestqueuetimems`, `localtimems`, `remotetimems`,
  `responsequeuetimems`, `responsesendtimems`) is not there: a request is measured from its arrival until its answer is
  made, and most of them, served without the interpreter lock, by one look at the clock for all of a wake-up. Only the
  handler pool has a queue (`requestqueuesize`); what waits for records or replicas is counted by
  `delayedoperationpurgatory`, and a reactor that is behind shows in `networkprocessoravgidle_percent`.
- Nothing is there of a JVM.

"""


def metrics() -> str:
    """docs/metrics.md: every metric."""
    lines = ["| metric | kind | labels | meaning |", "|---|---|---|---|"]
    for metric in (*METRICS.values(), *PROBE_METRICS.values()):
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        lines.append(f"| `{metric.name}` | {metric.kind} | {labels} | {_cell(metric.documentation)} |")
    return METRICS_PAGE + "\n".join(lines) + "\n"


def _range(lowest: int, highest: int) -> str:
    return f"{lowest}" if lowest == highest else f"{lowest} to {highest}"


def compatibility() -> str:
    """docs/compatibility.md: every API that a broker of 4.3 serves to clients, and ours."""
    served = {api.key: _range(api.lowest, api.highest) for api in ApiRegistry(HANDLER_MODULES).served()}
    lines = ["| key | API | Kafka 4.3 | kafkapy |", "|---|---|---|---|"]
    for key, api in sorted(API_TABLE.items()):
        kafkas = api.served_by.get("4.3.0")
        if key in served or (kafkas is not None and "broker" in api.listeners):
            theirs = _range(kafkas[0], kafkas[1] - api.latest_version_unstable) if kafkas else "not served"
            lines.append(f"| {int(key)} | {api.name} | {theirs} | {served.get(key, 'not yet')} |")
    return (
        COMPATIBILITY
        + "\n".join(lines)
        + "\n"
        + CLIENTS
        + "\n".join(_clients())
        + "\n"
        + TOOLS_HEAD
        + "\n".join(_tools())
        + "\n"
    )


def _clients() -> Iterator[str]:
    """The lines of the table of clients, those of one library together."""
    yield "| client | release | speaks | codecs | headers | timestamps |"
    yield "|---|---|---|---|---|---|"
    every = ", ".join(ALL_CODECS[1:])
    rows = [(library, release, "as released", every, "yes", "yes") for library, release in TRIED_AS_INSTALLED]
    rows += map(_client, TRIED_CLIENTS)
    for cells in sorted(rows, key=lambda cells: cells[0].lower()):
        yield f"| {' | '.join(cells)} |"


def _tools() -> Iterator[str]:
    """The lines of the tables of flags, one table for each tool."""
    scripts = {tool: script for script, tool in script_names().items()}
    for name, (module_name, description) in TOOLS.items():
        tool: Tool | None = getattr(import_module(module_name), "TOOL", None)
        if tool is None:
            continue
        yield f"### {name}"
        yield ""
        yield f"`{scripts[name]}.sh`: {description}." if name in scripts else f"Ours: {description}."
        yield ""
        yield "| flag | value | default | meaning |"
        yield "|---|---|---|---|"
        yield from _flags("", tool.options)
        for command in tool.commands:
            yield from _flags(f"{command.name} ", command.options)
        yield ""
        for flag, reason in tool.not_here:
            yield f"`--{flag}` is not taken: {reason}."
            yield ""


def _flags(prefix: str, options: Iterable[Option]) -> Iterator[str]:
    for option in options:
        flags = ", ".join(f"`{prefix}{flag}`" for flag in option.flags)
        value = "" if option.argument is None else option.argument or option.type.name
        default = "" if option.default is None else f"`{repr(option.default).strip(chr(39))}`"
        meaning = option.description.replace("\n", " ") + (" *Ours.*" if option.is_ours else "")
        yield f"| {flags} | {_cell(value)} | {default} | {_cell(meaning)} |"


def _client(tried: TriedClient) -> tuple[str, ...]:
    headers = {(True, True): "yes", (True, False): "writes them", (False, False): "no"}
    return (
        tried.product,
        tried.release,
        tried.speaks or "as released",
        ", ".join(tried.codecs[1:]),
        headers[tried.writes_headers, tried.reads_headers],
        "yes" if tried.timestamps else "no",
    )


PAGES = {
    "configuration.md": configuration,
    "compatibility.md": compatibility,
    "metrics.md": metrics,
    "../packaging/server.properties": sample_properties,
    "../kafkapy/config/broker_keys.py": broker_keys,
    "../kafkapy/config/topic_keys.py": topic_keys,
}


def main() -> None:
    for name, page in PAGES.items():
        (Path(__file__).parent / name).write_text(page())


if __name__ == "__main__":
    main()
