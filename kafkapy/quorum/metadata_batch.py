"""Batches of the metadata log and its snapshots: metadata records, and the quorum's own control records.

Both kinds are ordinary uncompressed v2 batches without producer. Their partition leader epoch is the epoch of the
quorum's leader. A metadata record has no key; the key of a control record consists of int16 0 and the int16 type of the
record, and its value begins with the version of the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kafkapy._core.bytes.record_batch import OVERHEAD, RecordBatch, RecordBatchBuilder
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.protocol.messages.data_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from kafkapy.protocol.record_frame import decode_metadata_record, encode_metadata_record

CONTROL_TYPES: dict[int, Any] = {
    2: LeaderChangeMessage,
    3: SnapshotHeaderRecord,
    4: SnapshotFooterRecord,
    5: KRaftVersionRecord,
    6: VotersRecord,
}
_CONTROL_KEYS = {message: b"\x00\x00" + control.to_bytes(2, "big") for control, message in CONTROL_TYPES.items()}

# The largest batch of Kafka's metadata log (8 MiB) less a reserve.
MAX_BATCH_BYTES = 8 * 1024 * 1024 - 64 * 1024
MAX_RECORDS_PER_BATCH = 10_000


def control_batch(base_offset: int, epoch: int, timestamp: int, messages: Sequence[Any]) -> bytes:
    """Returns one encoded control batch with `messages`, whose types are the values of `CONTROL_TYPES`. `timestamp` is
    in milliseconds since 1970."""
    builder = RecordBatchBuilder(base_offset, is_control=True, partition_leader_epoch=epoch)
    for message in messages:
        builder.append(timestamp, _CONTROL_KEYS[type(message)], message.encode(0))
    return builder.build()


def metadata_batches(
    base_offset: int, epoch: int, timestamp: int, records: Iterable[MessageAndVersion]
) -> tuple[list[bytes], int]:
    """Returns encoded batches with the records, which get consecutive offsets from `base_offset` on, and the offset
    after the last record. `epoch` is the leader epoch; `timestamp` is in milliseconds since 1970."""
    batches: list[bytes] = []
    builder, size, count = None, 0, 0
    for message, version in records:
        value = encode_metadata_record(message, version)
        if builder is None or size + len(value) > MAX_BATCH_BYTES or count == MAX_RECORDS_PER_BATCH:
            if builder is not None:
                batches.append(builder.build())
            base_offset += count
            builder = RecordBatchBuilder(base_offset, partition_leader_epoch=epoch)
            size, count = OVERHEAD, 0
        builder.append(timestamp, None, value)
        size += len(value) + 16
        count += 1
    if builder is not None:
        batches.append(builder.build())
    return batches, base_offset + count


def decode_control_batch(batch: RecordBatch) -> list[Any]:
    """Returns the control messages of a batch. Raises ValueError for a type that does not occur in the metadata log."""
    messages = []
    for record in batch:
        key = bytes(record.key or b"")
        control = int.from_bytes(key[2:4], "big") if len(key) >= 4 else -1
        message = CONTROL_TYPES.get(control)
        if message is None or key[:2] != b"\x00\x00":
            raise ValueError(f"unknown control record (key {key.hex()}) at offset {record.offset}")
        value = bytes(record.value or b"")
        if int.from_bytes(value[:2], "big") != 0 and message is not LeaderChangeMessage:
            raise ValueError(f"{message.__name__} version {int.from_bytes(value[:2], 'big')} at offset {record.offset}")
        messages.append(message.decode(value, min(int.from_bytes(value[:2], "big"), message.HIGHEST_VERSION)))
    return messages


def decode_metadata_batch(batch: RecordBatch) -> list[Any]:
    """Returns the metadata messages of a batch. Raises ValueError or ProtocolViolation for an unknown type or
    version."""
    return [decode_metadata_record(bytes(record.value or b"")) for record in batch]
