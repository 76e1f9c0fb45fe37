"""Copies a log into its future replica: the log in another log directory that is to take its place (KIP-113).

The bytes of the batches are copied and their checksums verified on the way; indexes, producers and epochs of the future
log come about as it is appended to. Its segments begin where those of the current log do.
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
    """Owns the future log until it is the current one, and a descriptor of the segment that is being read.

    One thread, which is not the current log's owner: of that log it reads numbers, and files by descriptors of its own.
    Only `finish` is called on the owner's thread, while the other one waits for it.
    """

    def __init__(self, current: Log, future: Log) -> None:
        self.current = current
        self.future = future
        self._truncations = current.truncations
        self._fd = -1
        self._base_offset = -1
        self._position = 0

    def close(self) -> None:
        """Lets go of the segment that is read."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def copy_some(self) -> int:
        """Copies the next piece, about a megabyte; its size in bytes, 0 if there is nothing more at this moment.

        ApiError(CORRUPT_MESSAGE): the current log is damaged there. StorageError: the future log's directory failed.
        OSError: the current one's.
        """
        current = self.current
        if self._truncations != current.truncations or current.segments.first.base_offset > self.future.log_end_offset:
            self._start_over()
        try:
            return self._copy_next()
        except FileNotFoundError:
            # Retention took the segment that was about to be opened: the log starts behind it now.
            self._start_over()
            return self._copy_next()
        except ApiError:
            if self._truncations == current.truncations:
                raise
            self._start_over()
            return self._copy_next()

    def _start_over(self) -> None:
        """What was copied is not in the current log any more: from its beginning."""
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
        if not valid:
            raise ApiError(
                Error.CORRUPT_MESSAGE, f"no valid batch at position {position} of segment {self._base_offset}"
            )
        self.future.append_copy(memoryview(chunk)[:valid], batches)
        self._position = position + valid
        return valid

    def finish(self, most_bytes: int) -> bool:
        """Copies the rest and makes the future log the equal of the current one; False if it is more than `most_bytes`.

        The owner's thread: nothing is appended meanwhile. Errors as `copy_some`.
        """
        copied = 0
        while copied <= most_bytes:
            size = self.copy_some()
            if size == 0:
                return self._take_place()
            copied += size
        return False

    def _take_place(self) -> bool:
        current, future = self.current, self.future
        active = current.segments.active
        if future.log_end_offset < current.log_end_offset and not active.size:
            future.skip_to(active.base_offset)  # the offsets before it have no records: they were compacted away
        if future.log_end_offset != current.log_end_offset:
            return False
        future.take_over(current)
        if current.recovery_point == current.log_end_offset:
            future.flush()  # what was durable stays durable: a topic whose every record is synced
        return True
