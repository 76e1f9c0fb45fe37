"""The files of `__cluster_metadata-0`: segments that are appended to and synced, one group of batches at a time.

Another program may append to these files too: Apache Kafka, if it is started on a directory that is in use, writes
before it notices that the directory is locked. Every append therefore first checks that the file ends where the last
append ended, and cuts off the bytes of another program. The only writer in this process is the quorum thread, which
runs Raft.
"""

from __future__ import annotations

import logging
import os
from bisect import bisect_right
from collections.abc import Sequence

from kafkapy._core.bytes.record_batch import LENGTH_AT, LOG_OVERHEAD, OVERHEAD, RecordBatch, iterate_batches
from kafkapy._core.bytes.segment_file import SegmentFile
from kafkapy.errors import StorageError
from kafkapy.quorum.log_scanner import LogScanner
from kafkapy.quorum.segment_indexes import SegmentIndexes, indexed_position
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.leader_epoch_cache import LeaderEpochCache
from kafkapy.types import METADATA_PARTITION, METADATA_TOPIC, OffsetAndEpoch

DIRECTORY_NAME = f"{METADATA_TOPIC}-{METADATA_PARTITION}"
LAST_OFFSET_DELTA_AT = 23  # in the header of a batch
EMPTY_PRODUCER_SNAPSHOT = bytes.fromhex("000148674bc700000000")
logger = logging.getLogger("kafka.raft.KafkaRaftLog")


class MetadataLog:
    """Owns the active segment and the epoch history of the metadata log. Invariant: start_offset <= end_offset == base
    offset of the next batch.

    Not thread-safe. The methods raise StorageError instead of OSError, because a node cannot continue without its
    metadata log.
    """

    def __init__(self, directory: str, filesystem: Filesystem, segment_bytes: int) -> None:
        self.directory = directory
        self.filesystem = filesystem
        self.segment_bytes = segment_bytes
        self.start_offset = 0
        self.end_offset = 0
        self.last_timestamp = -1
        self.epochs = LeaderEpochCache(directory, filesystem)
        self.bases: list[int] = []
        self._file: SegmentFile | None = None
        self._indexes = SegmentIndexes(0)

    def open(self, scanned: LogScanner, snapshot_id: OffsetAndEpoch) -> None:
        """Opens the log that `scanned` has read: removes an incomplete write at its end, or creates the first segment.

        Replaces the log with an empty one if it ends before `snapshot_id`, the newest snapshot: at a lower offset, or
        in an older epoch, with records that were not committed. Raises StorageError.
        """
        snapshot_end_offset = snapshot_id.offset
        try:
            if scanned.segments and scanned.ends_before(snapshot_id):
                logger.warning(
                    "%s ends at offset %d of epoch %d, before its newest snapshot at %d of epoch %d: the log starts "
                    "again there",
                    self.directory, scanned.end_offset, scanned.last_epoch, snapshot_end_offset, snapshot_id.epoch,
                )  # fmt: skip
                for segment in scanned.segments:
                    self._remove_segment(segment.base_offset)
                scanned.segments.clear()
            if scanned.segments:
                self._take_over(scanned)
            else:
                self.start_offset = self.end_offset = snapshot_end_offset
                self._create_segment(snapshot_end_offset)
            self.epochs.write(self.end_offset)
        except OSError as error:
            raise self._failed("opening", error) from error

    def _take_over(self, scanned: LogScanner) -> None:
        last = scanned.segments[-1]
        self.bases = [segment.base_offset for segment in scanned.segments]
        self.start_offset, self.end_offset = scanned.start_offset, scanned.end_offset
        self.last_timestamp = scanned.last_timestamp
        for epoch, start_offset in scanned.epochs:
            self.epochs.assign(epoch, start_offset)
        self._file = self.filesystem.open_segment(last.path)
        self._indexes = last.indexes
        if last.valid_size < last.file_size:
            logger.warning(
                "%s: torn tail of %d bytes cut off at position %d (offset %d)",
                last.path, last.file_size - last.valid_size, last.valid_size, self.end_offset,
            )  # fmt: skip
            self._file.truncate(last.valid_size)
        # A killed broker may not have synced the last batches. They have to be durable before the broker acts on them,
        # for example before it marks the directory of an unknown topic as a stray.
        self.filesystem.sync_file(self._file.fd)
        for segment in scanned.segments[:-1]:
            stem = self._stem(segment.base_offset)
            if not os.path.exists(stem + ".index"):
                segment.indexes.write(self.filesystem, stem)

    @property
    def last_epoch(self) -> int:
        return self.epochs.latest_epoch

    @property
    def is_empty(self) -> bool:
        return self.end_offset == self.start_offset

    @property
    def size(self) -> int:
        """The total size of all segments in bytes."""
        return sum(os.path.getsize(self._stem(base) + ".log") for base in self.bases)

    def append(self, contents: Sequence[bytes], *, is_durable: bool = True) -> None:
        """Appends encoded batches with consecutive offsets; each element of `contents` has one or more whole batches.

        They are durable on return unless `is_durable` is False. Raises StorageError.
        """
        try:
            if self._active().size + sum(map(len, contents)) > self.segment_bytes and self._active().size > 0:
                self._roll()
            file = self._active()
            self._cut_off_foreign_batches(file)
            position = file.append(contents)
            if is_durable:
                self.filesystem.sync_file(file.fd)
            for content in contents:
                for batch in iterate_batches(content):
                    self._observe(batch, position + batch.position)
                position += len(content)
        except OSError as error:
            raise self._failed("appending to", error) from error

    def _observe(self, batch: RecordBatch, position: int) -> None:
        if batch.base_offset != self.end_offset:
            raise AssertionError(f"appended offset {batch.base_offset} at the log's end {self.end_offset}")
        epoch = batch.partition_leader_epoch
        assert epoch >= self.last_epoch, f"appended a batch of epoch {epoch} after one of epoch {self.last_epoch}"
        if self.epochs.assign(batch.partition_leader_epoch, batch.base_offset):
            self.epochs.write(batch.next_offset)
        self._indexes.observe(position, batch.size_in_bytes, batch.last_offset, batch.max_timestamp)
        self.end_offset = batch.next_offset
        self.last_timestamp = max(self.last_timestamp, batch.max_timestamp)

    def _cut_off_foreign_batches(self, file: SegmentFile) -> None:
        found = os.fstat(file.fd).st_size
        if found > file.size:
            logger.error(
                "%s is %d bytes long, but this broker wrote only %d: another program appended to it; "
                "its bytes are cut off",
                file.path, found, file.size,
            )  # fmt: skip
            os.ftruncate(file.fd, file.size)
        elif found < file.size:
            raise StorageError(self.directory, f"{file.path} is {found} bytes long, but this broker wrote {file.size}")

    def _roll(self) -> None:
        self._close_segment()
        self._create_segment(self.end_offset)

    def _create_segment(self, base_offset: int) -> None:
        self._file = self.filesystem.open_segment(self._stem(base_offset) + ".log", create=True)
        self._indexes = SegmentIndexes(base_offset)
        self.bases.append(base_offset)
        self.filesystem.sync_directory(self.directory)

    # -- reading ---------------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Returns whole batches, beginning with the batch that contains `offset`: at most `max_bytes`, but at least one
        batch.

        Returns b"" if `offset` is the log's end. `offset` must not be outside of the log. Raises StorageError.
        """
        assert self.start_offset <= offset <= self.end_offset, f"offset {offset} is not in the log"
        if offset == self.end_offset:
            return b""
        base_offset = self.bases[bisect_right(self.bases, offset) - 1]
        stem = self._stem(base_offset)
        try:
            if base_offset == self.bases[-1]:
                return _read_batches(self._active().fd, self._indexes.position_before(offset), offset, max_bytes)
            with open(stem + ".index", "rb") as index:
                position = indexed_position(index.read(), offset - base_offset)
            with open(stem + ".log", "rb") as file:
                return _read_batches(file.fileno(), position, offset, max_bytes)
        except OSError as error:
            raise self._failed("reading", error) from error

    # -- removing --------------------------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """Removes the batches from `offset` on; a batch must begin at `offset`. The removal is durable on return.
        Raises StorageError.
        """
        assert self.start_offset <= offset <= self.end_offset, f"the log cannot end at {offset}"
        if offset == self.end_offset:
            return
        logger.info("%s is truncated from offset %d to %d", self.directory, self.end_offset, offset)
        try:
            while self.bases[-1] > offset:
                self._drop_active()
            if self._file is None:
                self._file = self.filesystem.open_segment(self._stem(self.bases[-1]) + ".log")
            file = self._file
            content = file.pread(0, file.size)
            self._indexes = SegmentIndexes(self.bases[-1])
            size = 0
            for batch in iterate_batches(content):
                if batch.base_offset >= offset:
                    break
                assert batch.next_offset <= offset, f"offset {offset} is inside a batch"
                self._indexes.observe(size, batch.size_in_bytes, batch.last_offset, batch.max_timestamp)
                size += batch.size_in_bytes
            file.truncate(size)
            self.filesystem.sync_file(file.fd)
            self.end_offset = offset
            self.epochs.truncate_from_end(offset)
            self.epochs.write(offset)
        except OSError as error:
            raise self._failed("truncating", error) from error

    def start_at(self, offset: int) -> None:
        """Removes all segments and begins an empty log at `offset`, the end of a snapshot. Raises StorageError."""
        try:
            while self.bases:
                self._drop_active()
            self.epochs.clear()
            self.start_offset = self.end_offset = offset
            self._create_segment(offset)
            self.epochs.write(offset)
        except OSError as error:
            raise self._failed("removing", error) from error

    def _drop_active(self) -> None:
        """Closes and deletes the last segment, which is the active one."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self._remove_segment(self.bases.pop())

    def delete_before(self, offset: int) -> None:
        """Removes the segments that end at or before `offset`, because a snapshot replaces them. Raises
        StorageError."""
        try:
            while len(self.bases) > 1 and self.bases[1] <= offset:
                self._remove_segment(self.bases.pop(0))
                self.start_offset = self.bases[0]
            assert self.start_offset <= self.end_offset, f"the log would begin at {self.start_offset}, after its end"
            self.epochs.truncate_from_start(self.start_offset)
            self.epochs.write(self.end_offset)
        except OSError as error:
            raise self._failed("deleting from", error) from error

    def _remove_segment(self, base_offset: int) -> None:
        for suffix in (".index", ".timeindex", ".snapshot", ".txnindex", ".log"):
            self.filesystem.unlink(self._stem(base_offset) + suffix)

    def close(self) -> None:
        """Closes the log. Writes the indexes and an empty producer snapshot, which Kafka expects after a clean stop.
        Raises StorageError."""
        if self._file is None:
            return
        try:
            self._cut_off_foreign_batches(self._file)
            self._close_segment()
            for name in os.listdir(self.directory):
                if name.endswith(".snapshot"):
                    self.filesystem.unlink(os.path.join(self.directory, name))
            self.filesystem.write_file(self._stem(self.end_offset) + ".snapshot", EMPTY_PRODUCER_SNAPSHOT)
            self.filesystem.sync_directory(self.directory)
        except OSError as error:
            raise self._failed("closing", error) from error

    def _close_segment(self) -> None:
        file = self._active()
        self._indexes.write(self.filesystem, file.path.removesuffix(".log"))
        file.close()
        self._file = None

    def _active(self) -> SegmentFile:
        if self._file is None:
            raise StorageError(self.directory, "the metadata log is closed")
        return self._file

    def _stem(self, offset: int) -> str:
        return os.path.join(self.directory, f"{offset:020d}")

    def _failed(self, doing: str, error: OSError) -> StorageError:
        return StorageError(self.directory, f"{doing} the metadata log failed: {error}")


def _read_batches(fd: int, position: int, offset: int, max_bytes: int) -> bytes:
    """Returns whole batches, beginning with the batch that contains `offset`: at most `max_bytes`, but at least one
    batch.

    `position` is the position in the file of that batch or of an earlier one.
    """
    header = _Header(os.pread(fd, OVERHEAD, position))
    while header.last_offset < offset:
        position += header.size
        header = _Header(os.pread(fd, OVERHEAD, position))
    content = os.pread(fd, max(max_bytes, header.size), position)
    end = header.size
    while len(content) - end >= OVERHEAD:
        size = _Header(content[end : end + OVERHEAD]).size
        if end + size > len(content):
            break
        end += size
    return content[:end]


class _Header:
    """The size in bytes and the last offset of a batch, read from the batch's header."""

    __slots__ = ("last_offset", "size")

    def __init__(self, content: bytes) -> None:
        assert len(content) >= OVERHEAD, "the metadata log ends inside a batch"
        self.size = int.from_bytes(content[LENGTH_AT : LENGTH_AT + 4]) + LOG_OVERHEAD
        delta = int.from_bytes(content[LAST_OFFSET_DELTA_AT : LAST_OFFSET_DELTA_AT + 4])
        self.last_offset = int.from_bytes(content[:8]) + delta
