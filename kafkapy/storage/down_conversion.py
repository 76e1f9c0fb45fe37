"""Converts the batches of a log to message sets of magic 0 or 1 for consumers before 0.11 (Fetch below version 4).

Offsets are kept; headers and control batches are dropped. A compressed batch becomes one wrapper in the same codec. An
uncompressed batch is converted from the fetch offset on, because those clients expect the first message at that offset.
Entries with a low enough magic are not changed.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkapy._core.bytes.compression import ZSTD
from kafkapy._core.bytes.message_set import (
    LegacyRecord,
    build_message,
    build_message_set,
    iterate_messages,
    open_wrapper,
)
from kafkapy._core.bytes.record_batch import BATCH_MAGIC, LOG_OVERHEAD, MAGIC_AT, RecordBatch
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.storage.segment_reader import batch_size

# The size of a message without key and value in bytes, by magic.
MESSAGE_OVERHEAD = (26, 34)

LegacyFields = tuple[int, int, bytes | None, bytes | None]


class DownConverted(NamedTuple):
    """Converted records, and the offset after the last entry that was converted or dropped."""

    records: bytes
    next_offset: int


def down_convert(
    data: bytes, magic: int, fetch_offset: int, max_bytes: int, max_decompressed_bytes: int
) -> DownConverted:
    """Converts the batches and messages in `data` to messages of magic `magic` or lower; returns about `max_bytes`.

    Leaves out control batches, and records of uncompressed batches before `fetch_offset`. Returns at least one message,
    even if it is larger. An entry (batch or message) may decompress to `max_decompressed_bytes`. Ignores an incomplete
    last entry. Any thread may call it.

    Raises ApiError if the first entry cannot be converted: UNSUPPORTED_COMPRESSION_TYPE if it is compressed with zstd,
    and CORRUPT_MESSAGE if it cannot be read. If a later entry cannot be converted, the result ends before this entry.
    """
    converted = bytearray()
    max_bytes = max(1, max_bytes)
    next_offset = fetch_offset
    position = 0
    while len(data) - position > MAGIC_AT and len(converted) < max_bytes:
        size = batch_size(data[position : position + LOG_OVERHEAD])
        if size <= LOG_OVERHEAD or position + size > len(data):
            break
        entry = data[position : position + size]
        room = max_bytes - len(converted)
        try:
            messages, end_offset = _converted(entry, magic, fetch_offset, room, max_decompressed_bytes)
        except ApiError:
            if converted:
                break
            raise
        converted += messages
        next_offset = end_offset
        position += size
    return DownConverted(bytes(converted), next_offset)


def is_old_enough(data: bytes, magic: int) -> bool:
    """Returns whether all batches and messages in `data` have at most this magic, so that none needs conversion."""
    position = 0
    while len(data) - position > MAGIC_AT:
        if data[position + MAGIC_AT] > magic:
            return False
        size = batch_size(data[position : position + LOG_OVERHEAD])
        if size <= LOG_OVERHEAD:
            break
        position += size
    return True


def _converted(
    entry: bytes, magic: int, fetch_offset: int, room: int, max_decompressed_bytes: int
) -> tuple[bytes, int]:
    """Converts one batch or message to messages of magic `magic` or lower; returns (their bytes, offset after `entry`).

    If `entry` is an uncompressed batch, converts only the records from `fetch_offset` on that fit into `room` bytes,
    but at least one. A compressed entry may decompress to at most `max_decompressed_bytes`.
    """
    if entry[MAGIC_AT] == BATCH_MAGIC:
        batch = RecordBatch(entry)
        return _from_batch(batch, magic, fetch_offset, room, max_decompressed_bytes), batch.next_offset
    (message,) = iterate_messages(entry)
    if message.magic <= magic:
        return entry, message.offset + 1
    return _as_magic_0(message, max_decompressed_bytes), message.offset + 1


def _from_batch(batch: RecordBatch, magic: int, fetch_offset: int, room: int, max_decompressed_bytes: int) -> bytes:
    if batch.is_control or not batch.record_count:
        return b""
    codec = batch.compression
    if codec == ZSTD:
        raise ApiError(
            Error.UNSUPPORTED_COMPRESSION_TYPE,
            "Down-conversion of zstandard-compressed batches is not supported",
        )
    records = (
        (record.offset, record.timestamp, record.key, record.value) for record in batch.records(max_decompressed_bytes)
    )
    if codec:
        return build_message_set(records, magic=magic, compression=codec, timestamp_type=batch.timestamp_type)
    wanted = (record for record in records if record[0] >= fetch_offset)
    overhead = MESSAGE_OVERHEAD[magic]
    return build_message_set(_up_to(wanted, room, overhead), magic=magic, timestamp_type=batch.timestamp_type)


def _up_to(records: Iterator[LegacyFields], room: int, overhead: int) -> Iterator[LegacyFields]:
    """Yields records until their messages fill `room` bytes; yields at least one record.

    `overhead` is the size in bytes of a message without its key and value.
    """
    for record in records:
        yield record
        room -= overhead + len(record[2] or b"") + len(record[3] or b"")
        if room <= 0:
            return


def _as_magic_0(message: LegacyRecord, max_decompressed_bytes: int) -> bytes:
    """Converts a message of magic 1, or a wrapper of several such messages, to magic 0, which has no timestamps."""
    if not message.compression:
        return build_message(message.offset, -1, message.key, message.value, magic=0)
    records = open_wrapper(message, max_decompressed_bytes)
    return build_message_set(
        ((record.offset, -1, record.key, record.value) for record in records), magic=0, compression=message.compression
    )
