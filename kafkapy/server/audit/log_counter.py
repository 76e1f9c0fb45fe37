"""Counts the records in a part of a log, without the interpreter lock where the batches allow it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafkapy._core.bytes.bucket_counter import CORRUPT, COUNTED, FULL, BucketCounter
from kafkapy._core.bytes.message_set import LegacyRecord, iterate_records
from kafkapy._core.bytes.record_batch import BATCH_MAGIC, LENGTH_AT, LOG_OVERHEAD, MAGIC_AT, Record, RecordBatch
from kafkapy._core.bytes.segment_file import FileRange
from kafkapy.errors import ApiError, Error
from kafkapy.server.audit.audited_logs import LogPart
from kafkapy.storage.segment_reader import batch_size, read_whole

BUFFER_BYTES = 1 << 20


class LogCounter:
    """Reads parts of logs and counts their records. Used by one thread.

    `collect` is called with the counts, as `BucketCounter.take` returns them, whenever the table of counts is full and
    at the end of each part.
    """

    def __init__(self, bucket_ms: int, collect: Callable[[list[tuple[int, bool, int, int]]], None]) -> None:
        """Allocates the table of counts for time buckets of `bucket_ms`."""
        self._counter = BucketCounter(bucket_ms)
        self._collect = collect
        self._memory = bytearray(BUFFER_BYTES)

    @property
    def uncounted(self) -> int:
        """The number of records in batches with too many time buckets, which were not counted."""
        return self._counter.uncounted

    def count(self, part: LogPart) -> int:
        """Counts the records of the part; returns the offset after them.

        Raises OSError, or ApiError if a batch is corrupt; the counts that `collect` has not received are then lost.
        """
        if not isinstance(part.records, FileRange) or not len(part.records):
            return part.end_offset
        self._counter.follow(part.clients, part.aborted)
        try:
            return self._count(part, part.records)
        finally:
            self._counter.take()

    def _count(self, part: LogPart, records: FileRange) -> int:
        offset, position, end = part.start_offset, records.position, records.position + len(records)
        while position < end:
            length = read_whole(records.fd, self._memory, position, end)
            status, passed, offset = self._counter.count(self._memory, length, offset)
            if status == FULL:
                self._collect(self._counter.take())
            elif status != COUNTED:
                size = batch_size(self._memory[passed : passed + LOG_OVERHEAD])
                if status == CORRUPT or not 0 < size <= length - passed:
                    raise ApiError(Error.CORRUPT_MESSAGE, f"the batch at or after offset {offset} is corrupt")
                offset = self._count_other(bytes(self._memory[passed : passed + size]), offset)
                passed += size
            elif not passed:
                size = batch_size(self._memory[:LOG_OVERHEAD]) if length >= LOG_OVERHEAD else 0
                if size <= length or size > end - position:
                    break  # the part ends with an incomplete batch
                self._memory = bytearray(size)
            position += passed
        self._collect(self._counter.take())
        return offset

    def _count_other(self, data: bytes, offset: int) -> int:
        """Counts the records from `offset` on of a batch that the compiled code does not open: a message of magic 0 or
        1, or a batch that is large or compressed in an unusual way.

        Returns the offset after the batch. Raises ApiError if the batch is corrupt.
        """
        producer_id = -1
        records: Iterable[Record | LegacyRecord]
        if data[MAGIC_AT] < BATCH_MAGIC:
            end_offset = int.from_bytes(data[:LENGTH_AT], "big") + 1
            records = iterate_records(data)
        else:
            batch = RecordBatch(data)
            end_offset = batch.next_offset
            records = () if batch.is_control else batch
            producer_id = batch.producer_id if batch.is_transactional else -1
        for record in records:
            if record.offset >= offset:
                self._counter.count_other(record.offset, record.timestamp, producer_id)
        return end_offset
