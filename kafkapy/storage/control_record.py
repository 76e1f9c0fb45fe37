"""The control record that ends a transaction in a partition (KIP-98).

key: version int16 (0) | type int16 (0 abort, 1 commit)        value: version int16 | coordinator epoch int32
"""

import struct

from kafkapy._core.bytes.record_batch import RecordBatch, RecordBatchBuilder
from kafkapy.named_tuple import NamedTuple

KEY = struct.Struct(">hh")
VALUE = struct.Struct(">hi")
ABORT = 0
COMMIT = 1


class EndTransactionMarker(NamedTuple):
    """The content of a control record that ends a transaction."""

    is_commit: bool
    coordinator_epoch: int


def end_transaction_marker(batch: RecordBatch) -> EndTransactionMarker | None:
    """Returns the marker in a control batch, or None if the record has another type."""
    for record in batch:
        if record.key is None or len(record.key) < KEY.size:
            return None
        control_type = KEY.unpack_from(record.key)[1]
        if control_type not in (ABORT, COMMIT):
            return None
        value = record.value
        coordinator_epoch = VALUE.unpack_from(value)[1] if value is not None and len(value) >= VALUE.size else -1
        return EndTransactionMarker(control_type == COMMIT, coordinator_epoch)
    return None


def build_end_transaction_marker(
    producer_id: int, producer_epoch: int, marker: EndTransactionMarker, timestamp: int
) -> bytes:
    """Returns a control batch with the marker. The log that appends the batch sets its offset and leader epoch."""
    builder = RecordBatchBuilder(
        producer_id=producer_id, producer_epoch=producer_epoch, is_transactional=True, is_control=True
    )
    builder.append(
        timestamp, KEY.pack(0, COMMIT if marker.is_commit else ABORT), VALUE.pack(0, marker.coordinator_epoch)
    )
    return bytes(builder.build())
