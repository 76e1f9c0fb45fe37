"""Checks the records of a compressed batch without the interpreter lock: codec -> chunks -> record scanner.

The decompressor never refuses a batch. It declines damaged, unusual and large batches, and the Python path
(batch_validation, compression) then decides. The Python path would accept every batch that the decompressor accepts,
with the same result.
"""
from libc.stdint cimport int64_t, uint8_t

from kafkapy._core.bytes.codec_functions cimport ZlibStream
from kafkapy._core.bytes.record_scanner cimport RecordCheck, RecordStream

cdef class RecordDecompressor:
    cdef uint8_t *output                 # one chunk, or a whole block of snappy
    cdef Py_ssize_t output_size
    cdef void *lz4                       # contexts, created when they are first needed
    cdef void *zstd
    cdef ZlibStream *gzip
    cdef RecordStream stream
    cdef int64_t allowance               # remaining work of this wake-up: bytes decompressed, times COST of the codec

    # Starts a new wake-up, with its full amount of work.
    cdef void renew(self) noexcept nogil
    # Returns whether all records comply with `check`, and fills in the result. False leaves the batch to Python.
    cdef bint check_records(self, int codec, const uint8_t *data, Py_ssize_t size, RecordCheck *check) noexcept nogil
    # Passes the decompressed bytes to `feed`, chunk by chunk. Returns False if this or `feed` declined.
    cdef bint pass_codec(self, int codec, const uint8_t *data, Py_ssize_t size) noexcept nogil
    cdef bint reserve(self, Py_ssize_t size) noexcept nogil
    # Receives a chunk in `output`; False ends the work.
    cdef bint feed(self, Py_ssize_t length, int cost) noexcept nogil
    cdef bint open_gzip(self) noexcept nogil
    cdef bint check_gzip(self, const uint8_t *data, Py_ssize_t size) noexcept nogil
    cdef bint check_snappy(self, const uint8_t *data, Py_ssize_t size) noexcept nogil
    cdef bint check_snappy_block(self, const uint8_t *block, Py_ssize_t size) noexcept nogil
    cdef bint check_lz4(self, const uint8_t *data, Py_ssize_t size) noexcept nogil
    cdef bint pass_lz4_frame(self, const uint8_t *data, Py_ssize_t size) noexcept nogil
    cdef bint check_zstd(self, const uint8_t *data, Py_ssize_t size) noexcept nogil
