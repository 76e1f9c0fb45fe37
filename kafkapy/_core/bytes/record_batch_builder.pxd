"""RecordBatchBuilder: encodes appended records and builds a batch of magic 2. Owns its buffer; not thread-safe."""
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t


cdef class RecordBatchBuilder:
    cdef uint8_t *memory                 # space for the batch's header, then the records
    cdef uint8_t *records
    cdef Py_ssize_t length, capacity
    cdef readonly int64_t base_offset, base_timestamp, max_timestamp
    cdef readonly int32_t record_count
    cdef readonly Py_ssize_t largest_record      # bytes, with the record's length; set by the client's writer only
    cdef int32_t last_offset_delta, partition_leader_epoch, base_sequence
    cdef int64_t producer_id
    cdef int16_t attributes, producer_epoch
    cdef int compression
    cdef object level

    # Writes the header of a batch of `size` bytes at `at`; the records are already in place.
    cdef int write_header(self, uint8_t *at, Py_ssize_t size) except -1
    cdef int reserve(self, Py_ssize_t more) except -1
    cdef int put_record(self, Py_ssize_t size, int64_t timestamp_delta, int64_t offset_delta, list fields) except -1
    cdef Py_ssize_t put_field(self, Py_ssize_t pos, object field) except -1
