"""Time index: maps a timestamp to the offset at which a search for it starts.

The last entry of a rolled segment has the largest timestamp of the segment.
"""
from libc.stdint cimport uint8_t

from kafkapy._core.bytes.batch_layout cimport NO_TIMESTAMP
from kafkapy._core.bytes.index_file import CorruptIndexError
from kafkapy._core.bytes.index_file cimport INDEX_FULL, INDEX_NOT_ASCENDING, INDEX_OK, INDEX_UNCHANGED, IndexFile
from kafkapy._core.bytes.primitives cimport load_int32, load_int64, store_int32, store_int64

cdef enum:
    ENTRY_SIZE = 12
    TIMESTAMP_AT = 0
    OFFSET_AT = 8


cdef class TimeIndex(IndexFile):
    """The `.timeindex` file of one segment. Timestamps rise strictly, offsets do not fall. Threading: see IndexFile."""

    def __cinit__(self, *arguments, **keywords):
        self.entry_size = ENTRY_SIZE
        self.slack = 1

    def __init__(self, path, int64_t base_offset, int64_t max_size, bint writable=True):
        IndexFile.__init__(self, path, base_offset, max_size, writable)
        self.load_last()

    cdef int load_last(self) except -1:
        cdef const uint8_t *entry
        self.last_timestamp = NO_TIMESTAMP
        self.last_offset = self.base_offset
        if self.entries:
            entry = self.data + (self.entries - 1) * ENTRY_SIZE
            self.last_timestamp = load_int64(entry + TIMESTAMP_AT)
            self.last_offset += load_int32(entry + OFFSET_AT)
        return 0

    @property
    def last_entry(self):
        """(timestamp, offset) of the last entry; (-1, base_offset) if there is none."""
        return self.last_timestamp, self.last_offset

    cdef int append_entry(self, int64_t timestamp, int64_t offset, bint skip_full_check) noexcept nogil:
        cdef int status
        cdef uint8_t *entry
        if not skip_full_check and self.entries >= self.length // ENTRY_SIZE - self.slack:
            return INDEX_FULL
        if self.entries and (offset < self.last_offset or timestamp < self.last_timestamp):
            return INDEX_NOT_ASCENDING
        if timestamp <= self.last_timestamp:
            return INDEX_UNCHANGED
        entry = self.next_entry(offset, &status)
        if entry == NULL:
            return status
        store_int64(entry + TIMESTAMP_AT, timestamp)
        store_int32(entry + OFFSET_AT, <int32_t>(offset - self.base_offset))
        self.entries += 1
        self.last_timestamp = timestamp
        self.last_offset = offset
        return INDEX_OK

    def maybe_append(self, int64_t timestamp, int64_t offset, bint skip_full_check=False):
        """Adds an entry if the timestamp (ms) is above that of the last entry; returns whether it has added one.

        The last free entry is reserved for the time at which the segment is rolled, and is used only if
        `skip_full_check` is set. Raises ValueError if the index is full, or if offset or timestamp decrease, and
        OSError if the disk is full.
        """
        cdef int status = self.append_entry(timestamp, offset, skip_full_check)
        self.check_status(status, offset)
        return status == INDEX_OK

    def lookup(self, int64_t timestamp):
        """Returns (timestamp, offset) of the last entry at or below `timestamp`; (-1, base_offset) if there is none."""
        self.require_open()
        cdef Py_ssize_t slot = self.slot_of_int64(TIMESTAMP_AT, timestamp)
        return (NO_TIMESTAMP, self.base_offset) if slot < 0 else self.entry(slot)

    def entry(self, Py_ssize_t slot):
        """Returns (timestamp, offset) of the entry at index `slot`. Raises IndexError if there is none."""
        self.require_open()
        if slot < 0 or slot >= self.entries:
            raise IndexError(f"time index {self.path} has {self.entries} entries, not {slot + 1}")
        cdef const uint8_t *entry = self.data + slot * ENTRY_SIZE
        return load_int64(entry + TIMESTAMP_AT), self.base_offset + load_int32(entry + OFFSET_AT)

    def truncate_to(self, int64_t offset):
        """Removes the entries whose offset is at or above `offset`."""
        self.require_open()
        self._keep(self.slot_of_int32(OFFSET_AT, offset - self.base_offset - 1) + 1)

    def _keep(self, Py_ssize_t entries):
        IndexFile._keep(self, entries)
        self.load_last()

    def sanity_check(self):
        """Raises CorruptIndexError if the file is not a valid index.

        A valid index has whole entries; its last timestamp is not below the first, and its last offset is not below the
        base offset.
        """
        self.require_open()
        if self.entries and self.last_timestamp < load_int64(self.data + TIMESTAMP_AT):
            raise CorruptIndexError(
                f"time index {self.path}: the last timestamp {self.last_timestamp} is below the first")
        if self.entries and self.last_offset < self.base_offset:
            raise CorruptIndexError(
                f"time index {self.path}: last offset {self.last_offset} is below the base offset {self.base_offset}")
        if self.length % ENTRY_SIZE:
            raise CorruptIndexError(f"time index {self.path}: {self.length} bytes are not a multiple of {ENTRY_SIZE}")
