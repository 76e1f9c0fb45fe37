"""One segment of a log: `<base offset>.log` with its offset, time and transaction index.

An append adds index entries when more than `index.interval.bytes` have been written since the last entries. The entry
of the offset index has the last offset and the position of the new batch. The entry of the time index has the greatest
timestamp so far, and the last offset of the batch with this timestamp. A reader opens each file when it first needs it;
an append opens the log and both indexes.
"""

import logging
import os
import random
from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING, TypeVar

from kafkapy._core.broker_state.log_state import SegmentState
from kafkapy._core.bytes.index_file import CorruptIndexError
from kafkapy._core.bytes.offset_index import OffsetIndex
from kafkapy._core.bytes.record_batch import BatchSummary
from kafkapy._core.bytes.segment_file import SegmentFile
from kafkapy._core.bytes.segment_scan import find_batch, find_batch_by_timestamp, first_batch_timestamp, scan_to_end
from kafkapy._core.bytes.time_index import TimeIndex
from kafkapy.errors import ApiError, Error
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log_config import LogConfig
from kafkapy.storage.rebuilt_indexes import LARGEST_RELATIVE_OFFSET, RebuiltIndexes
from kafkapy.storage.segment_reader import SMALLEST_BATCH
from kafkapy.storage.transaction_index import TransactionIndex
from kafkapy.types import NO_TIMESTAMP

if TYPE_CHECKING:
    from typing import Self

    from typing_extensions import Buffer

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TRANSACTION_INDEX_SUFFIX = ".txnindex"
DELETED_SUFFIX = ".deleted"
SEGMENT_SUFFIXES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)

logger = logging.getLogger("kafka.log.LogSegment")

AnyIndex = TypeVar("AnyIndex", OffsetIndex, TimeIndex)

NOT_LOADED = -2
# An entry of an offset index: the offset relative to the segment's base offset, and the position.
OFFSET_ENTRY = Struct(">II")


class LogSegment(SegmentState):
    """A segment; owns its four files.

    Invariants: every offset is in [base_offset, base_offset + 2^31); `size` is the length of the valid batches; index
    entries point to the beginning of batches. Only the thread that owns the log changes a segment; any thread may read
    and sync `file`.
    """

    __slots__ = (
        "_config",
        "_filesystem",
        "directory",
        "is_deleted",
    )

    def __init__(
        self,
        directory: str,
        base_offset: int,
        config: LogConfig,
        filesystem: Filesystem,
        *,
        size: int = 0,
        created_ms: int = 0,
    ) -> None:
        """Creates the object for an existing .log file of `size` bytes; opens no file."""
        self.directory = directory
        self.base_offset = base_offset
        self.size = size
        self.is_open_for_append = False
        self.is_deleted = False  # True if the files have no longer their names
        self.bytes_since_last_index_entry = 0
        self.created_ms = created_ms
        self.roll_jitter_ms = random.randrange(config.segment_jitter_ms + 1) if config.segment_jitter_ms > 0 else 0
        self._config = config
        self._filesystem = filesystem
        self._file = None
        self._offset_index = None
        self._time_index = None
        self._max_timestamp = NOT_LOADED
        self._offset_of_max_timestamp = -1
        self._first_timestamp = NOT_LOADED

    @classmethod
    def create(
        cls, directory: str, base_offset: int, config: LogConfig, filesystem: Filesystem, created_ms: int
    ) -> "Self":
        """Creates the files, all empty; their names are durable once the directory is synced. Raises OSError."""
        segment = cls(directory, base_offset, config, filesystem, created_ms=created_ms)
        preallocate = config.segment_bytes if config.preallocate else 0
        segment._file = filesystem.open_segment(segment.path(LOG_SUFFIX), create=True, preallocate=preallocate)
        for suffix in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            filesystem.write_file(segment.path(suffix), b"", sync=False)
        return segment

    def path(self, suffix: str) -> str:
        """Returns the path of the file with this suffix, such as ".log"."""
        return f"{self.directory}/{self.base_offset:020d}{suffix}"

    # -- what is opened when needed ------------------------------------------------------------------------------

    @property
    def file(self) -> SegmentFile:
        file = self._file
        if file is None:
            file = self._file = self._filesystem.open_segment(self.path(LOG_SUFFIX))
        return file

    @property
    def offset_index(self) -> OffsetIndex:
        index = self._offset_index
        if index is None:
            index = self._offset_index = self._checked_index(self._open_offset_index(writable=False))
        return index

    @property
    def time_index(self) -> TimeIndex:
        index = self._time_index
        if index is None:
            index = self._time_index = self._checked_index(self._open_time_index(writable=False))
        return index

    def _checked_index(self, index: AnyIndex) -> AnyIndex:
        """Returns the index, which is emptied if it is damaged, so that reads begin at the start of the segment. Raises
        OSError.

        This check finds damage after a clean stop, when recovery does not rebuild the indexes.
        """
        try:
            index.sanity_check()
            if not isinstance(index, OffsetIndex) or not index.entries or index.entry(index.entries - 1)[1] < self.size:
                return index
            reason = f"its last entry points behind the {self.size} bytes of the segment"
        except CorruptIndexError as error:
            reason = str(error)
        logger.warning("Emptying the damaged index %s: %s", index.path, reason)
        index.close()
        self._filesystem.write_file(index.path, b"", sync=False)
        return type(index)(index.path, self.base_offset, self._config.segment_index_bytes, False)

    @property
    def transaction_index(self) -> TransactionIndex:
        return TransactionIndex(self.path(TRANSACTION_INDEX_SUFFIX), self._filesystem)

    def _open_offset_index(self, *, writable: bool) -> OffsetIndex:
        path = self.path(OFFSET_INDEX_SUFFIX)
        return OffsetIndex(path, self.base_offset, self._config.segment_index_bytes, writable)

    def _open_time_index(self, *, writable: bool) -> TimeIndex:
        path = self.path(TIME_INDEX_SUFFIX)
        return TimeIndex(path, self.base_offset, self._config.segment_index_bytes, writable)

    def open_for_append(self) -> None:
        """Opens the log and the indexes for writing; the index files get their greatest size. Raises OSError."""
        if self.is_open_for_append:
            return
        self.file  # noqa: B018 - opens the file
        if self.size:
            self.offset_index, self.time_index  # noqa: B018 - empties damaged indexes
        self._close_indexes(trim=False)
        self._offset_index = self._open_offset_index(writable=True)
        self._time_index = self._open_time_index(writable=True)
        self._offset_index.resize(max(self._config.segment_index_bytes, self._offset_index.size_in_bytes))
        self._time_index.resize(max(self._config.segment_index_bytes, self._time_index.size_in_bytes))
        self._load_max_timestamp()
        self.is_open_for_append = True

    # -- append --------------------------------------------------------------------------------------------------

    def should_roll(self, size: int, max_timestamp: int, last_offset: int, wall_ms: int) -> bool:
        """Returns whether batches that are about to be appended need a new segment.

        `size` is their length in bytes, `max_timestamp` (ms) and `last_offset` are the greatest in the batches,
        `wall_ms` is the present time. The segment must be open for append. Raises OSError.
        """
        config = self._config
        if self.size > config.segment_bytes - size:
            return True
        if last_offset - self.base_offset > LARGEST_RELATIVE_OFFSET:
            return True
        if not self.size:
            return False
        first = self._first_timestamp
        if first == NOT_LOADED:
            first = self._first_timestamp = first_batch_timestamp(self.file.fd, self.size)
        age_ms = max_timestamp - first if first >= 0 and max_timestamp >= 0 else wall_ms - self.created_ms
        return age_ms > config.segment_ms - self.roll_jitter_ms or self.has_full_index

    @property
    def has_full_index(self) -> bool:
        return self.offset_index.is_full or self.time_index.is_full

    def append(self, records: "Buffer", batches: Sequence[BatchSummary]) -> int:
        """Appends whole batches with one write, indexes them, and returns the position of the first.

        `records` are the bytes, in which the offsets are set, and `batches` the headers of the batches in them. Raises
        OSError; none of the batches is visible in that case.
        """
        assert self.base_offset <= batches[0].base_offset, (self, batches[0].base_offset)
        assert batches[-1].last_offset - self.base_offset <= LARGEST_RELATIVE_OFFSET, (self, batches[-1].last_offset)
        first_position = position = self.file.append((records,))
        assert first_position == self.size, (self, first_position)
        try:
            for batch in batches:
                size = batch.size
                self.index_batch(position, size, batch.last_offset, batch.max_timestamp)
                position += size
        except OSError:
            self.file.truncate(first_position)
            raise
        self.size = position
        return first_position

    def index_batch(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Updates the greatest timestamp with a batch at `position`, and adds index entries if enough bytes were
        written since the last index entries.

        Raises OSError.
        """
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._offset_of_max_timestamp = last_offset
        if self.bytes_since_last_index_entry > self._config.index_interval_bytes and not self.has_full_index:
            self.offset_index.append(last_offset, position)
            if self._max_timestamp >= 0:
                self.time_index.maybe_append(self._max_timestamp, self._offset_of_max_timestamp)
            self.bytes_since_last_index_entry = 0
        self.bytes_since_last_index_entry += size

    # -- read ----------------------------------------------------------------------------------------------------

    def find(self, offset: int) -> tuple[int, int, int, int] | None:
        """Returns position, size, base offset and last offset of the batch that holds `offset` or, if there is none, of
        the next batch.

        Returns None if the segment ends before `offset`. Raises OSError, and ApiError CORRUPT_MESSAGE for bytes that
        are no batch.
        """
        position = self.offset_index.lookup(offset)[1]
        try:
            return find_batch(self.file.fd, position, self.size, offset)
        except ValueError as error:
            raise ApiError(Error.CORRUPT_MESSAGE, f"{self.path(LOG_SUFFIX)}: {error}") from error

    def find_timestamp(self, timestamp: int, starting_offset: int) -> tuple[int, int, int, int] | None:
        """Finds the first batch at or after `starting_offset` with a record of `timestamp` (ms) or later.

        Returns the batch's position, size, base offset and last offset, or None if the segment has no such batch.
        Raises OSError, and ApiError CORRUPT_MESSAGE for bytes that are no batch.
        """
        from_offset = max(self.time_index.lookup(timestamp)[1], starting_offset)
        position = self.offset_index.lookup(from_offset)[1]
        try:
            return find_batch_by_timestamp(self.file.fd, position, self.size, timestamp, starting_offset)
        except ValueError as error:
            raise ApiError(Error.CORRUPT_MESSAGE, f"{self.path(LOG_SUFFIX)}: {error}") from error

    def next_offset(self) -> int:
        """Returns the offset after the last batch, found by reading the headers after the last index entry. Raises
        OSError."""
        return max(self.base_offset, self._scan_tail()[1])

    def next_offset_if_whole(self) -> int | None:
        """Returns `next_offset`, or None if the file does not end with a complete batch. Raises OSError."""
        if not self.size:
            return self.base_offset
        end, next_offset, _, _, _ = self._scan_tail()
        return max(self.base_offset, next_offset) if end == self.size else None

    def _scan_tail(self) -> tuple[int, int, int, int, int]:
        """Reads the headers of the batches after the last index entry, without leaving the file open. Raises OSError.

        Returns (end of the last batch, next offset, greatest timestamp, last offset of the batch with this timestamp,
        bytes of the last batch).
        """
        position = self._last_indexed_position()
        if self._file is not None:
            return scan_to_end(self._file.fd, position, self.size)
        fd = os.open(self.path(LOG_SUFFIX), os.O_RDONLY | os.O_CLOEXEC)
        try:
            return scan_to_end(fd, position, self.size)
        finally:
            os.close(fd)

    def _last_indexed_position(self) -> int:
        positions = self._last_indexed_positions(1)
        return positions[-1] if positions else 0

    def _last_indexed_positions(self, count: int) -> list[int]:
        """Returns the positions in the last `count` entries of the offset index, ascending; fewer if the index has
        fewer entries.

        If the index is not open, only its last entries are read from the file, and the index is not checked. In this
        case the result is [] if the last position is not below the segment's size. Raises OSError.
        """
        index = self._offset_index
        if index is not None:
            return [index.entry(slot)[1] for slot in range(max(0, index.entries - count), index.entries)]
        if self.size <= self._config.index_interval_bytes:
            return []  # the segment is too short for an index entry
        tail = read_tail(self.path(OFFSET_INDEX_SUFFIX), OFFSET_ENTRY.size, count)
        positions = [position for _, position in OFFSET_ENTRY.iter_unpack(tail)]
        return positions if positions and positions[-1] < self.size else []

    def read_end(self, length: int) -> tuple[bytes, int]:
        """Returns at most the last `length` bytes, from the beginning of a batch on, and their position.

        A segment that is not longer than `length` is returned whole. In a longer segment, the offset index determines
        the first batch that begins in the last `length` bytes; if the index has no such batch, no bytes are returned.
        Leaves the files of index and log open or closed, as they were. Raises OSError.
        """
        position = 0
        if self.size > length:
            count = length // max(self._config.index_interval_bytes, SMALLEST_BATCH) + 2
            indexed = self._last_indexed_positions(count)
            position = next((each for each in indexed if self.size - length <= each < self.size), self.size)
        if position == self.size:
            return b"", position
        if self._file is not None:
            return self._file.pread(position, self.size - position), position
        with open(self.path(LOG_SUFFIX), "rb", buffering=0) as file:
            return os.pread(file.fileno(), self.size - position, position), position

    # -- timestamps ----------------------------------------------------------------------------------------------

    @property
    def max_timestamp(self) -> int:
        """The greatest timestamp (ms) of a record, or -1 if no record has one. Raises OSError."""
        if self._max_timestamp == NOT_LOADED:
            self._load_max_timestamp()
        return self._max_timestamp

    @property
    def offset_of_max_timestamp(self) -> int:
        """The last offset of the first batch with the greatest timestamp, or -1 without timestamps. Raises OSError."""
        if self._max_timestamp == NOT_LOADED:
            self._load_max_timestamp()
        return self._offset_of_max_timestamp

    def largest_timestamp(self) -> int:
        """Returns the greatest timestamp, or the file's modification time if no record has one (ms). Raises OSError."""
        if self.max_timestamp >= 0:
            return self._max_timestamp
        return os.stat(self.path(LOG_SUFFIX)).st_mtime_ns // 1_000_000

    def _load_max_timestamp(self) -> None:
        if self._max_timestamp != NOT_LOADED:
            return
        tail = read_tail(self.path(TIME_INDEX_SUFFIX), 12) if self._time_index is None else b""
        if self._time_index is not None and self._time_index.entries:
            self._max_timestamp, self._offset_of_max_timestamp = self._time_index.last_entry
        elif tail:
            self._max_timestamp = int.from_bytes(tail[:8], "big", signed=True)
            self._offset_of_max_timestamp = self.base_offset + int.from_bytes(tail[8:], "big")
        else:
            self._max_timestamp = NO_TIMESTAMP

    # -- truncate, roll, flush, close, delete --------------------------------------------------------------------

    def truncate_to(self, offset: int, wall_ms: int) -> None:
        """Removes the batch that contains `offset` and all later ones. Raises OSError.

        `wall_ms` is the present time, which becomes the time of creation if no batch remains.
        """
        self.open_for_append()
        found = self.find(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.transaction_index.truncate_to(offset)
        if found is not None:
            self.file.truncate(found[0])
            self.size = found[0]
        if not self.size:
            self.created_ms = wall_ms
            self._first_timestamp = NOT_LOADED
        self.reload_max_timestamp()

    def reload_max_timestamp(self) -> None:
        """Computes the greatest timestamp again, from the time index and the batches after its last entry. Raises
        OSError."""
        self._max_timestamp, self._offset_of_max_timestamp = NO_TIMESTAMP, -1
        if self.time_index.entries:
            self._max_timestamp, self._offset_of_max_timestamp = self.time_index.last_entry
        position = self._last_indexed_position()
        _, _, timestamp, offset, _ = scan_to_end(self.file.fd, position, self.size)
        if timestamp > self._max_timestamp:
            self._max_timestamp, self._offset_of_max_timestamp = timestamp, offset
        self.bytes_since_last_index_entry = 0

    def replace_indexes(self, rebuilt: RebuiltIndexes) -> None:
        """Writes `rebuilt` as the indexes of the segment; they are not durable yet. Raises OSError."""
        self._close_indexes(trim=False)
        self.is_open_for_append = False
        self._filesystem.write_file(self.path(OFFSET_INDEX_SUFFIX), bytes(rebuilt.offsets), sync=False)
        self._filesystem.write_file(self.path(TIME_INDEX_SUFFIX), bytes(rebuilt.times), sync=False)
        self._max_timestamp = rebuilt.max_timestamp
        self._offset_of_max_timestamp = rebuilt.offset_of_max_timestamp
        self._first_timestamp = NOT_LOADED
        self.bytes_since_last_index_entry = rebuilt.bytes_since_last_entry

    def become_inactive(self) -> None:
        """Adds the last time index entry and truncates the preallocated files to their contents, because the segment
        gets no more appends.

        Raises OSError.
        """
        if not self.is_open_for_append:
            return
        if self._max_timestamp >= 0:
            self.time_index.maybe_append(self._max_timestamp, self._offset_of_max_timestamp, True)
        self.offset_index.trim_to_valid_size()
        self.time_index.trim_to_valid_size()
        self.file.trim()
        self.is_open_for_append = False

    def flush(self, *, with_indexes: bool) -> None:
        """Makes the batches durable, and also the indexes if `with_indexes` is True. Any thread may call it. Raises
        OSError."""
        file = self._file
        if file is None:  # only the owner sets `_file`: a file that another thread opens has an outdated size soon
            self._filesystem.sync_path(self.path(LOG_SUFFIX))
        else:
            pin = file.slice(0, 0)  # keeps the descriptor open if the owner closes the segment
            self._filesystem.sync_file(pin.fd)
        if with_indexes:
            self._filesystem.sync_path(self.path(OFFSET_INDEX_SUFFIX))
            self._filesystem.sync_path(self.path(TIME_INDEX_SUFFIX))
            self.transaction_index.flush()

    def _close_indexes(self, *, trim: bool) -> None:
        for index in (self._offset_index, self._time_index):
            if index is not None:
                index.close(trim)
        self._offset_index = self._time_index = None

    def close(self, *, trim: bool = True) -> None:
        """Closes all files. The FileRanges that reads have returned remain valid. Raises OSError.

        If `trim` is True, first truncates preallocated files to their contents. This writes to the disk, so `trim` must
        be False after the log directory has failed.
        """
        if trim:
            self.become_inactive()
        self._close_indexes(trim=trim)
        self.is_open_for_append = False
        if self._file is not None:
            self._file.close()
            self._file = None

    def update_config(self, config: LogConfig) -> None:
        """Sets the configuration, which is used from the next append on."""
        self._config = config

    def mark_deleted(self) -> list[str]:
        """Closes the files and renames them to `.deleted`; returns their new paths, to be unlinked later.

        Raises OSError.
        """
        self.is_deleted = True
        self.close(trim=False)
        renamed = []
        for suffix in SEGMENT_SUFFIXES:
            path = self.path(suffix)
            if os.path.exists(path):
                self._filesystem.rename(path, path + DELETED_SUFFIX)
                renamed.append(path + DELETED_SUFFIX)
        return renamed

    def moved_to(self, directory: str) -> None:
        """Sets the new path after the partition directory was renamed; open descriptors remain valid."""
        self.directory = directory
        if self._file is not None:
            self._file.path = self.path(LOG_SUFFIX)
        if self._offset_index is not None:
            self._offset_index.path = self.path(OFFSET_INDEX_SUFFIX)
        if self._time_index is not None:
            self._time_index.path = self.path(TIME_INDEX_SUFFIX)

    def __repr__(self) -> str:
        return f"LogSegment({self.directory!r}, base_offset={self.base_offset}, size={self.size})"


def read_tail(path: str, length: int, count: int = 1) -> bytes:
    """Returns the bytes of the last `count` whole entries of an index file, or of all entries if the file has fewer.

    An entry has `length` bytes. A file that does not exist has no entries. Raises OSError.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            end = os.fstat(file.fileno()).st_size // length * length
            size = min(length * count, end)
            return os.pread(file.fileno(), size, end - size)
    except FileNotFoundError:
        return b""
