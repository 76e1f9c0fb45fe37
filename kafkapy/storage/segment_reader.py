"""Reads the batch headers of a segment file, in chunks and in all formats, up to the first invalid batch."""

import os
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from kafkapy._core.bytes.record_batch import BATCH_MAGIC, LENGTH_AT, LOG_OVERHEAD, MAGIC_AT, BatchSummary, scan_batches
from kafkapy._core.bytes.segment_file import SegmentFile

if TYPE_CHECKING:
    from typing import Any

CHUNK = 1 << 20
SMALLEST_BATCH = 61  # the header of a batch
OLD_HEADER = struct.Struct(">qiIbb")
OLD_CRC_END = 16
OLD_MINIMUM = {0: 14, 1: 22}


class OldEntry:
    """A message of magic 0 or 1, with the attributes of a BatchSummary that recovery needs.

    The offset of a compressed wrapper is the offset of its last record; the header does not contain the offset of the
    first record.
    """

    __slots__ = ("base_offset", "last_offset", "max_timestamp", "position", "size")

    producer_id = -1
    partition_leader_epoch = -1
    is_control = False

    def __init__(self, position: int, size: int, offset: int, max_timestamp: int) -> None:
        self.position = position
        self.size = size
        self.base_offset = offset
        self.last_offset = offset
        self.max_timestamp = max_timestamp


def scan_segment(
    file: SegmentFile, position: int, end: int, *, check_crc: bool
) -> "Iterator[tuple[bytes, int, Sequence[BatchSummary | Any]]]":
    """Yields (chunk of the file, its position, headers of its batches) from `position`, the beginning of a batch, on.

    Stops at `end`, or at the first incomplete batch. If `check_crc` is True, also stops at the first batch with a wrong
    checksum. Raises OSError.
    """
    length = CHUNK
    while position < end:
        chunk = file.pread(position, min(length, end - position))
        batches, valid = scan_chunk(chunk, position, check_crc)
        if not valid:
            length = batch_size(chunk)
            if length <= len(chunk) or length > end - position:
                return
            continue
        yield chunk, position, batches
        position += valid
        length = CHUNK


def scan_chunk(chunk: bytes | memoryview, position: int, check_crc: bool) -> "tuple[Sequence[BatchSummary | Any], int]":
    """Returns the headers of the whole valid batches at the start of a chunk, and the length of these batches in bytes.

    `position` is the position of the chunk in the file. If `check_crc` is True, a batch with a wrong checksum is not
    valid.
    """
    if len(chunk) > MAGIC_AT and chunk[MAGIC_AT] < BATCH_MAGIC:
        return scan_old_entries(chunk, position, check_crc)
    return scan_batches(chunk, position, check_crc)


def batch_size(chunk: bytes | bytearray) -> int:
    """Returns the size of the first batch, as its header states; 0 if the chunk is too short to contain the size."""
    if len(chunk) < LOG_OVERHEAD:
        return 0
    return LOG_OVERHEAD + int.from_bytes(chunk[LENGTH_AT:LOG_OVERHEAD], "big", signed=True)


def scan_old_entries(chunk: bytes | memoryview, chunk_position: int, check_crc: bool) -> tuple[list[OldEntry], int]:
    """Returns the whole valid messages of magic 0 and 1 at the start of a chunk, and their total length in bytes.

    `chunk_position` is the position of the chunk in the file. If `check_crc` is True, a message with a wrong checksum
    is not valid.
    """
    entries: list[OldEntry] = []
    position = 0
    while len(chunk) - position >= OLD_HEADER.size:
        offset, size, crc, magic, _ = OLD_HEADER.unpack_from(chunk, position)
        end = position + LOG_OVERHEAD + size
        if magic not in OLD_MINIMUM or size < OLD_MINIMUM[magic] or end > len(chunk):
            break
        if check_crc and crc32(memoryview(chunk)[position + OLD_CRC_END : end]) != crc:
            break
        timestamp = int.from_bytes(chunk[position + 18 : position + 26], "big", signed=True) if magic else -1
        entries.append(OldEntry(chunk_position + position, end - position, offset, timestamp))
        position = end
    return entries, position


def read_whole(fd: int, memory: bytearray, position: int, end: int) -> int:
    """Reads a file from `position` to `end`, as far as `memory` has room; returns the number of bytes that were read.

    The number is below `end - position` only if `memory` is too small, or if the file ends before `end`. Raises
    OSError.
    """
    wanted = min(len(memory), end - position)
    length = 0
    with memoryview(memory) as view:
        while length < wanted:
            got = os.preadv(fd, [view[length:wanted]], position + length)
            if got == 0:
                break
            length += got
    return length
