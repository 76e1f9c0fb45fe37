"""`<offset>.snapshot`: the producers of a log before that offset.

0 version int16 (1) | 2 crc32c uint32 of what follows | 6 count int32 | then per producer, 46 bytes:
producer id int64, epoch int16, last sequence int32, last offset int64, offset delta int32, timestamp int64,
coordinator epoch int32, first offset of the current transaction int64 (-1)
"""

import struct
from collections.abc import Iterable, Iterator

from kafkapy._core.broker_state.producer_table import BatchMetadata, ProducerEntry
from kafkapy._core.bytes.crc32c import crc32c
from kafkapy.storage.filesystem import Filesystem, read_small_file
from kafkapy.storage.producer_entry import NO_OFFSET, sequence_before
from kafkapy.types import NO_SEQUENCE

SUFFIX = ".snapshot"
VERSION = 1
HEADER = struct.Struct(">hIi")
CRC_END = 6
ENTRY = struct.Struct(">qhiqiqiq")


class CorruptSnapshot(ValueError):
    """A snapshot that cannot be used; the message names the file and the reason."""


def snapshot_path(directory: str, offset: int) -> str:
    return f"{directory}/{offset:020d}{SUFFIX}"


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    packed = []
    for entry in entries:
        last = entry.last_batch
        packed.append(
            ENTRY.pack(
                entry.producer_id,
                entry.producer_epoch,
                last.last_sequence if last else NO_SEQUENCE,
                last.last_offset if last else NO_OFFSET,
                last.last_offset - last.first_offset if last else 0,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.transaction_first_offset,
            )
        )
    body = struct.pack(">i", len(packed)) + b"".join(packed)
    return struct.pack(">hI", VERSION, crc32c(body)) + body


def decode_snapshot(path: str, content: bytes) -> Iterator[ProducerEntry]:
    """Returns an iterator of the entries in the `content` of a snapshot file. Raises CorruptSnapshot if the content is
    invalid.

    `path` names the file in the error.
    """
    if len(content) < HEADER.size:
        raise CorruptSnapshot(f"{path}: {len(content)} bytes")
    version, crc, count = HEADER.unpack_from(content)
    if version != VERSION:
        raise CorruptSnapshot(f"{path}: unknown version {version}")
    if crc32c(content[CRC_END:]) != crc:
        raise CorruptSnapshot(f"{path}: wrong checksum")
    if len(content) != HEADER.size + count * ENTRY.size:
        raise CorruptSnapshot(f"{path}: {count} producers in {len(content)} bytes")
    return map(entry_from_fields, ENTRY.iter_unpack(content[HEADER.size :]))


def entry_from_fields(fields: tuple[int, ...]) -> ProducerEntry:
    producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp, coordinator_epoch, first_offset = fields
    entry = ProducerEntry(producer_id, epoch, timestamp, coordinator_epoch, first_offset)
    if last_offset >= 0:
        first_sequence = sequence_before(last_sequence, offset_delta)
        first_offset_of_batch = last_offset - offset_delta
        entry.add(epoch, BatchMetadata(first_sequence, last_sequence, first_offset_of_batch, last_offset, timestamp))
    return entry


def write_snapshot(
    filesystem: Filesystem, directory: str, offset: int, entries: Iterable[ProducerEntry], *, sync: bool
) -> str:
    """Writes the snapshot of the producers before `offset` and returns its path. Raises OSError.

    If `sync` is True, the content is durable on return. Otherwise a power failure may leave an incomplete file, which a
    reader detects by the checksum.
    """
    path = snapshot_path(directory, offset)
    filesystem.write_file(path, encode_snapshot(entries), sync=sync)
    return path


def read_snapshot(directory: str, offset: int) -> Iterator[ProducerEntry]:
    """Returns the producers in the file `<offset>.snapshot`. Raises CorruptSnapshot or OSError."""
    path = snapshot_path(directory, offset)
    return decode_snapshot(path, read_small_file(path))
