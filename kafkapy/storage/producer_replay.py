"""Updates the producers of a log from its batches: at an append, after a start or a truncation, and in recovery."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kafkapy._core.broker_state.producer_table import BatchMetadata, ProducerEntry
from kafkapy._core.bytes.record_batch import BatchSummary, RecordBatch
from kafkapy.storage.control_record import end_transaction_marker
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.log_segments import LogSegments
from kafkapy.storage.producer_entry import follows
from kafkapy.storage.producer_state import ProducerStateManager
from kafkapy.storage.segment_reader import scan_chunk, scan_segment
from kafkapy.storage.transaction_index import AbortedTransaction

# Kafka's limit on the requests that an idempotent producer has in flight, and on the batches of an entry.
BATCHES_IN_FLIGHT = 5
# The numbers of bytes before the offset of a snapshot that are searched for the batches before the last one of each
# producer: the second number only if the first one gives too few batches.
TAIL_LENGTHS = (128 << 10, 1 << 20)
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
    """Updates `producers` with the log's batches from `producers.map_end_offset` up to `end_offset`. Raises OSError.

    The first batch may begin before: the records at its beginning are then below the log start offset.
    """
    start_offset = producers.map_end_offset
    if start_offset < end_offset:
        for segment in segments.between(start_offset, end_offset):
            found = segment.find(start_offset)
            if found is None:
                continue
            for chunk, chunk_position, batches in scan_segment(segment.file, found[0], segment.size, check_crc=False):
                for batch in batches:
                    if start_offset <= batch.last_offset < end_offset:
                        account_for(producers, batch, chunk, batch.position - chunk_position)
    producers.map_end_offset = max(start_offset, end_offset)


def restore_batches(segments: LogSegments, producers: ProducerStateManager, wall_ms: int) -> None:
    """Adds earlier batches of each producer to `producers`, which has just been restored from a snapshot.

    A snapshot contains only the last batch of a producer. A producer with several requests in flight may retry earlier
    batches after a restart, which have to be recognized as duplicates. `wall_ms` is the present time: producers whose
    last batch is too old for a retry are left out. The batches are read from the end of the segment before the
    snapshot's offset: first only a few bytes, and more only if these do not contain enough batches, so that a start
    with many partitions does not take long. No file stays open. Raises OSError.
    """
    end_offset = producers.map_end_offset
    last = segments.index_of(end_offset - 1)
    recent = {
        producer_id: entry
        for producer_id, entry in producers.entries.items()
        if entry.last_batch is not None and wall_ms - entry.last_timestamp < RETRY_PERIOD_MS
    }
    if last < 0 or not recent:
        return
    for length in TAIL_LENGTHS:
        runs = _runs(_tail(segments, last, end_offset, length), recent)
        if all(_is_complete(runs.get(producer_id)) for producer_id in recent):
            break
    for producer_id, run in runs.items():
        entry = recent[producer_id]
        known = entry.last_batch
        if known is not None and (run[-1].last_sequence, run[-1].last_offset) == (
            known.last_sequence,
            known.last_offset,
        ):
            producers.entries[producer_id] = _with_batches(entry, run)


def _runs(batches: Iterable[BatchSummary], recent: Mapping[int, ProducerEntry]) -> dict[int, list[BatchMetadata]]:
    """Returns the batches of each producer after the last gap in its sequence numbers, by producer id.

    `recent` maps each producer id to the state of the producer. Control batches, batches of producers that are not in
    `recent`, and batches whose epoch is not the present epoch of their producer are left out.
    """
    runs: dict[int, list[BatchMetadata]] = {}
    for batch in batches:
        entry = recent.get(batch.producer_id)
        if entry is None or batch.is_control or batch.producer_epoch != entry.producer_epoch:
            continue
        run = runs.setdefault(batch.producer_id, [])
        if run and not follows(run[-1].last_sequence, batch.base_sequence):
            run.clear()
        run.append(_metadata_of(batch))
    return runs


def _is_complete(run: Sequence[BatchMetadata] | None) -> bool:
    """Returns whether `run`, the last batches of a producer, contains all batches that the producer may retry.

    This is the case if it has BATCHES_IN_FLIGHT batches or begins with the producer's first batch. If `run` is None,
    because no batch of the producer was found, the result is False.
    """
    return run is not None and (len(run) >= BATCHES_IN_FLIGHT or run[0].first_sequence == 0)


def _with_batches(entry: ProducerEntry, batches: Iterable[BatchMetadata]) -> ProducerEntry:
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


def _tail(segments: LogSegments, last: int, end_offset: int, length: int) -> Iterator[BatchSummary]:
    """Yields the batches in the last `length` bytes of the log that are below `end_offset`, in the order of offsets.

    `last` is the index of the last segment. If this segment is shorter than `length`, the end of the segment before it
    makes up the rest; no more than these two segments are read. Raises OSError.
    """
    segment = segments[last]
    if last and segment.size < length:
        yield from _batches_at_end(segments[last - 1], length - segment.size)
    for batch in _batches_at_end(segment, length):
        if batch.last_offset >= end_offset:
            return
        yield batch


def _batches_at_end(segment: LogSegment, length: int) -> Sequence[BatchSummary]:
    chunk, position = segment.read_end(length)
    return scan_chunk(chunk, position, check_crc=False)[0]
