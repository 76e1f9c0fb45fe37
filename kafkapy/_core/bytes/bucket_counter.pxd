# Counts the records of batches by client and time bucket, without the interpreter lock.
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkapy._core.bytes.batch_layout cimport BatchHeader
from kafkapy._core.bytes.record_decompressor cimport RecordDecompressor

cdef enum:
    TABLE_SLOTS = 16384                  # a power of two
    MOST_COUNTS = 15000                  # records of further counts are in `uncounted`
    FULL_COUNTS = 8192                   # no further batch is counted until the counts are taken


# Why a pass over a chunk stopped.
cdef enum:
    CHUNK_COUNTED = 0                    # no complete batch is left
    TABLE_FULL = 1                       # the counts have to be taken
    OTHER_FORMAT = 2                     # an old message, or a batch that only Python can decompress
    BATCH_CORRUPT = 3


cdef struct BucketCount:
    int64_t bucket_ms
    int64_t number                       # of records; 0: the slot is empty
    int32_t client
    bint is_aborted


cdef struct ClientStart:                 # the client of the offsets up to the next start
    int64_t first_offset
    int32_t client


cdef struct AbortedRange:
    int64_t producer_id
    int64_t first_offset
    int64_t last_offset


cdef class BucketCounter(RecordDecompressor):
    cdef int64_t bucket_size_ms
    cdef BucketCount *table
    cdef int used
    cdef BucketCount *latest             # slot of the last record; NULL: none
    cdef int32_t client                  # of the batch that is counted
    cdef bint is_aborted
    cdef ClientStart *clients            # in the order of offsets
    cdef Py_ssize_t client_count
    cdef AbortedRange *aborted           # in the order of their last offsets
    cdef Py_ssize_t aborted_count
    cdef uint8_t *plain                  # decompressed records of one batch
    cdef Py_ssize_t plain_length
    cdef Py_ssize_t plain_capacity
    cdef readonly int64_t uncounted

    cdef int pass_batches(self, const uint8_t *buf, Py_ssize_t end, int64_t start_offset, Py_ssize_t *pos,
                          int64_t *next_offset) noexcept nogil
    cdef int count_batch(self, const uint8_t *buf, const BatchHeader *header, int64_t start_offset) noexcept nogil
    cdef int count_records(self, const uint8_t *buf, Py_ssize_t end, const BatchHeader *header,
                           int32_t first_delta) noexcept nogil
    cdef void choose(self, int64_t producer_id, bint is_transactional, int64_t offset) noexcept nogil
    cdef void count_timestamp(self, int64_t timestamp, int64_t number) noexcept nogil
    cdef BucketCount *slot_of(self, int64_t bucket_ms) noexcept nogil
