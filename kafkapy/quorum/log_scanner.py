"""Reads a metadata log from end to end before anything is written to it.

Every batch is checked (framing, CRC, offsets without gaps, epochs that never fall). Invalid bytes are accepted only at
the very end: a torn tail, left by a crash during the last append. Damage with valid batches behind it is not repaired,
because cutting there would silently lose topics: StorageError names the file and the position.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Callable

from kafkapy._core.bytes.record_batch import BatchSummary, RecordBatch, scan_batches
from kafkapy.errors import StorageError
from kafkapy.quorum.segment_indexes import SegmentIndexes
from kafkapy.types import OffsetAndEpoch

CHUNK_BYTES = 4 * 1024 * 1024
_LOG_NAME = re.compile(r"(\d{20})\.log")
# Producer id, producer epoch and base sequence, all -1, at position 43 of every batch of a metadata log.
_NO_PRODUCER = b"\xff" * 14
_NO_PRODUCER_POSITION = 43

BatchVisitor = Callable[[RecordBatch], None]


class ScannedSegment:
    """One `.log` file and its indexes. The first `valid_size` bytes of the file are valid batches; the bytes after them
    are an incomplete write."""

    __slots__ = ("base_offset", "file_size", "indexes", "path", "valid_size")

    def __init__(self, base_offset: int, path: str) -> None:
        self.base_offset = base_offset
        self.path = path
        self.file_size = 0
        self.valid_size = 0
        self.indexes = SegmentIndexes(base_offset)


class LogScanner:
    """Reads the segments of a metadata log directory once, and changes nothing. Not thread-safe.

    `scan` sets the attributes: `segments` (the oldest first), `start_offset`, `end_offset` (exclusive), `epochs` (pairs
    of an epoch and its start offset) and `last_timestamp`. For an empty directory there are no segments, and the
    offsets and the timestamp are -1.
    """

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.segments: list[ScannedSegment] = []
        self.start_offset = -1
        self.end_offset = -1
        self.epochs: list[tuple[int, int]] = []
        self.last_timestamp = -1

    @property
    def last_epoch(self) -> int:
        return self.epochs[-1][0] if self.epochs else -1

    def ends_before(self, snapshot_id: OffsetAndEpoch) -> bool:
        """Returns True if the log ends at a lower offset than the snapshot, or its last batch is of an older epoch."""
        return self.end_offset < snapshot_id.offset or 0 <= self.last_epoch < snapshot_id.epoch

    def scan(self, from_offset: int, visit: BatchVisitor) -> None:
        """Checks every batch of the log, and calls `visit` with each batch whose last offset is at least `from_offset`,
        in order.

        Raises StorageError if the log is damaged or `visit` fails, and OSError if a file cannot be read.
        """
        names = sorted(name for name in os.listdir(self.directory) if _LOG_NAME.fullmatch(name))
        self.segments = [ScannedSegment(int(name[:20]), os.path.join(self.directory, name)) for name in names]
        for number, segment in enumerate(self.segments):
            if number == 0:
                self.start_offset = self.end_offset = segment.base_offset
            elif segment.base_offset != self.end_offset:
                raise self._damaged(segment, 0, f"begins at offset {segment.base_offset}, not {self.end_offset}")
            self._scan_segment(segment, from_offset, visit)
            is_last = number == len(self.segments) - 1
            if segment.valid_size < segment.file_size and not is_last:
                raise self._damaged(segment, segment.valid_size, "bad batch, and a later segment follows")

    def _scan_segment(self, segment: ScannedSegment, from_offset: int, visit: BatchVisitor) -> None:
        segment.file_size = os.path.getsize(segment.path)
        if segment.file_size == 0:
            return
        with open(segment.path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            position, chunk = 0, CHUNK_BYTES
            while position < segment.file_size:
                valid = self._scan_part(segment, content[position : position + chunk], position, from_offset, visit)
                if valid:
                    position += valid
                elif position + chunk < segment.file_size:
                    chunk *= 4  # The batch is larger than the chunk, or damaged: the whole rest of the file decides.
                else:
                    break
            segment.valid_size = position
            if position < segment.file_size:
                self._ensure_nothing_behind(segment, content)

    def _scan_part(
        self, segment: ScannedSegment, part: bytes, position: int, from_offset: int, visit: BatchVisitor
    ) -> int:
        summaries, valid = scan_batches(part)
        for summary in summaries:
            self._observe(segment, summary, position + summary.position)
            if summary.last_offset < from_offset:
                continue
            try:
                visit(RecordBatch(part, summary.position))
            except StorageError:
                raise
            except Exception as error:
                raise self._damaged(segment, position + summary.position, str(error)) from error
        return valid

    def _observe(self, segment: ScannedSegment, summary: BatchSummary, position: int) -> None:
        if summary.base_offset != self.end_offset:
            raise self._damaged(segment, position, f"base offset {summary.base_offset}, not {self.end_offset}")
        epoch = summary.partition_leader_epoch
        if epoch < self.last_epoch:
            raise self._damaged(segment, position, f"epoch {epoch} after epoch {self.last_epoch}")
        if epoch > self.last_epoch:
            self.epochs.append((epoch, summary.base_offset))
        self.end_offset = summary.last_offset + 1
        self.last_timestamp = max(self.last_timestamp, summary.max_timestamp)
        segment.indexes.observe(position, summary.size, summary.last_offset, summary.max_timestamp)

    def _ensure_nothing_behind(self, segment: ScannedSegment, mapped: mmap.mmap) -> None:
        """Raises StorageError if a valid batch begins somewhere after the first invalid byte, which is at
        `segment.valid_size`. The rest of the file is then more than the incomplete write of a crash.

        `mapped` is the content of the segment's file.
        """
        found = mapped.find(_NO_PRODUCER, segment.valid_size)
        while found >= 0:
            start = found - _NO_PRODUCER_POSITION
            if start > segment.valid_size and _is_batch(mapped, start, self.end_offset):
                raise self._damaged(
                    segment, segment.valid_size, f"bad batch, and a valid one follows at position {start}"
                )
            found = mapped.find(_NO_PRODUCER, found + 1)

    def _damaged(self, segment: ScannedSegment, position: int, what: str) -> StorageError:
        return StorageError(
            self.directory, f"the metadata log cannot be used: {segment.path}, position {position}: {what}"
        )


def _is_batch(mapped: mmap.mmap, start: int, end_offset: int) -> bool:
    """Returns True if a complete, valid batch begins at the position `start` of the file's content, and its base offset
    is at least `end_offset`."""
    if mapped[start + 16] != 2 or int.from_bytes(mapped[start : start + 8], "big") < end_offset:
        return False
    size = int.from_bytes(mapped[start + 8 : start + 12], "big") + 12
    if start + size > len(mapped):
        return False
    summaries, _ = scan_batches(mapped[start : start + size])
    return len(summaries) == 1
