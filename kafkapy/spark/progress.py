"""How far a stream is behind, by partition: from what Spark reports of a query's progress.  Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafkapy.spark.topic_partitions import flatten
from kafkapy.types import TopicPartition


class PartitionProgress(NamedTuple):
    """One partition after a batch: `end_offset` is what is read next, `lag` what waits behind it (None: not known)."""

    end_offset: int
    latest_offset: int | None
    lag: int | None


def partition_progress(progress: Mapping[str, Any]) -> dict[TopicPartition, PartitionProgress]:
    """Of `query.lastProgress`, or `json.loads(event.progress.json)` of a listener: every partition that kafkapy reads.

    Spark before 4.2 does not ask for the latest offset: lag is None there.
    """
    found: dict[TopicPartition, PartitionProgress] = {}
    for source in progress["sources"]:
        ends = _offsets(source.get("endOffset"))
        latest = _offsets(source.get("latestOffset"))
        for where, end in ends.items():
            last = latest.get(where)
            found[where] = PartitionProgress(end, last, None if last is None else max(last - end, 0))
    return found


def _offsets(told: Any) -> dict[TopicPartition, int]:
    """Spark gives the offset as JSON within JSON, or as the object itself."""
    if isinstance(told, str):
        told = json.loads(told)
    return flatten("Progress", told) if isinstance(told, dict) else {}
