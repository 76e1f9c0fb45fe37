"""ArrowBatch: columns of records, and Arrow's C data interface to them."""
from libc.stdint cimport int64_t

from kafkapy._core.bytes.arrow_columns cimport ArrowColumn, RecordColumns

# Arrow's C data interface: the layout of both structs is its specification.
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
    cdef readonly tuple columns          # names, in the order in which they are given out
    cdef readonly str timestamp_unit
    cdef readonly bint is_full           # a fill ended because no more bytes are to be put in
    cdef bint is_frozen                  # given out: not filled any more
    cdef bint is_busy                    # being filled, without the interpreter lock
    cdef RecordColumns content

    # Must stand around each fill; RuntimeError if it cannot be filled (any more).
    cdef int begin_filling(self) except -1
    cdef void end_filling(self) noexcept
    cdef ArrowColumn **place_of(self, str name) except NULL
    cdef ArrowColumn *make_column(self, str name) except NULL
    cdef int freeze(self) except -1
