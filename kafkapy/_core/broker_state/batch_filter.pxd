"""The log cleaner's native pass over batches of magic 2: collect the newest offset of each key, then filter.

    chunk of a segment --collect_keys--> OffsetMap        chunk --BatchFilter--> output --write_to--> cleaned segment

Plain batches (without codec, transaction and control record) are processed together without the interpreter lock.
Others stop the pass; the caller decides about them, decompresses them, and passes them on one by one.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkapy._core.bytes.batch_layout cimport BatchHeader
from kafkapy._core.bytes.offset_map cimport OffsetMap


# Why a pass over a chunk stopped.
cdef enum:
    CHUNK_DONE = 0                       # no complete batch is left
    BATCH_IS_SPECIAL = 1                 # compressed, transactional, control, or an old format
    BATCH_IS_CORRUPT = 2
    MAP_IS_FULL = 3
    NO_MEMORY = 4

# The result of filtering a batch.
cdef enum:
    KEEP_AS_IT_IS = 0
    REBUILD = 1
    NOTHING_LEFT = 2
    RECORDS_MALFORMED = 3

cdef struct Retained:
    int32_t count
    bint has_tombstone
    int64_t first_timestamp
    int64_t max_timestamp


cdef class BatchFilter:
    cdef OffsetMap offsets
    cdef readonly int64_t wall_ms
    cdef readonly int64_t delete_retention_ms
    cdef readonly int64_t round_end      # the batch that ends here is retained, without records if necessary
    cdef int64_t *last_offsets           # last offsets of the newest data batches of active producers, sorted
    cdef int64_t *last_producers         # the producer id of each of them
    cdef Py_ssize_t last_count
    cdef uint8_t *kept                   # one flag for each record of the current batch
    cdef Py_ssize_t kept_capacity
    cdef uint8_t *output
    cdef readonly Py_ssize_t output_length
    cdef Py_ssize_t output_capacity
    cdef readonly int64_t records_read
    cdef readonly int64_t records_kept
    cdef readonly int64_t keyless_records

    cdef bint reserve(self, Py_ssize_t more) noexcept nogil
    cdef bint is_last_of_producer(self, const BatchHeader *header) noexcept nogil
    cdef bint retains(self, const BatchHeader *header, int64_t offset, const uint8_t *key, int32_t key_length,
                      int32_t value_length) noexcept nogil
    cdef int choose_records(self, const BatchHeader *header, const uint8_t *records, Py_ssize_t length, bint discard,
                            Retained *retained) noexcept nogil
    cdef void put_records(self, const BatchHeader *header, const uint8_t *records, Py_ssize_t length,
                          int64_t base_timestamp) noexcept nogil
    cdef void put_header(self, const uint8_t *batch, Py_ssize_t at, int attributes, int64_t base_timestamp,
                         int64_t max_timestamp, int32_t count) noexcept nogil
    cdef bint put_empty(self, const uint8_t *batch, const BatchHeader *header) noexcept nogil
    cdef int64_t plain_batch(self, const uint8_t *batch, const BatchHeader *header) noexcept nogil
    cdef object _filter_opened(self, const uint8_t *batch, const BatchHeader *header, const uint8_t[::1] records,
                               bint discard, bint keep_empty, bint begin_horizon)
