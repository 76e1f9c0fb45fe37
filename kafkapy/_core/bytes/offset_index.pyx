"""Offset index: maps an offset to the position in the segment file at which a search for it starts."""
from libc.stdint cimport INT32_MAX, uint8_t

from kafkapy._core.bytes.index_file import CorruptIndexError
from kafkapy._core.bytes.index_file cimport INDEX_NOT_ASCENDING, INDEX_OK, INDEX_OUT_OF_RANGE, IndexFile
from kafkapy._core.bytes.primitives cimport load_int32, store_int32

cdef enum:
    ENTRY_SIZE = 8
    OFFSET_AT = 0
    POSITION_AT = 4


cdef class OffsetIndex(IndexFile):
    """The `.index` file of one segment. Invariant: relative offsets strictly ascending. Threading: see IndexFile."""

    def __cinit__(self, *arguments, **keywords):
        self.entry_size = ENTRY_SIZE
        self.slack = 0

    def __init__(self, path, int64_t base_offset, int64_t max_size, bint writable=True):
        IndexFile.__init__(self, path, base_offset, max_size, writable)
        self.load_last()

    cdef int load_last(self) except -1:
        self.last_offset = self.base_offset
        if self.entries:
            self.last_offset += load_int32(self.data + (self.entries - 1) * ENTRY_SIZE + OFFSET_AT)
        return 0

    cdef int64_t position_of(self, int64_t offset) noexcept nogil:
        cdef Py_ssize_t slot = self.slot_of_int32(OFFSET_AT, offset - self.base_offset)
        return 0 if slot < 0 else load_int32(self.data + slot * ENTRY_SIZE + POSITION_AT)

    cdef int append_entry(self, int64_t offset, int64_t position) noexcept nogil:
        cdef int status
        cdef uint8_t *entry
        if position < 0 or position > INT32_MAX:
            return INDEX_OUT_OF_RANGE
        if self.entries and offset <= self.last_offset:
            return INDEX_NOT_ASCENDING
        entry = self.next_entry(offset, &status)
        if entry == NULL:
            return status
        store_int32(entry + OFFSET_AT, <int32_t>(offset - self.base_offset))
        store_int32(entry + POSITION_AT, <int32_t>position)
        self.entries += 1
        self.last_offset = offset
        return INDEX_OK

    def append(self, int64_t offset, int64_t position):
        """Adds an entry.

        Raises ValueError if the index is full, the offset does not ascend or a number does not fit int32, and OSError
        if the disk is full.
        """
        self.check_status(self.append_entry(offset, position), offset)

    def lookup(self, int64_t offset):
        """Returns (offset, position) of the last entry at or below the offset; (base_offset, 0) if there is none."""
        self.require_open()
        cdef Py_ssize_t slot = self.slot_of_int32(OFFSET_AT, offset - self.base_offset)
        return (self.base_offset, 0) if slot < 0 else self.entry(slot)

    def entry(self, Py_ssize_t slot):
        """Returns (offset, position) of the entry at index `slot`. Raises IndexError if there is none."""
        self.require_open()
        if slot < 0 or slot >= self.entries:
            raise IndexError(f"index {self.path} has {self.entries} entries, not {slot + 1}")
        cdef const uint8_t *entry = self.data + slot * ENTRY_SIZE
        return self.base_offset + load_int32(entry + OFFSET_AT), load_int32(entry + POSITION_AT)

    def truncate_to(self, int64_t offset):
        """Removes the entries at or above the offset."""
        self.require_open()
        self._keep(self.slot_of_int32(OFFSET_AT, offset - self.base_offset - 1) + 1)

    def _keep(self, Py_ssize_t entries):
        IndexFile._keep(self, entries)
        self.load_last()

    def sanity_check(self):
        """Raises CorruptIndexError if the file is not a valid index.

        A valid index consists of whole entries. Its last offset is not below the base offset and, if there are several
        entries, above the first offset. After an unclean stop zeros may follow the entries; the comparison of the last
        offset with the first detects them.
        """
        self.require_open()
        if self.entries > 1 and self.last_offset <= self.entry(0)[0]:
            raise CorruptIndexError(f"index {self.path}: last offset {self.last_offset} is not above the first")
        if self.entries and self.last_offset < self.base_offset:
            raise CorruptIndexError(
                f"index {self.path}: last offset {self.last_offset} is below the base offset {self.base_offset}")
        if self.length % ENTRY_SIZE:
            raise CorruptIndexError(f"index {self.path}: {self.length} bytes are not a multiple of {ENTRY_SIZE}")
