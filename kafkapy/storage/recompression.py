"""Recompresses batches with the codec of the topic's `compression.type`; not used for "producer", the default."""

from collections.abc import Sequence

from kafkapy._core.bytes.record_batch import BatchSummary, RecordBatch, RecordBatchBuilder
from kafkapy.storage.log_config import LogConfig


def recompress(records: memoryview | bytearray, batches: Sequence[BatchSummary], config: LogConfig) -> bytearray:
    """Returns the records in batches that are compressed with the topic's codec, each with offsets from 0.

    Control batches are never compressed. The caller validates the result again, because sizes have changed.
    """
    converted = bytearray()
    for summary in batches:
        batch = RecordBatch(records, summary.position)
        keep = summary.is_control or summary.compression == config.codec
        converted += batch.data if keep else rebuilt(batch, config)
    return converted


def rebuilt(batch: RecordBatch, config: LogConfig) -> bytes:
    """Returns the batch compressed with the topic's codec."""
    builder = RecordBatchBuilder(
        compression=config.codec,
        level=config.compression_level,
        timestamp_type=batch.timestamp_type,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
    )
    for record in batch:
        builder.append(record.timestamp, record.key, record.value, record.headers)
    return builder.build()
