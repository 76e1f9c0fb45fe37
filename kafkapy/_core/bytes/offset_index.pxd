"""Offset index of a segment: sparse map from offset to file position.

    | relative offset int32 | position int32 |   8 bytes, both ascending
"""
from libc.stdint cimport int32_t, int64_t

from kafkapy._core.bytes.index_file cimport IndexFile


cdef class OffsetIndex(IndexFile):
    cdef readonly int64_t last_offset            # base_offset if there is no entry

    cdef int load_last(self) except -1
    # Returns INDEX_OK, another INDEX_ status, or -errno. Only the thread that owns the log may call it.
    cdef int append_entry(self, int64_t offset, int64_t position) noexcept nogil
    # Returns the position of the last entry at or below the offset, 0 if there is none.
    cdef int64_t position_of(self, int64_t offset) noexcept nogil
