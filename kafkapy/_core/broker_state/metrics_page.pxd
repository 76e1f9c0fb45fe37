# The text of a metrics page. Families with many lines are written without the interpreter lock.
from libc.stdint cimport int64_t

cdef class MetricsPage:
    cdef char *data
    cdef size_t used
    cdef size_t capacity
    cdef int exports                     # number of exported buffers: the page must not grow while there are any

    cdef int reserve(self, size_t more) noexcept nogil


cdef class PartitionRows:
    cdef list labels                     # bytes, one for each row
    cdef const char **texts              # the bytes of `labels`, read without the interpreter lock
    cdef size_t *lengths
    cdef size_t label_bytes              # bytes of the labels of all rows
    cdef int64_t *values                 # rows x columns
    cdef Py_ssize_t rows
    cdef int columns
