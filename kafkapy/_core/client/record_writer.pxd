"""Writes records into the batches of a producer. Leaf functions that *borrow* the bytes of keys, values and headers."""
from libc.stdint cimport int64_t, uint8_t

from kafkapy._core.bytes.record_batch_builder cimport RecordBatchBuilder


# The bytes of one record. A size of -1 is null; `headers_size` 0 means that the record has no headers.
cdef struct RecordContent:
    const uint8_t *key
    Py_ssize_t key_size
    const uint8_t *value
    Py_ssize_t value_size
    const uint8_t *headers               # their number, and their names and values, encoded as in a record
    Py_ssize_t headers_size


cdef class HeaderWriter:
    """Encodes the headers of one record after another in memory that is reused."""
    cdef uint8_t *memory
    cdef Py_ssize_t size, capacity

    cdef int begin(self, int64_t count) except -1
    cdef int put(self, const uint8_t *data, Py_ssize_t size) except -1
    cdef int put_all(self, object headers) except -1


# Returns the size of the key, the value and the headers in a record, with their lengths.
cdef Py_ssize_t size_of_content(const RecordContent *content) noexcept nogil
# Adds a record to the batch; `rest` is the result of `size_of_content`.
cdef int write_record(RecordBatchBuilder batch, int64_t timestamp, const RecordContent *content,
                      Py_ssize_t rest) except -1
# Adds the encoded record `source.records[pos:end]` to `part`, one of the two batches into which `source` is split.
cdef int copy_record(RecordBatchBuilder source, RecordBatchBuilder part, Py_ssize_t pos, Py_ssize_t end) except -1
