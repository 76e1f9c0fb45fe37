"""The offset index and time index of one segment of the metadata log, in memory until the segment is closed.

Other nodes of the quorum read the metadata log from an offset on, and Apache Kafka rebuilds the indexes at each start.
As in Kafka, a batch gets an entry if it begins more than 4096 bytes after the last entry.

    .index      8 bytes: int32 relative last offset of the batch, int32 its position
    .timeindex 12 bytes: int64 largest timestamp so far, int32 relative offset of the batch that has it
"""

from __future__ import annotations

import struct
from bisect import bisect_right

from kafkapy.storage.filesystem import Filesystem

INDEX_INTERVAL_BYTES = 4096
_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


class SegmentIndexes:
    """The index entries of one segment. Not thread-safe; `observe` is called for every batch once, in order."""

    __slots__ = (
        "_bytes_since_entry",
        "_last_time_entry",
        "_max_timestamp",
        "_offset_entries",
        "_offset_of_max",
        "_time_entries",
        "base_offset",
    )  # fmt: skip

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._offset_entries = bytearray()
        self._time_entries = bytearray()
        self._bytes_since_entry = 0
        self._max_timestamp = -1
        self._offset_of_max = -1
        self._last_time_entry = -1

    def observe(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        if max_timestamp > self._max_timestamp:
            self._max_timestamp, self._offset_of_max = max_timestamp, last_offset
        if self._bytes_since_entry > INDEX_INTERVAL_BYTES:
            self._offset_entries += _OFFSET_ENTRY.pack(last_offset - self.base_offset, position)
            self._append_time_entry()
            self._bytes_since_entry = 0
        self._bytes_since_entry += size

    def _append_time_entry(self) -> None:
        if self._max_timestamp > self._last_time_entry:
            self._time_entries += _TIME_ENTRY.pack(self._max_timestamp, self._offset_of_max - self.base_offset)
            self._last_time_entry = self._max_timestamp

    def position_before(self, offset: int) -> int:
        """Returns the position in the segment file of the last batch that has an index entry and ends at or before
        `offset`.

        Returns 0 if there is none.
        """
        return indexed_position(self._offset_entries, offset - self.base_offset)

    def write(self, filesystem: Filesystem, stem: str) -> None:
        """Writes `<stem>.index` and `<stem>.timeindex`. Raises OSError."""
        self._append_time_entry()
        filesystem.write_file(stem + ".index", bytes(self._offset_entries))
        filesystem.write_file(stem + ".timeindex", bytes(self._time_entries))


def indexed_position(entries: bytes | bytearray, relative_offset: int) -> int:
    """Finds the last entry of an offset index whose relative offset is at most `relative_offset`.

    Returns the position in the segment that the entry contains, 0 if there is no such entry. `entries` is the content
    of the index file.
    """
    count = len(entries) // _OFFSET_ENTRY.size
    number = bisect_right(range(count), relative_offset, key=lambda index: _entry(entries, index)[0])
    return _entry(entries, number - 1)[1] if number else 0


def _entry(entries: bytes | bytearray, index: int) -> tuple[int, int]:
    relative_offset, position = _OFFSET_ENTRY.unpack_from(entries, index * _OFFSET_ENTRY.size)
    return relative_offset, position
