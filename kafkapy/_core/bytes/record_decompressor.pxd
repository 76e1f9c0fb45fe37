"""Checks the records of a compressed batch without the interpreter lock: codec -> chunks -> record scanner.

It never refuses: what is damaged, unusual or large is declined, and the Python way (batch_validation, compression) says
what is wrong with it, if anything. What it finds in order, the Python way finds in order, with the same result.
"""
from libc.stdint cimport int64_t, uint8_t

from kafkapy._core.bytes.codec_functions cimport ZlibStream
from kafkapy._core.bytes.record_scanner cimport RecordCheck, RecordStream

cdef class RecordDecompressor:
    cdef uint8_t *output                 # one chunk, or a whole block of snappy
    cdef Py_ssize_t output_size
    cdef void *lz4                       # contexts, made when they are first needed
    cdef void *zstd
    cdef ZlibStream *gzip
    cdef RecordStream stream
    cdef int64_t allowance               # how much work may still be done: bytes decompressed, times COST of the codec

    # A new wake-up begins.
    cdef void renew(self) noexcept nogil
    # Whether all records are as `check` wants them; its result is then filled in. False: for Python.
    cdef bint check_records(self, int codec, const uint8_t *data, Py_ssize_t size, RecordCheck *check) noexcept nogil
    # The decompressed bytes go to `feed`, chunk by chunk. False: declined, or `feed` did.
    cdef bint pass_codec(self, int codec, const uint8_t *data, Py_ssize_t size) noexcept nogil
    cdef bint reserve(self, Py_ssize_t size) noexcept nogil
    # A chunk lies in `output`; False ends the work.
    cdef bint feed(self, Py_ssize_t length, int cost) noexcept nogil
    cdef bint open_gzip(self) noexcept nogil
    cdef bint check_gzip(self, const uint8_t *data, Py_ssize_t size) noexcept nogil
    cdef bint check_snappy(self, const uint8_t *data, Py_ssize_t size) noexcept nogil
    cdef bint check_snappy_block(self, const uint8_t *block, Py_ssize_t size) noexcept nogil
    cdef bint check_lz4(self, const uint8_t *data, Py_ssize_t size) noexcept nogil
    cdef bint pass_lz4_frame(self, const uint8_t *data, Py_ssize_t size) noexcept nogil
    cdef bint check_zstd(self, const uint8_t *data, Py_ssize_t size) noexcept nogil
