"""Copies a log into its future replica, a log in another log directory that will replace it (KIP-113).

The batches are copied byte by byte and their checksums verified; each append updates indexes, producers and epochs of
the future log. Its segments begin at the base offsets of the current log's segments.
"""

import logging
import os

from kafkapy._core.bytes.segment_scan import find_batch
from kafkapy.errors import ApiError, Error
from kafkapy.storage.log import Log
from kafkapy.storage.log_segment import LOG_SUFFIX
from kafkapy.storage.segment_reader import CHUNK, batch_size, scan_chunk

logger = logging.getLogger("kafka.server.ReplicaAlterLogDirsThread")


class FutureReplica:
    """Copies a log to another log directory, and owns the future log until the future log becomes the current log.

    One thread uses the object. It is not the thread that owns the current log, and therefore reads only the offsets of
    the current log and, through its own descriptors, the files. The exception is `finish`, which is called on the
    thread that owns the current log while the copying thread waits.
    """

    def __init__(self, current: Log, future: Log) -> None:
        self.current = current
        self.future = future
        self._truncations = current.truncations
        self._fd = -1
        self._base_offset = -1
        self._position = 0

    def close(self) -> None:
        """Closes the segment file that is being copied, if one is open."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def copy_some(self) -> int:
        """Copies the next batches, about a megabyte; returns their size in bytes, or 0 if there is nothing to copy now.

        Raises ApiError CORRUPT_MESSAGE if the current log is damaged, StorageError if the directory of the future log
        failed, and OSError if the directory of the current log failed.
        """
        current = self.current
        if self._truncations != current.truncations or current.segments.first.base_offset > self.future.log_end_offset:
            self._start_over()
        try:
            return self._copy_next()
        except FileNotFoundError:
            return self._copy_after_deletion()
        except (ApiError, ValueError):  # a piece was read that a truncation has just replaced
            if self._truncations == current.truncations:
                raise
            self._start_over()
            return self._copy_next()

    def _copy_after_deletion(self) -> int:
        """Copies the next batches although the segment that was about to be opened has been deleted, by retention or by
        a truncation. Returns 0 while a truncation is still deleting segments."""
        self._start_over()
        try:
            return self._copy_next()
        except FileNotFoundError:
            if any(segment.is_deleted for segment in self.current.segments):
                return 0
            raise

    def _start_over(self) -> None:
        """Empties the future log, because its records are no longer in the current log."""
        self.close()
        self._truncations = self.current.truncations
        self.future.truncate_fully_and_start_at(self.current.segments.first.base_offset)
        logger.info("Copying %s begins at offset %d", self.future.topic_partition, self.future.log_end_offset)

    def _copy_next(self) -> int:
        for segment in self.current.segments.between(self.future.log_end_offset, self.current.log_end_offset):
            if segment.base_offset < self._base_offset and self._fd >= 0:
                continue
            end = segment.size
            if self._fd < 0 or segment.base_offset != self._base_offset:
                self._open(segment.path(LOG_SUFFIX), segment.base_offset, end)
            if self._position < end:
                return self._copy_piece(end)
        return 0

    def _open(self, path: str, base_offset: int, end: int) -> None:
        self.close()
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._base_offset = base_offset
        found = find_batch(self._fd, 0, end, self.future.log_end_offset)
        self._position = end if found is None else found[0]
        if found is not None and base_offset > self.future.segments.active.base_offset:
            self.future.roll_at(base_offset)

    def _copy_piece(self, end: int) -> int:
        position = self._position
        chunk = os.pread(self._fd, min(CHUNK, end - position), position)
        if batch_size(chunk) > len(chunk):
            chunk = os.pread(self._fd, min(batch_size(chunk), end - position), position)
        batches, valid = scan_chunk(chunk, 0, True)
        if not valid or batches[0].base_offset < self.future.log_end_offset:
            raise ApiError(
                Error.CORRUPT_MESSAGE, f"no valid next batch at position {position} of segment {self._base_offset}"
            )
        self.future.append_copy(memoryview(chunk)[:valid], batches)
        self._position = position + valid
        return valid

    def finish(self, most_bytes: int) -> bool:
        """Copies the remaining batches; returns True if the future log now has all records and can become current.

        Otherwise returns False: records are missing although more than `most_bytes` bytes were copied, or although no
        further batch could be copied. Runs on the thread that owns the current log, so that nothing is appended at the
        same time. Raises ApiError CORRUPT_MESSAGE, StorageError or OSError.
        """
        copied = 0
        while copied <= most_bytes:
            size = self.copy_some()
            if size == 0:
                return self._take_place()
            copied += size
        return False

    def _take_place(self) -> bool:
        """Copies the current log's high watermark, producers and leader epochs to the future log; returns True.

        Copies nothing and returns False if the future log does not have all records yet.
        """
        current, future = self.current, self.future
        active = current.segments.active
        if future.log_end_offset < current.log_end_offset and not active.size:
            future.skip_to(active.base_offset)  # compaction has removed all records before it
        if future.log_end_offset != current.log_end_offset:
            return False
        future.take_over(current)
        if current.recovery_point == current.log_end_offset:
            future.flush()  # records that were durable, such as with flush.messages=1, remain durable
        return True
