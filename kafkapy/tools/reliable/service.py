"""The parts that the services of the reliability patterns share: flags, durations, the main loop, and counts."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from kafkapy.tools.option import Arguments, Option, UsageError
from kafkapy.tools.short.options import CONNECTION, connection_properties
from kafkapy.tools.tool import stops_by

_UNITS_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")

GROUP = Option("group", "The group of the service; its processes share the partitions.", "group", aliases=("g",))
INSTANCE = Option(
    "instance",
    "A name for this process that no other process of the group has at the same time. With it, a process that starts "
    "again after a crash continues at once; without it, after ten seconds.",
    "name",
)
SERVICE_FLAGS = (INSTANCE, *CONNECTION)


def duration_s(text: str) -> float:
    """Returns the seconds of a duration such as 500ms, 5s, 10m, 2h or 7d. Raises UsageError for any other text."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text} is not a duration, such as 500ms, 5s, 10m, 2h or 7d")
    return float(found[1]) * _UNITS_S[found[2]]


def durations_s(text: str) -> list[float]:
    """Returns the seconds of each duration in a list that is separated by commas; [] for an empty text."""
    return [duration_s(each) for each in text.split(",")] if text.strip() else []


def service_properties(arguments: Arguments) -> dict[str, Any]:
    """Returns the configuration of the service's clients. Raises ToolError if no broker can be reached."""
    return connection_properties(arguments)


def run_until_signal(name: str, run: Callable[[], object], stop: Callable[[], None]) -> int:
    """Prints that the service `name` is ready, calls `run` until it returns, and returns the exit code 0.

    A signal calls `stop`, which makes `run` return.
    """
    print(f"kafkapy {name}: ready", file=sys.stderr, flush=True)
    with stops_by(stop):
        run()
    return 0


def print_counts(counts: Mapping[str, int]) -> None:
    """Prints the counts that are not zero, as one JSON object."""
    print(json.dumps({name: count for name, count in sorted(counts.items()) if count}), flush=True)
