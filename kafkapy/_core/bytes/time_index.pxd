"""Time index of a segment: a sparse map from the largest timestamp so far to the offset of its record.

    | timestamp int64 | relative offset int32 |   12 bytes, timestamps strictly, offsets weakly ascending
"""
from libc.stdint cimport int32_t, int64_t

from kafkapy._core.bytes.index_file cimport IndexFile


cdef class TimeIndex(IndexFile):
    cdef readonly int64_t last_timestamp         # -1 if there is no entry
    cdef readonly int64_t last_offset            # base_offset if there is no entry

    cdef int load_last(self) except -1
    # Returns INDEX_OK, INDEX_UNCHANGED, another INDEX_ status, or -errno. Only the thread that owns the log may call
    # it.
    cdef int append_entry(self, int64_t timestamp, int64_t offset, bint skip_full_check) noexcept nogil
