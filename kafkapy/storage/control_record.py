"""The control record that ends a transaction in a partition (KIP-98).

key: version int16 (0) | type int16 (0 abort, 1 commit)        value: version int16 | coordinator epoch int32
"""

import struct
from typing import NamedTuple

from kafkapy._core.record_batch import RecordBatch

KEY = struct.Struct(">hh")
VALUE = struct.Struct(">hi")
ABORT = 0
COMMIT = 1


class EndTransactionMarker(NamedTuple):
    is_commit: bool
    coordinator_epoch: int


def end_transaction_marker(batch: RecordBatch) -> EndTransactionMarker | None:
    """The marker in a control batch; None for control records of other types (leader change, snapshot header, ...)."""
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
