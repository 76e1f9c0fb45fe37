"""Decides how many of a log's oldest segments to delete: by age, by size, by log start offset. This module has no state
and does no I/O.
"""

from collections.abc import Sequence

from kafkapy.named_tuple import NamedTuple


class SegmentFacts(NamedTuple):
    """The facts about one segment that decide whether it is deleted.

    `largest_timestamp` (ms) is the file's modification time if no record has a timestamp.
    """

    base_offset: int
    size: int
    largest_timestamp: int


class RetentionLimits(NamedTuple):
    """The retention limits of a topic; -1 means no limit.

    `delete` is True if cleanup.policy contains "delete"; otherwise segments are deleted only if they are below the log
    start offset.
    """

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
    """Returns how many of the oldest segments to delete; if these are all segments, the caller first begins a new one.

    Only segments that are completely below the high watermark count. An empty last segment is never deleted.
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
    """Returns how many of the first `limit` segments end at or below the log start offset.

    With the base offsets 0, 11, 23 and a log start offset of 25 the result is 2.
    """
    count = 0
    while count < min(limit, len(segments) - 1) and segments[count + 1].base_offset <= log_start_offset:
        count += 1
    return count


def breached_by_time(segments: Sequence[SegmentFacts], limit: int, retention_ms: int, wall_ms: int) -> int:
    """Returns the number of segments, at most `limit`, before the first segment that is not older than
    `retention_ms`."""
    if retention_ms < 0:
        return 0
    count = 0
    while count < limit and wall_ms - segments[count].largest_timestamp > retention_ms:
        count += 1
    return count


def breached_by_size(segments: Sequence[SegmentFacts], limit: int, retention_bytes: int) -> int:
    """Returns how many of the oldest segments, at most `limit`, can be deleted while `retention_bytes` or more remain.

    Returns 0 if `retention_bytes` is negative, which means no limit.
    """
    if retention_bytes < 0:
        return 0
    excess = sum(segment.size for segment in segments) - retention_bytes
    count = 0
    while count < limit and excess - segments[count].size >= 0:
        excess -= segments[count].size
        count += 1
    return count
