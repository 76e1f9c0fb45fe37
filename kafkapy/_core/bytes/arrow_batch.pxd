"""ArrowBatch: columns of records that are exported through Arrow's C data interface."""
from libc.stdint cimport int64_t

from kafkapy._core.bytes.arrow_columns cimport ArrowColumn, RecordColumns

# The structs of Arrow's C data interface, with the layout of its specification.
cdef struct ArrowSchema:
    const char *format
    const char *name
    const char *metadata
    int64_t flags
    int64_t n_children
    ArrowSchema **children
    ArrowSchema *dictionary
    void (*release)(ArrowSchema *) noexcept nogil
    void *private_data

cdef struct ArrowArray:
    int64_t length
    int64_t null_count
    int64_t offset
    int64_t n_buffers
    int64_t n_children
    const void **buffers
    ArrowArray **children
    ArrowArray *dictionary
    void (*release)(ArrowArray *) noexcept nogil
    void *private_data


cdef class ArrowBatch:
    cdef readonly tuple columns          # names, in the order of the exported columns
    cdef readonly str timestamp_unit
    cdef readonly bint is_full           # True once a fill stopped because `max_bytes` was reached
    cdef readonly bytes needle           # added records contain it; empty for all records
    cdef bint is_frozen                  # True once exported; no more rows may be added
    cdef bint is_busy                    # True while a fill runs without the interpreter lock
    cdef RecordColumns content

    # Call these before and after each fill. `begin_fill` raises RuntimeError if the batch can no longer be filled.
    cdef int begin_filling(self) except -1
    cdef void end_filling(self) noexcept
    cdef ArrowColumn **place_of(self, str name) except NULL
    cdef ArrowColumn *make_column(self, str name) except NULL
    cdef int freeze(self) except -1
