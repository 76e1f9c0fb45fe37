"""Updates the producers of a log from its batches: at an append, after a start or a truncation, and in recovery."""

from kafkapy._core.broker_state.producer_table import BatchMetadata
from kafkapy._core.bytes.record_batch import BatchSummary, RecordBatch
from kafkapy.storage.control_record import end_transaction_marker
from kafkapy.storage.log_segments import LogSegments
from kafkapy.storage.producer_state import ProducerStateManager
from kafkapy.storage.segment_reader import scan_segment
from kafkapy.storage.transaction_index import AbortedTransaction


def account_for(
    producers: ProducerStateManager, batch: BatchSummary, buffer: bytes | bytearray | memoryview, position: int
) -> AbortedTransaction | None:
    """Updates `producers` by a batch of the log. The bytes of the batch are at `position` of `buffer`.

    Returns an entry for the transaction index if the batch aborts a transaction, otherwise None.
    """
    if batch.producer_id < 0:
        return None
    if not batch.is_control:
        metadata = BatchMetadata(
            batch.base_sequence, batch.last_sequence, batch.base_offset, batch.last_offset, batch.max_timestamp
        )
        producers.append_data(batch.producer_id, batch.producer_epoch, metadata, batch.is_transactional)
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


def replay_producers(segments: LogSegments, producers: ProducerStateManager, end_offset: int) -> None:
    """Updates `producers` by the log's batches from `producers.map_end_offset` up to `end_offset`. Raises OSError."""
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
