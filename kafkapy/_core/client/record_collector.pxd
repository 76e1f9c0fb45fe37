"""Decompresses the records of a batch into one piece of memory, without the interpreter lock.

Like its base class, the collector never refuses a batch. It declines damaged, unusual and large batches, and the Python
path (compression) then decides.
"""
from libc.stdint cimport uint8_t

from kafkapy._core.bytes.record_decompressor cimport RecordDecompressor

cdef class RecordCollector(RecordDecompressor):
    cdef uint8_t *records                # the result of the last `collect`, valid until the next one
    cdef Py_ssize_t size, capacity
    cdef Py_ssize_t limit                # of `size`

    cdef bint collect(self, int codec, const uint8_t *data, Py_ssize_t size) noexcept nogil
