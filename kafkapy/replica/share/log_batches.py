"""The headers of the record batches that a share fetch has read from the log."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from kafkapy._core.bytes.record_batch import BATCH_MAGIC, LOG_OVERHEAD, TRANSACTIONAL_ATTRIBUTE
from kafkapy._core.bytes.segment_file import FileRange
from kafkapy.named_tuple import NamedTuple
from kafkapy.storage.transaction_index import AbortedTransaction

# Base offset, length, magic, attributes, last offset delta, producer id.
_HEADER = Struct(">qi4xb4xhi16xq10x")
_CHUNK_BYTES = 16 * 1024
_CONTROL_ATTRIBUTE = 0x20


class BatchHeader(NamedTuple):
    """A batch of the log. `position` is the position of its first byte in the records that were read."""

    position: int
    size: int
    first: int
    last: int
    producer_id: int
    is_control: bool


def batch_headers(records: FileRange | bytes, end_offset: int) -> list[BatchHeader]:
    """Returns the headers of the complete batches in the records, up to the batch that contains `end_offset`.

    Only the headers are read, in chunks, because batches may be large. Raises OSError.
    """
    found: list[BatchHeader] = []
    position, chunk_at, chunk = 0, 0, b""
    length = len(records)
    while position + _HEADER.size <= length:
        start = position - chunk_at
        if start + _HEADER.size > len(chunk):
            chunk_at, start = position, 0
            chunk = _read(records, position, min(_CHUNK_BYTES, length - position))
        base, rest, magic, attributes, delta, producer_id = _HEADER.unpack_from(chunk, start)
        size = LOG_OVERHEAD + rest
        if position + size > length or rest <= 0:
            break
        if magic < BATCH_MAGIC:
            found.append(BatchHeader(position, size, base, base, -1, False))
        else:
            producer = producer_id if attributes & TRANSACTIONAL_ATTRIBUTE else -1
            found.append(
                BatchHeader(position, size, base, base + delta, producer, bool(attributes & _CONTROL_ATTRIBUTE))
            )
        position += size
        if found[-1].last >= end_offset:
            break
    return found


def slice_records(records: FileRange | bytes, first: BatchHeader, last: BatchHeader) -> FileRange | bytes:
    """Returns the bytes of the batches from `first` to `last`, as a FileRange if `records` is one."""
    end = last.position + last.size
    if isinstance(records, FileRange):
        return records.file.slice(records.position + first.position, end - first.position)
    return records[first.position : end]


def aborted_batches(headers: Iterable[BatchHeader], aborted: Iterable[AbortedTransaction]) -> list[tuple[int, int]]:
    """Returns the first and last offset of each batch that belongs to one of the aborted transactions."""
    waiting = sorted(aborted, key=lambda each: each.first_offset)
    ongoing: set[int] = set()
    found = []
    for header in headers:
        while waiting and waiting[0].first_offset <= header.last:
            ongoing.add(waiting.pop(0).producer_id)
        if header.producer_id not in ongoing:
            continue
        if header.is_control:
            ongoing.discard(header.producer_id)
        else:
            found.append((header.first, header.last))
    return found


def _read(records: FileRange | bytes, position: int, length: int) -> bytes:
    if isinstance(records, FileRange):
        return records.file.pread(records.position + position, length)
    return records[position : position + length]
