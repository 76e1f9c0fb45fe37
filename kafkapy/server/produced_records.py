"""The record data of one partition in a produce request, as the handler reads it before the log validates it."""

from __future__ import annotations

import struct

from kafkapy._core.bytes.compression import ATTRIBUTES_MASK
from kafkapy._core.bytes.record_batch import (
    BATCH_MAGIC,
    LENGTH_AT,
    LOG_OVERHEAD,
    LOW_ATTRIBUTES_AT,
    MAGIC_AT,
    PRODUCER_ID_AT,
    SMALLEST_LENGTH,
    TRANSACTIONAL_ATTRIBUTE,
)
from kafkapy.coordinator.transaction.transaction_requests import ProducerIdAndEpoch
from kafkapy.errors import ApiError, Error

_PRODUCER = struct.Struct(">qh")
_PRODUCER_AND_SEQUENCE = struct.Struct(">qhi")


class ProducedRecords:
    """A view of one partition's record data in a produce request: batches of magic 2 or a message set.

    Refers to `data` and does not copy it.
    """

    __slots__ = ("data",)

    def __init__(self, data: memoryview) -> None:
        self.data = data

    @property
    def is_batch(self) -> bool:
        """True if the data has the magic of a record batch of magic 2."""
        return len(self.data) > LOW_ATTRIBUTES_AT and self.data[MAGIC_AT] == BATCH_MAGIC

    @property
    def codec(self) -> int:
        """The compression codec of the first batch, whose header must be complete."""
        return self.data[LOW_ATTRIBUTES_AT] & ATTRIBUTES_MASK

    @property
    def is_transactional(self) -> bool:
        """True if the data begins with a batch that belongs to a transaction."""
        return self.is_batch and bool(self.data[LOW_ATTRIBUTES_AT] & TRANSACTIONAL_ATTRIBUTE)

    @property
    def producer(self) -> ProducerIdAndEpoch:
        """The producer id and epoch of the first batch, which must be complete and of magic 2."""
        return ProducerIdAndEpoch(*_PRODUCER.unpack_from(self.data, PRODUCER_ID_AT))

    @property
    def first_sequence(self) -> int:
        """The base sequence of the first batch, which must be complete and of magic 2."""
        sequence: int = _PRODUCER_AND_SEQUENCE.unpack_from(self.data, PRODUCER_ID_AT)[2]
        return sequence

    @property
    def has_whole_message(self) -> bool:
        """True if the data begins with a complete message or batch. Old clients may send an incomplete last message."""
        if len(self.data) < LOG_OVERHEAD:
            return False
        length = int.from_bytes(self.data[LENGTH_AT:LOG_OVERHEAD], "big", signed=True)
        return length + LOG_OVERHEAD <= len(self.data)

    def size_at(self, position: int) -> int:
        """Returns the size in bytes of the batch, of any magic, at `position`; 0 if no complete batch is there.

        Raises ApiError CORRUPT_MESSAGE if the length or the magic at this position is impossible.
        """
        available = len(self.data) - position
        if available < LOG_OVERHEAD:
            return 0
        length = int.from_bytes(self.data[position + LENGTH_AT : position + LOG_OVERHEAD], "big", signed=True)
        if length < SMALLEST_LENGTH:
            text = f"Record size {length} is less than the minimum record overhead ({SMALLEST_LENGTH})"
            raise ApiError(Error.CORRUPT_MESSAGE, text)
        if available <= MAGIC_AT:
            return 0
        magic = self.data[position + MAGIC_AT]
        if magic > BATCH_MAGIC:
            raise ApiError(Error.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
        return length + LOG_OVERHEAD if length + LOG_OVERHEAD <= available else 0
