# The text of a metrics page: families of which each has many lines are written without the interpreter lock.
from libc.stdint cimport int64_t

cdef class MetricsPage:
    cdef char *data
    cdef size_t used
    cdef size_t capacity
    cdef int exports                     # buffers taken of it: it must not grow meanwhile

    cdef int reserve(self, size_t more) noexcept nogil


cdef class PartitionRows:
    cdef list labels                     # bytes, one for each row
    cdef const char **texts              # the same, for those who have no interpreter lock
    cdef size_t *lengths
    cdef size_t label_bytes              # of all rows
    cdef int64_t *values                 # rows x columns
    cdef Py_ssize_t rows
    cdef int columns
