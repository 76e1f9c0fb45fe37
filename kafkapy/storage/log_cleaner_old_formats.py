"""The log cleaner's handling of messages of magic 0 and 1, record by record; old topics may still contain them."""

from collections.abc import Iterator

from kafkapy._core.broker_state.batch_filter import BatchFilter
from kafkapy._core.bytes.message_set import LegacyRecord, build_message_set, iterate_records
from kafkapy._core.bytes.offset_map import OffsetMap
from kafkapy.storage.cleaned_segment import CleanedSegment
from kafkapy.storage.segment_reader import scan_old_entries


def collect_old_message(
    offsets: OffsetMap, message: bytes, last_offset: int, start_offset: int, end_offset: int
) -> bool:
    """Puts the keys of a message, or of the messages in a wrapper, into `offsets`; returns False if the map is full.

    Offsets outside of [start_offset, end_offset) are ignored. `last_offset` is the offset of the message; the offset of
    a wrapper is the offset of its last record. Raises ApiError if the message is corrupt.
    """
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
    """Writes the records of a message that have to be kept to `cleaned`; returns the number of bytes written.

    `batch_filter` decides by key and offset which records are kept. Records without a value (tombstones) are kept only
    if `keeps_tombstones` is True, which means that the segment is younger than delete.retention.ms. The age of the
    segment decides, because messages of these formats have no delete horizon. Raises ApiError if the message is
    corrupt, or OSError.
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
    """Returns a wrapper in the format and codec of `message` that contains only the messages `kept`."""
    magic, attributes = message[16], message[17]
    return build_message_set(
        fields_of(kept), magic=magic, compression=attributes & 7, timestamp_type=1 if magic and attributes & 8 else 0
    )


def fields_of(records: list[LegacyRecord]) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
    """Yields offset, timestamp, key and value of each record."""
    for record in records:
        yield record.offset, record.timestamp, record.key, record.value
