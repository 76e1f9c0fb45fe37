"""Describes the segments of a log, and finds the place of an offset in them, for pages of the inspection interface.

The functions do not run on the reactor's thread, which may change the log while they read it: each number is correct at
one moment. They open the files themselves, because the reactor's thread may close the log's own descriptors and memory
maps at any time. They raise `Refusal` if retention has deleted a file before it is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import Any, TypeVar

from kafkapy._core.bytes.compression import CODEC_NAMES
from kafkapy._core.bytes.record_batch import (
    BATCH_MAGIC,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    OVERHEAD,
    RecordBatch,
)
from kafkapy._core.bytes.segment_scan import find_batch, first_batch_timestamp
from kafkapy.replica.partition import Partition
from kafkapy.server.inspection.refusal import Refusal
from kafkapy.storage.log import Log
from kafkapy.storage.log_segment import (
    LOG_SUFFIX,
    NOT_LOADED,
    OFFSET_ENTRY,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    LogSegment,
)
from kafkapy.types import NO_TIMESTAMP

T = TypeVar("T")
_TIME_ENTRY = Struct(">qI")
_CODEC_BITS = 7


def describe_partition(partition: Partition) -> dict[str, Any]:
    """Returns the offsets of a partition's log, its size and its directory. Reads no file."""
    log = partition.log
    segments = log.segments.between(0, log.log_end_offset + 1)
    return {
        "topic": log.topic_partition.topic,
        "partition": log.topic_partition.partition,
        "is_leader": partition.is_leader,
        "leader_epoch": partition.leader_epoch,
        "log_start_offset": log.log_start_offset,
        "high_watermark": log.high_watermark,
        "log_end_offset": log.log_end_offset,
        "segments": len(segments),
        "size_bytes": sum(each.size for each in segments),
        "directory": log.directory.path,
    }


def segments_page(log: Log, start: int, limit: int, pace: Callable[[], None]) -> dict[str, Any]:
    """Returns the JSON object of a page with at most `limit` segments, the oldest first.

    The page begins with the segment that contains the offset `start`. If no segment contains it, the page begins with
    the next segment, or with the last one if `start` is after the end of the log. The object's `next` is the value of
    `start` for the following page, None on the last page. Raises Refusal if a file cannot be read.
    """
    end_offset = log.log_end_offset
    every = log.segments.between(0, end_offset + 1)
    bases = [*(each.base_offset for each in every[1:]), end_offset]
    position = 0
    found: list[dict[str, Any]] = []
    following = None
    for segment, next_base in zip(every, bases, strict=True):
        size = segment.size
        if next_base > start or segment is every[-1]:
            if len(found) == limit:
                following = segment.base_offset
                break
            found.append(_existing(log, segment, partial(_describe, segment)))
            found[-1] |= {"next_offset": next_base, "position": position, "size_bytes": size}
            found[-1]["is_active"] = segment is every[-1]
            pace()
        position += size
    return {"segments": found, "next": following}


def _existing(log: Log, segment: LogSegment, read: Callable[[], T]) -> T:
    """Returns the result of `read`, which reads files of the segment.

    Raises Refusal if the segment was deleted, cannot be read or is damaged.
    """
    try:
        return read()
    except FileNotFoundError:
        raise Refusal(
            404, f"The segment {segment.base_offset} of {log.topic_partition} was deleted meanwhile. Try again."
        ) from None
    except OSError as error:
        raise Refusal(503, f"The segment {segment.base_offset} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise Refusal(503, f"The segment {segment.base_offset} is damaged: {error}.") from error


def _describe(segment: LogSegment) -> dict[str, Any]:
    """Returns the JSON object of a segment: its base offset, file, timestamps and index sizes. Raises OSError."""
    offset_index, time_index = segment._offset_index, segment._time_index
    largest = segment._max_timestamp
    return {
        "base_offset": segment.base_offset,
        "file": os.path.basename(segment.path(LOG_SUFFIX)),
        "first_batch_timestamp_ms": _first_batch_timestamp(segment),
        "max_timestamp_ms": _known(_last_indexed_timestamp(segment) if largest == NOT_LOADED else largest),
        "offset_index_bytes": _size(segment, OFFSET_INDEX_SUFFIX)
        if offset_index is None
        else offset_index.size_in_bytes,
        "time_index_bytes": _size(segment, TIME_INDEX_SUFFIX) if time_index is None else time_index.size_in_bytes,
        "transaction_index_bytes": _size(segment, TRANSACTION_INDEX_SUFFIX),
    }


def _known(timestamp: int) -> int | None:
    return None if timestamp == NO_TIMESTAMP else timestamp


def _size(segment: LogSegment, suffix: str) -> int:
    try:
        return os.stat(segment.path(suffix)).st_size
    except FileNotFoundError:
        return 0


def _first_batch_timestamp(segment: LogSegment) -> int | None:
    if not segment.size:
        return None
    fd = os.open(segment.path(LOG_SUFFIX), os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _known(first_batch_timestamp(fd, segment.size))
    finally:
        os.close(fd)


def _last_indexed_timestamp(segment: LogSegment) -> int:
    """Returns the greatest timestamp in the time index of a segment that is not open for append; NO_TIMESTAMP if the
    index has no entry."""
    try:
        fd = os.open(segment.path(TIME_INDEX_SUFFIX), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return NO_TIMESTAMP
    try:
        end = os.fstat(fd).st_size // _TIME_ENTRY.size * _TIME_ENTRY.size
        entry = os.pread(fd, _TIME_ENTRY.size, end - _TIME_ENTRY.size) if end else b""
    finally:
        os.close(fd)
    return int(_TIME_ENTRY.unpack(entry)[0]) if len(entry) == _TIME_ENTRY.size else NO_TIMESTAMP


def place_of(log: Log, offset: int) -> dict[str, Any]:
    """Returns the JSON object that describes where an offset is: its segment, byte position and batch.

    If compaction has removed the offset, describes the next batch. Raises Refusal if the offset is outside of the log.
    """
    if not log.log_start_offset <= offset < log.log_end_offset:
        raise Refusal(
            404,
            f"{log.topic_partition} has the offsets from {log.log_start_offset} to {log.log_end_offset - 1} on this "
            f"broker; {offset} is not one of them.",
        )
    before = 0
    first = log.segments.between(offset, log.log_end_offset)
    for segment in log.segments.between(0, offset):
        before += segment.size if segment.base_offset < first[0].base_offset else 0
    for segment in first:
        found = _existing(log, segment, partial(_batch, segment, offset))
        if found is not None:
            return {
                "offset": offset,
                "segment": {
                    "base_offset": segment.base_offset,
                    "file": os.path.basename(segment.path(LOG_SUFFIX)),
                    "size_bytes": segment.size,
                },
                "position": found["position"],
                "position_in_log": before + found.pop("position"),
                "batch": found,
            }
        before += segment.size
    raise Refusal(404, f"{log.topic_partition} has no batch at or after offset {offset} any more.")


def _batch(segment: LogSegment, offset: int) -> dict[str, Any] | None:
    """Returns the JSON object of the batch that contains `offset` or, if there is none, of the next batch.

    Returns None if this segment has no batch at or after `offset`. Raises OSError.
    """
    size = segment.size
    fd = os.open(segment.path(LOG_SUFFIX), os.O_RDONLY | os.O_CLOEXEC)
    try:
        located = find_batch(fd, _indexed_position(segment, offset), size, offset)
        if located is None:
            return None
        position, length, base_offset, last_offset = located
        header = os.pread(fd, OVERHEAD, position)
    finally:
        os.close(fd)
    common = {
        "position": position,
        "base_offset": base_offset,
        "last_offset": last_offset,
        "size_bytes": length,
        "magic": header[MAGIC_AT],
    }
    if header[MAGIC_AT] < BATCH_MAGIC:
        return common | {"codec": CODEC_NAMES[header[MAGIC_AT + 1] & _CODEC_BITS]}
    return common | _header_fields(header)


def _header_fields(header: bytes) -> dict[str, Any]:
    """Returns the fields of a batch's header, without reading the records, which may be hundreds of megabytes.

    RecordBatch accepts only complete batches. Its argument is therefore the header with the length of a batch that has
    no records.
    """
    length = (OVERHEAD - LOG_OVERHEAD).to_bytes(LOG_OVERHEAD - LENGTH_AT, "big")
    batch = RecordBatch(header[:LENGTH_AT] + length + header[LOG_OVERHEAD:])
    return {
        "records": batch.record_count,
        "codec": CODEC_NAMES[batch.compression],
        "base_timestamp_ms": batch.base_timestamp,
        "max_timestamp_ms": batch.max_timestamp,
        "leader_epoch": batch.partition_leader_epoch,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "is_transactional": batch.is_transactional,
        "is_control": batch.is_control,
    }


def _indexed_position(segment: LogSegment, offset: int) -> int:
    """Returns the byte position from which to search the segment for `offset`, by its offset index.

    This is the position of the last batch in the index whose last offset is at most `offset`, or 0 if there is none.
    The search reads the index file. While the segment is open for append, only the first part of this file has entries.
    """
    index = segment._offset_index
    try:
        fd = os.open(segment.path(OFFSET_INDEX_SUFFIX), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        low, high = 0, os.fstat(fd).st_size // OFFSET_ENTRY.size if index is None else len(index)
        position = 0
        while low < high:
            middle = (low + high) // 2
            entry = os.pread(fd, OFFSET_ENTRY.size, middle * OFFSET_ENTRY.size)
            if len(entry) < OFFSET_ENTRY.size:
                high = middle
                continue
            relative, at = OFFSET_ENTRY.unpack(entry)
            if segment.base_offset + relative <= offset:
                low, position = middle + 1, at
            else:
                high = middle
    finally:
        os.close(fd)
    return position if position < segment.size else 0
