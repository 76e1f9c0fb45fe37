"""Running Spark jobs, from the topic to which jobs write the figures of each micro-batch (`--progress-topic`)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from typing import Any

from kafkapy._core.bytes.arrow_search import read_row
from kafkapy.client import RangeReader
from kafkapy.console.cluster_view import SLOW_S, ClusterView
from kafkapy.console.problem import Problem
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition

DEFAULT_JOBS_TOPIC = "__kafkapy_jobs"
# The newest records of all partitions together that are read.
MOST_BATCHES = 5_000
MOST_QUERIES = 500
_JOBS_READING_S = 5.0
# A query without a micro-batch for this time, or for ten times its last one, is shown as silent.
SILENT_MS = 60_000


class MicroBatch(NamedTuple):
    """A micro-batch of a query: its number, its start in ms since 1970, and the figures that the job has reported."""

    number: int
    wall_ms: int
    figures: dict[str, float]

    def figure(self, name: str) -> float | None:
        """Returns the figure `name`; None if the job has not reported it."""
        return self.figures.get(name)


class Query(NamedTuple):
    """A streaming query of a job: its name, and its micro-batches in the order of time; at least one.

    `partition_lags` are the unread records by `topic-partition` after the last micro-batch.
    """

    name: str
    batches: list[MicroBatch]
    partition_lags: dict[str, int]

    @property
    def last(self) -> MicroBatch:
        """The newest micro-batch."""
        return self.batches[-1]

    def is_silent(self, now_ms: int) -> bool:
        """Returns whether the query has reported nothing for so long that it has probably ended."""
        longest_ms = max(SILENT_MS, 10_000 * (self.last.figure("batch_seconds") or 0.0))
        return now_ms - self.last.wall_ms > longest_ms


def queries_of(view: ClusterView, topic: str) -> list[Query]:
    """Returns the queries in the newest records of the topic, sorted by name. Blocks.

    Returns an empty list if the topic does not exist. Raises Problem if the topic has a masking rule, and ApiError or
    TimeoutError if it cannot be read.
    """
    view.check_unmasked(topic, "Showing jobs")
    return view.cached(f"jobs of {topic}", SLOW_S / 2, lambda: _read(view, topic))


def _read(view: ClusterView, topic: str) -> list[Query]:
    try:
        described = view.topic(topic)
    except Problem:
        return []
    keys = [TopicPartition(topic, each.partition) for each in described.partitions]
    most = MOST_BATCHES // len(keys) + 1
    ranges = {
        key: (max(each.first, each.end - most), each.end)
        for key, each in view.ends(keys).items()
        if each.first is not None and each.end is not None and each.first < each.end
    }
    values: list[bytes | None] = []
    if ranges:
        with RangeReader(view.properties) as reader:
            for batch in reader.read_ranges(ranges, columns=("value",), timeout=_JOBS_READING_S):
                if batch is not None:
                    values += [read_row(batch, row)["value"] for row in range(len(batch))]
    return queries_in(values)


def queries_in(values: Iterable[bytes | None]) -> list[Query]:
    """Returns the queries that the records of a topic describe, sorted by name; skips other content."""
    parsed = sorted(filter(None, map(_parsed, values)), key=lambda each: (each[0], each[1].wall_ms))
    found = []
    for name, group in groupby(parsed, key=lambda each: each[0]):
        rows = list(group)
        found.append(Query(name, [batch for _, batch, _ in rows], rows[-1][2]))
    return found[:MOST_QUERIES]


def _parsed(value: bytes | None) -> tuple[str, MicroBatch, dict[str, int]] | None:
    try:
        entry: dict[str, Any] = json.loads(value or b"")
        wall_ms = int(datetime.fromisoformat(entry["timestamp"]).timestamp() * 1000)
        figures = {
            name: float(each)
            for name, each in entry.items()
            if isinstance(each, int | float) and name != "batch" and math.isfinite(each)
        }
        lags = {str(key): int(each) for key, each in (entry.get("partition_lags") or {}).items()}
        return str(entry["query"]), MicroBatch(int(entry["batch"]), wall_ms, figures), lags
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
