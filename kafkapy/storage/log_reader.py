"""Reads a partition's log: by offset, by timestamp and by leader epoch."""

from typing import TYPE_CHECKING, NoReturn

from kafkapy._core.broker_state.log_state import LogState
from kafkapy._core.bytes.message_set import iterate_records
from kafkapy._core.bytes.record_batch import BATCH_MAGIC, MAGIC_AT, RecordBatch
from kafkapy.errors import ApiError, Error
from kafkapy.storage.leader_epoch_cache import LeaderEpochCache
from kafkapy.storage.log_results import FetchData, LogOffsetMetadata, TimestampAndOffset
from kafkapy.storage.log_segments import LogSegments
from kafkapy.storage.producer_state import ProducerStateManager
from kafkapy.storage.transaction_index import AbortedTransaction, CorruptTransactionIndex
from kafkapy.types import OffsetAndEpoch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafkapy.types import TopicPartition


class LogReader(LogState):
    """The methods of Log that read; the subclass Log has the attributes. These methods change nothing. They are
    called only by the thread that owns the log."""

    __slots__ = ()

    if TYPE_CHECKING:
        topic_partition: TopicPartition
        segments: LogSegments
        leader_epochs: LeaderEpochCache
        producers: ProducerStateManager

        def _fail(self, action: str, error: OSError) -> NoReturn: ...

    @property
    def size(self) -> int:
        """The size of all batches of the log in bytes."""
        return self.segments.size

    @property
    def latest_epoch(self) -> int:
        """The newest leader epoch of the log, or -1 if it has none."""
        return self.leader_epochs.latest_epoch

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction has ended; at most the high watermark."""
        high_watermark = self.high_watermark
        if not self.producers.has_transactions:
            return high_watermark
        first_unstable = self.producers.first_unstable_offset(high_watermark)
        return high_watermark if first_unstable is None else min(high_watermark, first_unstable)

    @property
    def end_offset_metadata(self) -> LogOffsetMetadata:
        """The log end offset with its position in the active segment."""
        active = self.segments.active
        return LogOffsetMetadata(self.log_end_offset, active.base_offset, active.size)

    # -- by offset -----------------------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, *, max_offset: int | None = None, min_one_message: bool = True
    ) -> FetchData:
        """Returns up to `max_bytes` of batches below `max_offset`, beginning with the batch that holds `offset`.

        `max_offset` is the log end offset by default. If the first batch is larger than `max_bytes`, it is returned
        whole if `min_one_message` is True, and is cut otherwise. Raises ApiError OFFSET_OUT_OF_RANGE if `offset` is
        outside of the log, ApiError CORRUPT_MESSAGE if the log is damaged, or StorageError.
        """
        end_offset = self.log_end_offset
        if offset > end_offset or offset < self.log_start_offset:
            raise ApiError(
                Error.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {offset} for partition {self.topic_partition}, but we only have log "
                f"segments from offset {self.log_start_offset} up to: {end_offset}.",
            )
        limit = end_offset if max_offset is None or max_offset > end_offset else max_offset
        if offset >= limit:
            return FetchData(b"", self.offset_metadata(offset))
        try:
            return self._read(offset, max_bytes, limit, min_one_message)
        except OSError as error:
            self._fail("read", error)

    def _read(self, offset: int, max_bytes: int, limit: int, min_one_message: bool) -> FetchData:
        segments, end_offset = self.segments, self.log_end_offset
        index = max(0, segments.index_of(offset))
        while index < len(segments):
            segment = segments[index]
            found = segment.find(offset)
            index += 1
            if found is None:
                continue
            position, first_size = found[0], found[1]
            end = segment.size
            if limit < end_offset and (index == len(segments) or segments[index].base_offset > limit):
                bound = segment.find(limit)
                end = bound[0] if bound is not None else end
            metadata = LogOffsetMetadata(offset, segment.base_offset, position)
            length = max(max_bytes, first_size) if min_one_message else max_bytes
            if length <= 0 or end <= position:
                return FetchData(b"", metadata, length <= 0)
            return FetchData(segment.file.slice(position, min(length, end - position)), metadata, length < first_size)
        return FetchData(b"", self.end_offset_metadata)

    def report_failed_read(self, error: OSError) -> NoReturn:
        """Takes the directory offline and raises StorageError, because the caller's own access to a file of the log has
        failed with `error`."""
        self._fail("read", error)

    def offset_metadata(self, offset: int) -> LogOffsetMetadata:
        """Returns `offset` with the position of the batch that holds it or, if there is none, of the next batch.

        The result has no position if the offset is above the log end offset. Raises ApiError CORRUPT_MESSAGE, or
        StorageError.
        """
        if offset >= self.log_end_offset:
            return self.end_offset_metadata if offset == self.log_end_offset else LogOffsetMetadata(offset)
        index = self.segments.index_of(offset)
        try:
            while 0 <= index < len(self.segments):
                segment = self.segments[index]
                found = segment.find(offset)
                if found is not None:
                    return LogOffsetMetadata(offset, segment.base_offset, found[0])
                index += 1
        except OSError as error:
            self._fail("read", error)
        return LogOffsetMetadata(offset)

    def position_delta(self, start: LogOffsetMetadata, end: LogOffsetMetadata) -> int:
        """Returns the number of bytes of the log from `start` to `end`.

        Returns 0 if `end` is not after `start`, or if the position of one of them is not known.
        """
        if start.position < 0 or end.position < 0 or end.offset <= start.offset:
            return 0
        if start.segment_base_offset == end.segment_base_offset:
            return max(0, end.position - start.position)
        delta = -start.position
        for segment in self.segments.between(start.segment_base_offset, end.segment_base_offset):
            delta += segment.size
        return max(0, delta + end.position)

    # -- by timestamp --------------------------------------------------------------------------------------------

    def fetch_offset_by_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        """Returns the first record whose timestamp (ms) is at or after `timestamp`.

        Returns None if there is no such record. Raises StorageError.
        """
        try:
            return self._find_timestamp(timestamp)
        except OSError as error:
            self._fail("read", error)

    def _find_timestamp(self, timestamp: int) -> TimestampAndOffset | None:
        start = self.log_start_offset
        for segment in self.segments:
            if segment.max_timestamp < timestamp:
                continue
            found = segment.find_timestamp(timestamp, start)
            while found is not None:
                position, size, _, last_offset = found
                for record_timestamp, offset, epoch in read_timestamps(segment.file.pread(position, size)):
                    if record_timestamp >= timestamp and offset >= start:
                        return TimestampAndOffset(record_timestamp, offset, epoch)
                found = segment.find_timestamp(timestamp, last_offset + 1)
        return None

    def fetch_max_timestamp(self) -> TimestampAndOffset | None:
        """Returns the first record with the greatest timestamp of the log; None if no record has a timestamp. Raises
        StorageError."""
        try:
            return self._find_max_timestamp()
        except OSError as error:
            self._fail("read", error)

    def _find_max_timestamp(self) -> TimestampAndOffset | None:
        latest = max(self.segments, key=lambda segment: segment.max_timestamp)
        if latest.max_timestamp < 0:
            return None
        found = latest.find(latest.offset_of_max_timestamp)
        if found is None:
            return None
        best: TimestampAndOffset | None = None
        for timestamp, offset, epoch in read_timestamps(latest.file.pread(found[0], found[1])):
            if best is None or timestamp > best.timestamp:
                best = TimestampAndOffset(timestamp, offset, epoch)
        return best

    # -- by epoch, by transaction --------------------------------------------------------------------------------

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Returns the largest known epoch <= `epoch`, with its end offset (exclusive) (KIP-279).

        If `epoch` is below all known epochs, returns `epoch` itself with the offset at which the first known epoch
        begins.
        Epoch and offset are -1 if `epoch` is -1 or above the newest epoch, or if no epoch is known.
        """
        return self.leader_epochs.end_offset_for(epoch, self.log_end_offset)

    def collect_aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Returns the aborted transactions that overlap [start_offset, end_offset).

        Raises StorageError, or ApiError UNKNOWN_SERVER_ERROR if the index of a segment is damaged.
        """
        aborted: list[AbortedTransaction] = []
        try:
            for segment in self.segments.between(start_offset, self.log_end_offset):
                if segment.is_free_of_aborted:
                    continue
                index = segment.transaction_index
                found, is_complete = index.collect(start_offset, end_offset)
                segment.is_free_of_aborted = not found and index.is_absent()
                aborted += found
                if is_complete:
                    break
        except CorruptTransactionIndex as error:
            raise ApiError(Error.UNKNOWN_SERVER_ERROR, str(error)) from error
        except OSError as error:
            self._fail("read", error)
        return aborted


def read_timestamps(data: bytes) -> "Iterator[tuple[int, int, int]]":
    """Yields (timestamp, offset, leader epoch) of every record of the batch in `data`, one by one, since a batch may
    contain millions of records.

    Raises ApiError if the batch is corrupt.
    """
    if data[MAGIC_AT] < BATCH_MAGIC:
        for message in iterate_records(data):
            yield message.timestamp, message.offset, -1
        return
    batch = RecordBatch(data)
    epoch = batch.partition_leader_epoch
    for record in batch:
        yield record.timestamp, record.offset, epoch
