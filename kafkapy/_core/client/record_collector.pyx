"""The decompressed records of a consumer's batches, in memory that is reused for the next batch."""

from libc.stdint cimport uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

cdef enum:
    LARGEST_KEPT = 16 << 20              # bytes that are kept between batches


cdef class RecordCollector(RecordDecompressor):
    """The decompressed records of one batch, in memory that is reused for the next. Used by one thread at a time."""

    def __cinit__(self):
        self.limit = 1 << 30

    def __dealloc__(self):
        free(self.records)

    cdef bint collect(self, int codec, const uint8_t *data, Py_ssize_t size) noexcept nogil:
        self.size = 0
        if self.capacity > LARGEST_KEPT:
            free(self.records)
            self.records = NULL
            self.capacity = 0
        return self.pass_codec(codec, data, size)

    cdef bint feed(self, Py_ssize_t length, int cost) noexcept nogil:
        cdef Py_ssize_t wanted = self.size + length
        cdef uint8_t *grown
        if wanted > self.limit:
            return False
        if wanted > self.capacity:
            wanted = max(wanted, self.capacity * 2)
            grown = <uint8_t *> realloc(self.records, <size_t> wanted)
            if grown == NULL:
                return False
            self.records = grown
            self.capacity = wanted
        memcpy(self.records + self.size, self.output, <size_t> length)
        self.size += length
        return True
