"""Reads and filters the records of a topic for one page, forward or from the end, until the page has enough records.

The search runs on the thread that iterates over it; `stop` may be called by any thread, and takes effect within a
tenth of a second, without waiting for a broker.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from threading import Event
from typing import Any

from kafkapy._core.bytes.arrow_batch import ArrowBatch
from kafkapy._core.bytes.arrow_search import read_row
from kafkapy.client import RangeReader
from kafkapy.client.errors import NoOffsetForPartition
from kafkapy.console.message_query import MessageQuery, Ranges
from kafkapy.console.record_filter import COLUMNS, BatchFilter, Record, record_of
from kafkapy.errors import ApiError
from kafkapy.types import TopicPartition

# The first window from the end of a partition, and the largest one. A window that has too few matches is followed by
# a window that is four times as large.
_SMALLEST_WINDOW = 100
_LARGEST_WINDOW = 400_000
_MOST_ROWS = 16_384
_SCANNED_BYTES = 16 << 20
_PROGRESS_S = 0.25
_LOOK_S = 0.1
_STALL_S = 20.0
# Offsets without a record (transaction markers, compacted records) that `times_at` skips.
_MOST_SKIPPED = 100


class Progress:
    """The progress of a search: the numbers of records, of matches and of offsets so far, and its duration in seconds.

    `total` is the number of offsets that the search has to read; 0 for a live page, whose end is unknown. `end_reason`
    is a sentence on why the search has ended; it is "" while the search runs.
    """

    __slots__ = ("end_reason", "matches", "offsets", "records", "seconds", "total")

    def __init__(self) -> None:
        self.records = self.matches = self.offsets = self.total = 0
        self.seconds = 0.0
        self.end_reason = ""


class RecordSearch:
    """One search for records. The caller iterates over `run` once; any thread may call `stop`."""

    def __init__(self, properties: Mapping[str, Any], query: MessageQuery, ranges: Ranges) -> None:
        self._query = query
        self._ranges = {key: each for key, each in ranges.items() if each[0] < each[1]}
        self._filter = BatchFilter(query.filters)
        self._stopped = Event()
        self._began_s = time.monotonic()
        self.progress = Progress()
        if query.start != "live":
            self.progress.total = sum(end - start for start, end in self._ranges.values())
        few = not query.filters and query.is_backward
        self._properties = {
            **properties,
            "isolation.level": "read_committed" if query.committed_only else "read_uncommitted",
            "max.partition.fetch.bytes": 256 << 10 if few else 4 << 20,
            "fetch.max.bytes": 8 << 20 if few else 64 << 20,
            "fetch.max.wait.ms": 500,
        }

    @property
    def is_stopped(self) -> bool:
        """Returns whether `stop` was called."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Ends the search."""
        self._stopped.set()

    def run(self) -> Iterator[Record | Progress]:
        """Yields the matching records and, a few times each second, the progress; the last item is always the progress.

        The progress is one object, which changes while the search runs.
        """
        progress = self.progress
        if self._query.start == "live":
            yield progress
        try:
            if self._ranges:
                with RangeReader(self._properties) as reader:
                    yield from self._backward(reader) if self._query.is_backward else self._forward(reader)
        except NoOffsetForPartition:
            progress.end_reason = "Records were deleted by retention while they were read."
        except ApiError as error:
            progress.end_reason = f"{error.message} ({error.error.name})"
        progress.seconds = time.monotonic() - self._began_s
        if not progress.end_reason:
            progress.end_reason = self._reason()
        yield progress

    def _reason(self) -> str:
        if self._stopped.is_set():
            return "Stopped."
        if self._is_late():
            return f"Stopped after {self._query.seconds} s."
        if self.progress.matches >= self._query.limit:
            return f"{self._query.limit} records are shown."
        return "All records were read."

    def _is_late(self) -> bool:
        return time.monotonic() - self._began_s > self._query.seconds

    def _is_over(self) -> bool:
        return self._stopped.is_set() or self.progress.matches >= self._query.limit or self._is_late()

    def _batches(self, reader: RangeReader, ranges: Ranges) -> Iterator[ArrowBatch | None]:
        """Yields the batches of records in ranges of offsets, and None when no batch has arrived for a moment."""
        yield from reader.read_ranges(
            ranges,
            columns=COLUMNS,
            max_rows=_MOST_ROWS,
            max_bytes=_SCANNED_BYTES,
            timestamp_unit="ms",
            timeout=None if self._query.start == "live" else _STALL_S,
            pause=_LOOK_S,
            needle=self._filter.needle,
        )

    def _forward(self, reader: RangeReader) -> Iterator[Record | Progress]:
        progress, shown_s = self.progress, self._began_s
        for batch in self._batches(reader, self._ranges):
            if batch is not None:
                progress.records += batch.scanned
                for record in self._filter.matches(batch):
                    progress.matches += 1
                    yield record
                    if self._is_over():
                        return
            if self._is_over():
                return
            now_s = time.monotonic()
            if now_s - shown_s >= _PROGRESS_S:
                shown_s = now_s
                yield self._measured(now_s, progress.records)

    def _measured(self, now_s: float, offsets: int) -> Progress:
        self.progress.seconds = now_s - self._began_s
        self.progress.offsets = offsets
        return self.progress

    def _backward(self, reader: RangeReader) -> Iterator[Record | Progress]:
        """Yields the matching records from the end of the log to its start, and the progress.

        The search reads window by window. A window is a range of offsets of every partition, which is read forward; its
        matches are then sorted by time, the newest first. Each window is larger than the previous one.
        """
        progress, shown_s, offsets = self.progress, self._began_s, 0
        left = dict(self._ranges)
        window = max(_SMALLEST_WINDOW, self._query.limit)
        while left and not self._is_over():
            ranges = {key: (max(start, end - window), end) for key, (start, end) in left.items()}
            found: list[Record] = []
            for batch in self._batches(reader, ranges):
                if self._stopped.is_set() or self._is_late():
                    return
                if batch is not None:
                    progress.records += batch.scanned
                    found += self._filter.matches(batch)
                    # Of a window only the newest matches can be shown; the others are dropped early.
                    if len(found) > 4 * self._query.limit:
                        found = _newest(found, self._query.limit)
                now_s = time.monotonic()
                if now_s - shown_s >= _PROGRESS_S:
                    shown_s = now_s
                    yield self._measured(now_s, offsets)
            for record in _newest(found, self._query.limit - progress.matches):
                progress.matches += 1
                yield record
            offsets += sum(end - start for start, end in ranges.values())
            left = {key: (left[key][0], start) for key, (start, _) in ranges.items() if start > left[key][0]}
            window = min(window * 4, _LARGEST_WINDOW)
            yield self._measured(time.monotonic(), offsets)


def _newest(records: list[Record], limit: int) -> list[Record]:
    return sorted(records, key=lambda each: (each.timestamp, each.offset), reverse=True)[: max(limit, 0)]


def first_record(properties: Mapping[str, Any], partition: TopicPartition, offset: int) -> Record | None:
    """Returns the record at an offset; None if the log has no record there. Blocks."""
    with RangeReader({**properties, "max.partition.fetch.bytes": 64 << 10}) as reader:
        for batch in reader.read(partition, offset, offset + 1, columns=COLUMNS, timestamp_unit="ms", timeout=10.0):
            if len(batch):
                return record_of(batch, 0)
    return None


def times_at(properties: Mapping[str, Any], ranges: Ranges) -> dict[TopicPartition, int]:
    """Returns the timestamp (ms since 1970) of the first record of each range of offsets. Blocks at most 5 s.

    A range is omitted if no record of its first 100 offsets was read in this time, or if the record has no timestamp.
    """
    found: dict[TopicPartition, int] = {}
    deadline_s = time.monotonic() + 5.0
    if not ranges:
        return found
    with RangeReader({**properties, "max.partition.fetch.bytes": 16 << 10}) as reader:
        left = {key: (start, min(end, start + _MOST_SKIPPED)) for key, (start, end) in ranges.items() if start < end}
        batches = reader.read_ranges(
            left, columns=("topic", "partition", "timestamp"), timestamp_unit="ms", timeout=None, pause=_LOOK_S
        )
        for batch in batches:
            for row in range(len(batch)) if batch is not None else ():
                assert batch is not None
                record = read_row(batch, row)
                found.setdefault(TopicPartition(record["topic"], record["partition"]), record["timestamp"])
            if len(found) == len(left) or time.monotonic() > deadline_s:
                break
    return {key: timestamp for key, timestamp in found.items() if timestamp >= 0}
