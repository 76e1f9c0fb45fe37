"""Computes the lag of a stream in each partition from the progress that Spark reports. This module has no state and
does no I/O.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kafkapy.named_tuple import NamedTuple
from kafkapy.spark.topic_partitions import flatten
from kafkapy.types import TopicPartition


class PartitionProgress(NamedTuple):
    """The progress of one partition after a batch: the next offset to read, the latest offset, and the lag.

    The lag is the number of records from the next offset on. Latest offset and lag are None if they are unknown.
    """

    end_offset: int
    latest_offset: int | None
    lag: int | None


def partition_progress(progress: Mapping[str, Any]) -> dict[TopicPartition, PartitionProgress]:
    """Returns the progress of every partition that kafkapy reads.

    `progress` is `query.lastProgress` or, in a listener, `json.loads(event.progress.json)`. Spark before 4.2 does not
    report the latest offset, so latest offset and lag are None there.
    """
    found: dict[TopicPartition, PartitionProgress] = {}
    for source in progress["sources"]:
        ends = _offsets(source.get("endOffset"))
        latest = _offsets(source.get("latestOffset"))
        for partition, end in ends.items():
            last = latest.get(partition)
            found[partition] = PartitionProgress(end, last, None if last is None else max(last - end, 0))
    return found


def _offsets(offset: Any) -> dict[TopicPartition, int]:
    """Returns the offset of each partition in a stream offset that Spark reports, as a dict or as its JSON text.

    Returns {} for anything else, such as None.
    """
    if isinstance(offset, str):
        offset = json.loads(offset)
    return flatten("Progress", offset) if isinstance(offset, dict) else {}
