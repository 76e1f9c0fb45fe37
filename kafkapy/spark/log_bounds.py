"""Checks of batch and streaming queries: whether the topics exist, and whether the log holds the planned offsets."""

from __future__ import annotations

from kafkapy.errors import ApiError, Error
from kafkapy.spark.data_loss import report_loss
from kafkapy.spark.source_cluster import SourceCluster
from kafkapy.spark.stream_offset import OffsetRange


def unknown_topics(missing: list[str]) -> ApiError:
    """Returns the error for topics that are subscribed to by name and do not exist."""
    code = Error.UNKNOWN_TOPIC_OR_PARTITION
    return ApiError(code, f"Topic {', '.join(missing)}: {code.message}")


def within_log(cluster: SourceCluster, ranges: list[OffsetRange], *, fails: bool) -> list[OffsetRange]:
    """Returns the ranges that are not empty, each limited to the offsets that the log holds.

    If the log does not hold all offsets of a range, raises DataLossError if `fails` is true, else logs a warning.
    """
    wanted = [each for each in ranges if each.size]
    first = cluster.earliest([each.partition for each in wanted])
    last = cluster.latest([each.partition for each in wanted])
    return [_within(each, first[each.partition], last[each.partition], fails=fails) for each in wanted]


def _within(each: OffsetRange, first: int, last: int, *, fails: bool) -> OffsetRange:
    if each.start < first:
        report_loss(f"Partition {each.partition} begins at offset {first}, not {each.start}", fails=fails)
    if each.end > last:
        report_loss(f"Partition {each.partition} ends at offset {last}, not {each.end}", fails=fails)
    return OffsetRange(each.partition, max(each.start, first), min(each.end, last))
