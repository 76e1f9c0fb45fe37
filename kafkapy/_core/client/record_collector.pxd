"""Decompresses the records of a batch into one piece of memory, without the interpreter lock.

As its base it never refuses: what is damaged, unusual or too large is declined, and the Python way (compression) says
what is wrong with it, if anything.
"""
from libc.stdint cimport uint8_t

from kafkapy._core.bytes.record_decompressor cimport RecordDecompressor

cdef class RecordCollector(RecordDecompressor):
    cdef uint8_t *records                # what the last `collect` made, until the next one
    cdef Py_ssize_t size, capacity
    cdef Py_ssize_t limit                # of `size`

    cdef bint collect(self, int codec, const uint8_t *data, Py_ssize_t size) noexcept nogil
