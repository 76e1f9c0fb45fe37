"""The log cleaner's way with messages of magic 0 and 1: record by record, as topics are that were never rewritten."""

from collections.abc import Iterator

from kafkapy._core.broker_state.batch_filter import BatchFilter
from kafkapy._core.bytes.message_set import LegacyRecord, build_message_set, iterate_records
from kafkapy._core.bytes.offset_map import OffsetMap
from kafkapy.storage.cleaned_segment import CleanedSegment
from kafkapy.storage.segment_reader import scan_old_entries


def collect_old_message(
    offsets: OffsetMap, message: bytes, last_offset: int, start_offset: int, end_offset: int
) -> bool:
    """Puts the keys of a message, with what it wraps, into the map. False: the map is full. ApiError if corrupt."""
    for record in iterate_records(message):
        is_wanted = record.key is not None and start_offset <= record.offset < end_offset
        if is_wanted and not offsets.put(record.key or b"", record.offset):
            return False
    if start_offset <= last_offset < end_offset:
        offsets.note_offset(last_offset)
    return True


def filter_old_message(
    batch_filter: BatchFilter, message: bytes, cleaned: CleanedSegment, *, keeps_tombstones: bool
) -> int:
    """Writes what a message, with what it wraps, keeps to the cleaned segment; the bytes written. ApiError, OSError.

    `keeps_tombstones`: its segment is younger than delete.retention.ms; these formats have no delete horizon.
    """
    records = list(iterate_records(message))
    kept = [
        record
        for record in records
        if batch_filter.retains_old(record.offset, record.key, record.value is not None, keeps_tombstones)
    ]
    if not kept:
        return 0
    output = message if len(kept) == len(records) else rebuilt(message, kept)
    position = cleaned.file.append((output,))
    entries, _ = scan_old_entries(output, position, False)
    for entry in entries:
        cleaned.index_batch(entry.position, entry.size, entry.last_offset, entry.max_timestamp)
    cleaned.size = position + len(output)
    return len(output)


def rebuilt(message: bytes, kept: list[LegacyRecord]) -> bytes:
    """A wrapper with fewer messages, in the format and codec it had."""
    magic, attributes = message[16], message[17]
    return build_message_set(
        fields_of(kept), magic=magic, compression=attributes & 7, timestamp_type=1 if magic and attributes & 8 else 0
    )


def fields_of(records: list[LegacyRecord]) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
    for record in records:
        yield record.offset, record.timestamp, record.key, record.value
