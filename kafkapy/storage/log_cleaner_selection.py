"""The selection of the part of a log that may be cleaned, and of the log that is cleaned next. This module has no state
and does no I/O.

log start ---- clean ---- first dirty ---- dirty ---- first uncleanable ---- active segment ---- log end
"""

from collections.abc import Iterable, Sequence

from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition

NO_LAG_LIMIT = 2**63 - 1


class SegmentAge(NamedTuple):
    """The base offset, size in bytes and age of an inactive segment.

    `largest_timestamp` is the greatest timestamp of all records; it is compared with min.compaction.lag.ms.
    `first_timestamp` is the greatest timestamp of the first batch; it is compared with max.compaction.lag.ms. Both are
    in ms, and -1 if the topic does not set the limit.
    """

    base_offset: int
    size: int
    largest_timestamp: int
    first_timestamp: int


class CompactedLog(NamedTuple):
    """The facts about a log with cleanup.policy=compact that decide whether, and up to which offset, it is cleaned.

    `segments` does not contain the active segment.
    """

    partition: TopicPartition
    segments: Sequence[SegmentAge]
    active_base_offset: int
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    min_cleanable_ratio: float
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int


class LogToClean(NamedTuple):
    """The part of a log that may be cleaned: the offsets [first_dirty_offset, first_uncleanable_offset).

    `cleanable_bytes` is the size of the segments with these offsets, `clean_bytes` that of the segments before them.
    `must_clean` is True if a segment from first_dirty_offset on begins with records older than max.compaction.lag.ms.
    """

    partition: TopicPartition
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    must_clean: bool
    min_cleanable_ratio: float

    @property
    def cleanable_ratio(self) -> float:
        """The dirty bytes divided by all bytes below the first uncleanable offset."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        """True if there are bytes to clean, and `must_clean` is True or `cleanable_ratio` is above the minimum."""
        return self.cleanable_bytes > 0 and (self.must_clean or self.cleanable_ratio > self.min_cleanable_ratio)


def first_dirty_offset(log: CompactedLog, checkpoint: int | None) -> int:
    """Returns `checkpoint`, the offset at which the last pass ended.

    Returns the log start offset if there is no checkpoint or if it is outside of the log.
    """
    if checkpoint is None or checkpoint < log.log_start_offset or checkpoint > log.log_end_offset:
        return log.log_start_offset
    return checkpoint


def first_uncleanable_offset(log: CompactedLog, first_dirty: int, wall_ms: int) -> int:
    """Returns the end (exclusive) of the offsets that may be cleaned, which begin at `first_dirty`.

    It is the least of the base offset of the active segment, the last stable offset, and the base offset of the first
    segment with a record younger than min.compaction.lag.ms at `wall_ms`; but at least `first_dirty`.
    """
    bounds = [log.active_base_offset, log.last_stable_offset]
    if log.min_compaction_lag_ms > 0:
        youngest = wall_ms - log.min_compaction_lag_ms
        bounds += [
            segment.base_offset for segment in segments_from(log, first_dirty) if segment.largest_timestamp > youngest
        ][:1]
    return max(first_dirty, min(bounds))


def must_be_cleaned(log: CompactedLog, first_dirty: int, wall_ms: int) -> bool:
    """Returns whether any segment from offset `first_dirty` on has a first batch older than max.compaction.lag.ms.

    `wall_ms` is the present time.
    """
    if log.max_compaction_lag_ms == NO_LAG_LIMIT:
        return False
    dirty = segments_from(log, first_dirty)
    first_timestamps = [segment.first_timestamp for segment in dirty if segment.first_timestamp > 0]
    return bool(first_timestamps) and min(first_timestamps) < wall_ms - log.max_compaction_lag_ms


def segments_from(log: CompactedLog, offset: int) -> list[SegmentAge]:
    """Returns the inactive segments, beginning with the segment that holds `offset`."""
    if offset >= log.active_base_offset:
        return []
    holding = [segment for segment in log.segments if segment.base_offset <= offset][-1:]
    return holding + [segment for segment in log.segments if segment.base_offset > offset]


def log_to_clean(log: CompactedLog, checkpoint: int | None, wall_ms: int) -> LogToClean:
    """Returns the part of a log that may be cleaned, and its sizes in bytes.

    `checkpoint` is the offset at which the last pass over the log ended, or None if no pass is recorded; `wall_ms` is
    the present time.
    """
    first_dirty = first_dirty_offset(log, checkpoint)
    uncleanable = first_uncleanable_offset(log, first_dirty, wall_ms)
    end = next(
        (segment.base_offset for segment in log.segments if segment.base_offset >= uncleanable), log.active_base_offset
    )
    dirty = [segment for segment in segments_from(log, first_dirty) if segment.base_offset < end]
    cleanable_bytes = sum(segment.size for segment in dirty) if uncleanable > first_dirty else 0
    clean_end = dirty[0].base_offset if dirty else first_dirty
    return LogToClean(
        log.partition,
        first_dirty,
        uncleanable,
        sum(segment.size for segment in log.segments if segment.base_offset < clean_end),
        cleanable_bytes,
        must_be_cleaned(log, first_dirty, wall_ms),
        log.min_cleanable_ratio,
    )


def filthiest(logs: Iterable[LogToClean]) -> LogToClean | None:
    """Returns the log that is due and has the highest ratio of dirty bytes, or None if no log is due."""
    return max((log for log in logs if log.is_due), key=lambda log: log.cleanable_ratio, default=None)
