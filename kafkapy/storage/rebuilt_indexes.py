"""The offset and time index of a segment that recovery reads, built in memory and written once.

Opening an index for writing creates a file of the greatest size, and closing it truncates the file. For two indexes
these are four changes of the file system, which recovery avoids for each of thousands of segments.
"""

import struct

from kafkapy.storage.log_config import LogConfig

OFFSET_ENTRY = struct.Struct(">ii")
TIME_ENTRY = struct.Struct(">qi")
LARGEST_RELATIVE_OFFSET = 2**31 - 1


class RebuiltIndexes:
    """The offset and time index of a segment, as appends of its batches would have written them. Used by one thread."""

    __slots__ = (
        "_base_offset",
        "_interval_bytes",
        "_last_timestamp",
        "_most_offsets",
        "_most_times",
        "bytes_since_last_entry",
        "max_timestamp",
        "offset_of_max_timestamp",
        "offsets",
        "times",
    )

    def __init__(self, base_offset: int, config: LogConfig) -> None:
        self.offsets = bytearray()
        self.times = bytearray()
        self.max_timestamp = -1
        self.offset_of_max_timestamp = -1
        self.bytes_since_last_entry = 0
        self._base_offset = base_offset
        self._interval_bytes = config.index_interval_bytes
        self._last_timestamp = -1
        self._most_offsets = config.segment_index_bytes // OFFSET_ENTRY.size * OFFSET_ENTRY.size
        # The last entry is reserved for the end of the segment.
        self._most_times = (config.segment_index_bytes // TIME_ENTRY.size - 1) * TIME_ENTRY.size

    def add(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Accounts for the segment's next batch, which is at `position` and has `size` bytes.

        Adds index entries for the batch if enough bytes have been accounted for since the last entries.
        """
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.offset_of_max_timestamp = last_offset
        if self.bytes_since_last_entry > self._interval_bytes and self._has_room(last_offset):
            self.offsets += OFFSET_ENTRY.pack(last_offset - self._base_offset, position)
            self._add_time()
            self.bytes_since_last_entry = 0
        self.bytes_since_last_entry += size

    def finish(self) -> None:
        """Adds the last entry of the time index. The entry has the greatest timestamp of the segment."""
        self._add_time()

    def _has_room(self, last_offset: int) -> bool:
        return (
            len(self.offsets) < self._most_offsets
            and len(self.times) < self._most_times
            and last_offset - self._base_offset <= LARGEST_RELATIVE_OFFSET
        )

    def _add_time(self) -> None:
        if self.max_timestamp > self._last_timestamp:
            self.times += TIME_ENTRY.pack(self.max_timestamp, self.offset_of_max_timestamp - self._base_offset)
            self._last_timestamp = self.max_timestamp
