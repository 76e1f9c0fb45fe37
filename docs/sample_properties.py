"""The sample `server.properties`: every key of the configuration table with its meaning, its default in a comment."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from types import ModuleType

from kafkapy.config.keys import own
from kafkapy.config.row import REQUIRED, Row
from kafkapy.config.table import BROKER_MODULES
from kafkapy.config.value import default_value, format_value

LINE_LENGTH = 110
INTRODUCTION = """\
# The configuration of a kafkapy broker, in the format of Apache Kafka's server.properties.
# Made by docs/generate.py from the table in kafkapy/config/keys.
#
# Every key stands here with what it means. One that is commented out shows its default. For a try on top of this
# file: kafkapy broker start --config /etc/kafkapy/server.properties --override key=value
# `kafkapy doctor --config /etc/kafkapy/server.properties` looks for mistakes in it.
"""
# What a package sets: one node that this machine alone can reach.
PACKAGE_SETTINGS = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://localhost:9092",
    "log.dirs": "/var/lib/kafkapy/data",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
CHANGES = {
    "READ_ONLY": "changes at start only",
    "PER_BROKER": "changes while the broker runs",
    "CLUSTER_WIDE": "changes while the broker runs",
}


def sample_properties() -> str:
    """packaging/server.properties."""
    return INTRODUCTION + "".join(line + "\n" for module in (own, *BROKER_MODULES) for line in _section(module))


def _section(module: ModuleType) -> Iterator[str]:
    title = (module.__doc__ or "").partition(": ")[2].rstrip(".\n")
    yield ""
    yield f"########## {title[:1].upper()}{title[1:]} ##########"
    for row in module.ROWS:
        yield ""
        yield from _entry(row)


def _entry(row: Row) -> Iterator[str]:
    yield from _comment(row.documentation + ("" if row.has_effect else " No effect in kafkapy."))
    accepted = "" if row.validator is None else f", {row.validator}"
    yield from _comment(f"({row.type.name.lower()}{accepted}; {CHANGES[row.mode.name]})")
    if row.name in PACKAGE_SETTINGS:
        yield f"{row.name}={PACKAGE_SETTINGS[row.name]}"
    else:
        yield f"#{row.name}={_default(row)}".rstrip()


def _default(row: Row) -> str:
    value = None if row.default is REQUIRED else format_value(row.type, default_value(row))
    return "" if value is None else value.replace("\\", "\\\\")


def _comment(text: str) -> Iterable[str]:
    return textwrap.wrap(text, LINE_LENGTH, initial_indent="# ", subsequent_indent="# ", break_long_words=False)
