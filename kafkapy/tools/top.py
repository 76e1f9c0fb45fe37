"""The tool `kafkapy top`: shows a cluster, its busiest topics and the lags of its groups live in a terminal."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from threading import Event

from kafkapy.client.admin import LATEST, Admin, ClusterDescription, TopicDescription
from kafkapy.errors import ApiError
from kafkapy.named_tuple import NamedTuple
from kafkapy.tools.declaration import Example, Tool
from kafkapy.tools.option import DOUBLE, INTEGER, Arguments, Option, UsageError
from kafkapy.tools.short.options import CONNECTION, connection_properties
from kafkapy.tools.short.output import visible
from kafkapy.tools.tool import run_tool, stops_by
from kafkapy.types import TopicPartition

# The groups whose offsets are read for a page, each by one request.
ASKED_GROUPS = 100
_CLEAR, _HOME, _END_OF_LINE, _END_OF_SCREEN = "\x1b[2J", "\x1b[H", "\x1b[K", "\x1b[J"
_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
_LEAST_ROWS = 3
_TERMINAL = (100, 30)


class GroupState(NamedTuple):
    """A group with its state, and its lag in records.

    `lag` is None if the group has committed no offset in any partition whose end is known.
    """

    name: str
    state: str
    lag: int | None


class ClusterSample(NamedTuple):
    """The state of a cluster at one time.

    `taken_s` is a monotonic time, and `ends` has the end offset of each partition. `groups` has only the groups that
    are shown; `group_count` is the number of all groups.
    """

    taken_s: float
    cluster: ClusterDescription
    topics: dict[str, TopicDescription]
    ends: dict[TopicPartition, int]
    groups: list[GroupState]
    group_count: int

    def topic_ends(self) -> dict[str, int]:
        """Returns the sum of the end offsets of each topic."""
        found = dict.fromkeys(self.topics, 0)
        for partition, end in self.ends.items():
            if partition.topic in found:
                found[partition.topic] += end
        return found


def take_sample(admin: Admin) -> ClusterSample:
    """Reads the state of a cluster with a few requests to each broker, and returns it. Blocks.

    Offsets are requested for at most ASKED_GROUPS groups, and not for share groups. The sample's `groups` has only
    these groups, and is empty if the user may not list groups.
    """
    cluster = admin.describe_cluster()
    topics = admin.describe_all_topics()
    partitions = [TopicPartition(name, each.partition) for name in topics for each in topics[name].partitions]
    found = admin.list_offsets(dict.fromkeys(partitions, LATEST)).values if partitions else {}
    ends = {partition: each.offset for partition, each in found.items()}
    try:
        listings = sorted(admin.list_groups())
    except ApiError:
        listings = []  # the user may not list groups
    asked = [each for each in listings if each.type != "Share"][:ASKED_GROUPS]
    offsets = admin.list_group_offsets([each.group_id for each in asked]).values if asked else {}
    groups = []
    for each in asked:
        committed = offsets.get(each.group_id, {})
        lags = [max(ends[key] - value.offset, 0) for key, value in committed.items() if key in ends]
        groups.append(GroupState(each.group_id, each.state or "-", sum(lags) if lags else None))
    return ClusterSample(time.monotonic(), cluster, topics, ends, groups, len(listings))


def page_of(sample: ClusterSample, before: ClusterSample | None, width: int, height: int) -> list[str]:
    """Returns the lines of the page that shows `sample`: at most `height` lines of at most `width` characters.

    Rates are measured from the sample `before` to `sample`; they are shown as "-" if `before` is None.
    """
    partitions = [each for topic in sample.topics.values() for each in topic.partitions]
    rates = _rates(sample, before)
    total = "-" if before is None else f"{sum(rates.values()):.0f}"
    out_of_sync = sum(len(each.isr) < len(each.replicas) for each in partitions)
    leaderless = sum(each.leader < 0 for each in partitions)
    lines = [
        f"cluster {sample.cluster.cluster_id}   brokers {len(sample.cluster.brokers)}   topics {len(sample.topics)}   "
        f"partitions {len(partitions)}   out of sync {out_of_sync}   "
        f"without leader {leaderless}   records/s {total}",
        "",
    ]
    rows = max((height - len(lines) - 3) // 2, _LEAST_ROWS)
    ends = sample.topic_ends()
    busiest = sorted(sample.topics, key=lambda name: (-rates.get(name, 0.0), -ends[name], name))[:rows]
    lines.append(_line(width, "TOPIC", "PARTITIONS", "END OFFSETS", "RECORDS/S"))
    for name in busiest:
        rate = f"{rates[name]:.1f}" if name in rates else "-"
        lines.append(_line(width, name, str(len(sample.topics[name].partitions)), str(ends[name]), rate))
    lines.append("")
    lines.append(_line(width, "GROUP", "STATE", "LAG", "CHANGE/S"))
    for group in sorted(sample.groups, key=lambda each: (-(each.lag or 0), each.name))[:rows]:
        lag = "-" if group.lag is None else str(group.lag)
        lines.append(_line(width, group.name, group.state, lag, _lag_change(group, sample, before)))
    if sample.group_count > len(sample.groups):
        lines.append(f"({sample.group_count - len(sample.groups)} groups are not shown)")
    return [line[:width] for line in lines[:height]]


def _rates(sample: ClusterSample, before: ClusterSample | None) -> Mapping[str, float]:
    """Returns the records per second of each topic that is in both samples; {} without a sample `before`."""
    if before is None or sample.taken_s <= before.taken_s:
        return {}
    earlier = before.topic_ends()
    seconds = sample.taken_s - before.taken_s
    return {name: max(end - earlier[name], 0) / seconds for name, end in sample.topic_ends().items() if name in earlier}


def _lag_change(group: GroupState, sample: ClusterSample, before: ClusterSample | None) -> str:
    """Returns by how many records per second the group's lag has grown since `before`, with a sign.

    Returns "-" if one of the lags is not known.
    """
    earlier = next((each.lag for each in before.groups if each.name == group.name), None) if before else None
    if before is None or earlier is None or group.lag is None or sample.taken_s <= before.taken_s:
        return "-"
    return f"{(group.lag - earlier) / (sample.taken_s - before.taken_s):+.1f}"


def _line(width: int, name: str, *cells: str) -> str:
    """Returns a row of `width` characters: a name, and cells that are 15 characters wide each.

    The name is cut to the width that the cells leave.
    """
    left = max(width - 15 * len(cells), 10)
    shown = visible(name)
    shown = shown if len(shown) <= left else shown[: left - 1] + "…"
    return f"{shown:<{left}}" + "".join(f"{cell:>15}" for cell in cells)


def run(arguments: Arguments) -> int:
    """Shows pages until Ctrl-C, or the number of pages that --count names; returns 0, the exit code."""
    interval_s, count = arguments["interval"], arguments["count"]
    if interval_s < 0.1:
        raise UsageError("--interval is at least 0.1 seconds")
    is_terminal = sys.stdout.isatty()
    stopped = Event()
    with stops_by(stopped.set), Admin(connection_properties(arguments)) as admin:
        before: ClusterSample | None = None
        shown = 0
        if is_terminal:
            sys.stdout.write(_HIDE_CURSOR + _CLEAR)
        try:
            while not stopped.is_set() and (count is None or shown < count):
                sample = take_sample(admin)
                size = shutil.get_terminal_size(_TERMINAL) if is_terminal else None
                width, height = (size.columns, size.lines - 1) if size is not None else _TERMINAL
                _write(page_of(sample, before, width, height), is_terminal=is_terminal)
                before, shown = sample, shown + 1
                if count is None or shown < count:
                    stopped.wait(interval_s)
        finally:
            if is_terminal:
                sys.stdout.write(_SHOW_CURSOR)
    return 0


def _write(lines: Sequence[str], *, is_terminal: bool) -> None:
    if is_terminal:
        sys.stdout.write(_HOME + "".join(f"{line}{_END_OF_LINE}\n" for line in lines) + _END_OF_SCREEN)
    else:
        print("\n".join(lines), end="\n\n")
    sys.stdout.flush()


TOOL = Tool(
    name="top",
    description="Shows a cluster live: its brokers, the busiest topics, and the groups with the greatest lag.",
    run=run,
    options=(
        *CONNECTION,
        Option("interval", "The seconds between two pages.", "seconds", DOUBLE, default=2.0),
        Option("count", "End after this many pages.", "number", INTEGER),
    ),
    needs_arguments=False,
    examples=(
        Example("A page every two seconds", "--bootstrap-server localhost:9092"),
        Example("Two pages for a script", "--bootstrap-server localhost:9092 --count 2 --interval 10"),
    ),
)


def main(arguments: list[str]) -> int:
    return run_tool(TOOL, arguments)
