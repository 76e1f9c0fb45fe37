"""Decides how many of a log's oldest segments go: by age, by size, by log start offset. Pure: removes nothing."""

from collections.abc import Sequence
from typing import NamedTuple


class SegmentFacts(NamedTuple):
    """What retention looks at. `largest_timestamp` (ms): the file's modification time if no record has one."""

    base_offset: int
    size: int
    largest_timestamp: int


class RetentionLimits(NamedTuple):
    """-1 switches a limit off. `delete` is cleanup.policy: without it only the log start offset counts."""

    retention_ms: int
    retention_bytes: int
    delete: bool


def deletable_segments(
    segments: Sequence[SegmentFacts],
    limits: RetentionLimits,
    *,
    wall_ms: int,
    log_start_offset: int,
    high_watermark: int,
    log_end_offset: int,
) -> int:
    """The number of segments to delete, from the oldest. All of them: the caller rolls a new segment first.

    A segment goes only if it lies below the high watermark as a whole; an empty last one never goes.
    """
    limit = len(segments)
    while limit and (log_end_offset if limit == len(segments) else segments[limit].base_offset) > high_watermark:
        limit -= 1
    if limit == len(segments) and limit and segments[-1].size == 0:
        limit -= 1
    count = breached_by_log_start_offset(segments, limit, log_start_offset)
    if limits.delete:
        count = max(count, breached_by_time(segments, limit, limits.retention_ms, wall_ms))
        count = max(count, breached_by_size(segments, limit, limits.retention_bytes))
    return count


def breached_by_log_start_offset(segments: Sequence[SegmentFacts], limit: int, log_start_offset: int) -> int:
    """Bases 0, 11, 23 and a start of 25: 0 and 11 go."""
    count = 0
    while count < min(limit, len(segments) - 1) and segments[count + 1].base_offset <= log_start_offset:
        count += 1
    return count


def breached_by_time(segments: Sequence[SegmentFacts], limit: int, retention_ms: int, wall_ms: int) -> int:
    if retention_ms < 0:
        return 0
    count = 0
    while count < limit and wall_ms - segments[count].largest_timestamp > retention_ms:
        count += 1
    return count


def breached_by_size(segments: Sequence[SegmentFacts], limit: int, retention_bytes: int) -> int:
    """Never goes below the limit: the segment that would cross it stays."""
    if retention_bytes < 0:
        return 0
    excess = sum(segment.size for segment in segments) - retention_bytes
    count = 0
    while count < limit and excess - segments[count].size >= 0:
        excess -= segments[count].size
        count += 1
    return count
