"""Updates the producers of a log from its batches: at an append, after a start or a truncation, and in recovery."""

import logging
from collections.abc import Iterator
from itertools import chain

from kafkapy._core.broker_state.producer_table import BatchMetadata, ProducerEntry
from kafkapy._core.bytes.record_batch import BatchSummary, RecordBatch
from kafkapy.errors import ApiError
from kafkapy.storage.control_record import end_transaction_marker
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.log_segments import LogSegments
from kafkapy.storage.producer_state import ProducerStateManager
from kafkapy.storage.segment_reader import scan_segment
from kafkapy.storage.transaction_index import AbortedTransaction

logger = logging.getLogger("kafka.log.ProducerStateManager")

# The batches that a producer may retry are looked for in this number of bytes before the snapshot's offset.
TAIL_BYTES = 1 << 20
# A producer that has appended nothing for this time does not retry: delivery.timeout.ms is usually 2 minutes.
RETRY_PERIOD_MS = 600_000


def account_for(
    producers: ProducerStateManager, batch: BatchSummary, buffer: bytes | bytearray | memoryview, position: int
) -> AbortedTransaction | None:
    """Updates `producers` with a batch of the log. The bytes of the batch are at `position` of `buffer`.

    Returns an entry for the transaction index if the batch aborts a transaction, otherwise None.
    """
    if batch.producer_id < 0:
        return None
    if not batch.is_control:
        producers.append_data(batch.producer_id, batch.producer_epoch, _metadata_of(batch), batch.is_transactional)
        return None
    marker = end_transaction_marker(RecordBatch(buffer, position))
    if marker is None:
        return None
    completed = producers.append_marker(
        batch.producer_id,
        batch.producer_epoch,
        marker.coordinator_epoch,
        commit=marker.is_commit,
        offset=batch.base_offset,
        timestamp=batch.max_timestamp,
    )
    if completed is None or not completed.is_aborted:
        return None
    last_stable_offset = producers.last_stable_offset_after(completed)
    return AbortedTransaction(completed.producer_id, completed.first_offset, completed.last_offset, last_stable_offset)


def _metadata_of(batch: BatchSummary) -> BatchMetadata:
    return BatchMetadata(
        batch.base_sequence, batch.last_sequence, batch.base_offset, batch.last_offset, batch.max_timestamp
    )


def replay_producers(segments: LogSegments, producers: ProducerStateManager, end_offset: int) -> None:
    """Updates `producers` with the log's batches from `producers.map_end_offset` up to `end_offset`. Raises OSError."""
    start_offset = producers.map_end_offset
    if start_offset < end_offset:
        for segment in segments.between(start_offset, end_offset):
            found = segment.find(start_offset)
            if found is None:
                continue
            for chunk, chunk_position, batches in scan_segment(segment.file, found[0], segment.size, check_crc=False):
                for batch in batches:
                    if start_offset <= batch.base_offset and batch.last_offset < end_offset:
                        account_for(producers, batch, chunk, batch.position - chunk_position)
    producers.map_end_offset = max(start_offset, end_offset)


def restore_batches(segments: LogSegments, producers: ProducerStateManager, wall_ms: int) -> None:
    """Adds to `producers`, which a snapshot has just restored, the batches before the last one of each producer.

    A snapshot contains only the last batch of a producer. A producer with several requests in flight may retry earlier
    batches after a restart, which have to be recognized as duplicates. The batches are read from the ends of the last
    two segments. Raises OSError.
    """
    end_offset = producers.map_end_offset
    recent = {
        producer_id: entry
        for producer_id, entry in producers.entries.items()
        if entry.last_batch is not None and wall_ms - entry.last_timestamp < RETRY_PERIOD_MS
    }
    preceding = list(segments.between(0, end_offset)) if recent else []
    if not preceding:
        return
    found: dict[int, list[BatchMetadata]] = {}
    try:
        for batch in chain.from_iterable(_tail(segment, end_offset) for segment in preceding[-2:]):
            entry = recent.get(batch.producer_id)
            if entry is None or batch.is_control or batch.producer_epoch != entry.producer_epoch:
                continue
            run = found.setdefault(batch.producer_id, [])
            if run and run[-1].last_sequence + 1 != batch.base_sequence:
                run.clear()
            run.append(_metadata_of(batch))
    except ApiError as error:
        logger.warning("Only the last batch of each producer is known after the start: %s", error)
        return
    for producer_id, run in found.items():
        entry = recent[producer_id]
        last = entry.last_batch
        if last is not None and run[-1].last_sequence == last.last_sequence and run[-1].last_offset == last.last_offset:
            producers.entries[producer_id] = _with_batches(entry, run)


def _with_batches(entry: ProducerEntry, batches: list[BatchMetadata]) -> ProducerEntry:
    made = ProducerEntry(
        entry.producer_id,
        entry.producer_epoch,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.transaction_first_offset,
    )
    for batch in batches:
        made.add(entry.producer_epoch, batch)
    made.last_timestamp = entry.last_timestamp
    return made


def _tail(segment: LogSegment, end_offset: int) -> Iterator[BatchSummary]:
    """Yields the batches below `end_offset` in about the last TAIL_BYTES before it. Raises OSError and ApiError."""
    start = _tail_position(segment, end_offset)
    for _, _, batches in scan_segment(segment.file, start, segment.size, check_crc=False):
        for batch in batches:
            if batch.last_offset >= end_offset:
                return
            yield batch


def _tail_position(segment: LogSegment, end_offset: int) -> int:
    """Returns the position of a batch that is at most TAIL_BYTES before the batch with `end_offset`."""
    found = segment.find(end_offset)
    end = position = segment.size if found is None else found[0]
    if end <= TAIL_BYTES:
        return 0
    distance = 1
    while end_offset - distance > segment.base_offset:
        earlier = segment.find(end_offset - distance)
        if earlier is None or end - earlier[0] > TAIL_BYTES:
            break
        position = earlier[0]
        distance *= 2
    return position
