"""What of a log may be cleaned, and which log is cleaned next. Pure.

log start ---- clean ---- first dirty ---- dirty ---- first uncleanable ---- active segment ---- log end
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kafkapy.types import TopicPartition

NO_LAG_LIMIT = 2**63 - 1


class SegmentAge(NamedTuple):
    """A segment before the active one. Times in ms; -1 where a limit of the topic does not ask for them."""

    base_offset: int
    size: int
    largest_timestamp: int
    first_timestamp: int


class CompactedLog(NamedTuple):
    """A log with cleanup.policy=compact as the cleaner sees it. `segments`: without the active one."""

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
    """Offsets [first dirty, first uncleanable) are to be cleaned. `must_clean`: max.compaction.lag.ms has passed."""

    partition: TopicPartition
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    must_clean: bool
    min_cleanable_ratio: float

    @property
    def cleanable_ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        return self.cleanable_bytes > 0 and (self.must_clean or self.cleanable_ratio > self.min_cleanable_ratio)


def first_dirty_offset(log: CompactedLog, checkpoint: int | None) -> int:
    """Where the last pass ended; the log start offset if that lies outside the log, or there was none."""
    if checkpoint is None or checkpoint < log.log_start_offset or checkpoint > log.log_end_offset:
        return log.log_start_offset
    return checkpoint


def first_uncleanable_offset(log: CompactedLog, first_dirty: int, wall_ms: int) -> int:
    """Never in the active segment, never above the last stable offset, nor within min.compaction.lag.ms."""
    bounds = [log.active_base_offset, log.last_stable_offset]
    if log.min_compaction_lag_ms > 0:
        youngest = wall_ms - log.min_compaction_lag_ms
        bounds += [
            segment.base_offset for segment in segments_from(log, first_dirty) if segment.largest_timestamp > youngest
        ][:1]
    return max(first_dirty, min(bounds))


def must_be_cleaned(log: CompactedLog, first_dirty: int, wall_ms: int) -> bool:
    """Whether a dirty record is older than max.compaction.lag.ms."""
    if log.max_compaction_lag_ms == NO_LAG_LIMIT:
        return False
    dirty = segments_from(log, first_dirty)
    first_timestamps = [segment.first_timestamp for segment in dirty if segment.first_timestamp > 0]
    return bool(first_timestamps) and min(first_timestamps) < wall_ms - log.max_compaction_lag_ms


def segments_from(log: CompactedLog, offset: int) -> list[SegmentAge]:
    """From the segment that holds `offset` on, the active one aside."""
    if offset >= log.active_base_offset:
        return []
    holding = [segment for segment in log.segments if segment.base_offset <= offset][-1:]
    return holding + [segment for segment in log.segments if segment.base_offset > offset]


def log_to_clean(log: CompactedLog, checkpoint: int | None, wall_ms: int) -> LogToClean:
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
    """Of those that are due, the one with the largest share of dirty bytes."""
    return max((log for log in logs if log.is_due), key=lambda log: log.cleanable_ratio, default=None)
