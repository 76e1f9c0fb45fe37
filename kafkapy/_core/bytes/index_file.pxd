"""The common part of offset and time index: a memory-mapped file of sorted, fixed-size entries.

    | entry 0 | entry 1 | ... | entry n-1 | zeros up to max_size while the segment is active |

Entries are read through a shared mapping. Before the first store into a page, that page is written once by `pwrite`,
so that a full disk is an error code and not a SIGBUS.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t


# The results of adding an entry, in addition to a negative errno.
cdef enum:
    INDEX_OK = 0
    INDEX_UNCHANGED = 1                  # time index: the timestamp is not above the last one
    INDEX_FULL = 2
    INDEX_NOT_ASCENDING = 3
    INDEX_OUT_OF_RANGE = 4               # the relative offset or the position does not fit int32
    INDEX_READ_ONLY = 5                  # or closed


cdef class IndexFile:
    cdef str located_at                  # the present path; the setter of `path` changes it
    cdef bytes encoded_path              # the path in the filesystem's encoding, and a pointer to its characters
    cdef const char *path_for_kernel
    cdef readonly int64_t base_offset    # entries hold offsets relative to it
    cdef readonly int64_t max_size       # bytes when preallocated
    cdef readonly bint writable
    cdef readonly Py_ssize_t entries
    cdef readonly int64_t length         # bytes of the file, mapped from `data`
    cdef int entry_size
    cdef int slack                       # entries reserved by is_full for the last entry of a rolled segment
    cdef uint8_t *data                   # NULL if length is 0
    cdef int64_t backed                  # bytes [entries * entry_size, backed) have disk blocks
    cdef bint closed

    cdef int map_file(self, int fd) except -1
    cdef void unmap(self) noexcept
    # Returns the place of the next entry, or NULL with `status` set. The caller stores the entry and counts it.
    cdef uint8_t *next_entry(self, int64_t offset, int *status) noexcept nogil
    # Writes zeros from `position` to the end of its page, so that the page has disk blocks. Returns 0 or -errno.
    cdef int back_page(self, int64_t position) noexcept nogil
    # Raises ValueError or OSError for a status, except for INDEX_OK and INDEX_UNCHANGED.
    cdef int check_status(self, int status, offset) except -1
    cdef int require_open(self) except -1
    # Returns whether `count` more entries fit, not counting the reserved ones.
    cdef bint has_room(self, Py_ssize_t count) noexcept nogil
    # Returns the last slot whose big-endian key is <= key, or -1. `key_at` is the byte of the key in an entry.
    cdef Py_ssize_t slot_of_int32(self, int key_at, int64_t key) noexcept nogil
    cdef Py_ssize_t slot_of_int64(self, int key_at, int64_t key) noexcept nogil
