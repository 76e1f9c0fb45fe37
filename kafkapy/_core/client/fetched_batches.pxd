"""Walks over the fetched batches of one partition, as a consumer sees them, without the interpreter lock.

Skips control batches, batches of aborted transactions, and everything before the consumer's position.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkapy._core.bytes.batch_layout cimport BatchHeader
from kafkapy._core.client.record_collector cimport RecordCollector

# The state of the walk, or the reason why it stopped.
cdef enum:
    AT_RECORD = 0                        # before the records of a batch
    AT_END = 1
    AT_OLD_MESSAGES = 2                  # magic 0 or 1: left to Python
    AT_CLOSED_BATCH = 3                  # compressed in a way that only Python can open
    DAMAGED_BATCH = 4
    DAMAGED_RECORD = 5
    DAMAGED_CONTROL = 6

    SMALLEST_RECORD = 7                  # bytes

# The records of one batch and the position in them. *Borrows* their bytes.
cdef struct RecordSpan:
    const uint8_t *buf
    Py_ssize_t pos                       # position of the next record
    Py_ssize_t end
    int32_t remaining                    # number of records not read yet
    int64_t base_offset
    int64_t base_timestamp
    bint has_log_append_time             # whether all records have the timestamp of the next field
    int64_t log_append_time

cdef struct AbortedTransaction:
    int64_t first_offset
    int64_t producer_id


cdef class FetchedBatches:
    cdef readonly str topic
    cdef readonly int32_t partition
    cdef readonly int64_t next_offset        # the consumer's next offset
    cdef readonly int64_t until_offset       # no record from here on is read
    cdef readonly int64_t end_offset         # after the last whole batch: the offset of the next fetch
    cdef readonly int64_t high_watermark, last_stable_offset, log_start_offset
    cdef readonly int32_t leader_epoch       # of the batch that was read last; -1 before the first
    cdef readonly bint is_exhausted
    cdef object buffer
    cdef Py_buffer view
    cdef bint pinned
    cdef bint check_crcs, read_committed
    cdef bint defers_crcs                    # `enter_batch` leaves the check of uncompressed batches to the caller
    cdef bint is_unchecked                   # the check of the current batch was left to the caller
    cdef AbortedTransaction *aborted         # by offset
    cdef Py_ssize_t aborted_count, aborted_met
    cdef int64_t *aborted_producers          # producers with an aborted transaction that is open here
    cdef Py_ssize_t aborted_producer_count
    cdef Py_ssize_t position                 # position of the current batch, or of the next one
    cdef BatchHeader header                  # end of the current batch
    cdef RecordSpan span
    cdef RecordCollector collector
    cdef object opened                       # a batch's records, decompressed by Python
    cdef list old_records                    # messages of magic 0 and 1, the next one last; None while in a batch

    # Goes to the next batch with records for the consumer; returns an AT_ or DAMAGED_ status.
    cdef int enter_batch(self) noexcept nogil
    # Checks the current batch if `enter_batch` has not; returns AT_RECORD or DAMAGED_BATCH.
    cdef int check_batch(self) noexcept nogil
    # Opens the batch's records into `span`; returns AT_RECORD, AT_CLOSED_BATCH or DAMAGED_RECORD.
    cdef int open_batch(self) noexcept nogil
    # Handles a status that needs Python and returns the new one. Raises ApiError for a DAMAGED_ status.
    cdef int open_by_python(self, int status) except -1
    # Leaves the batch.
    cdef void leave_batch(self) noexcept nogil
    # Ends the walk at a record at `until_offset` or after it.
    cdef void finish(self) noexcept nogil
    # Returns the error for a DAMAGED_ status; the batch stays the next one.
    cdef object complaint(self, int status)
    cdef int64_t find_end(self) noexcept nogil
    cdef int judge_batch(self) noexcept nogil
    cdef int judge_marker(self) noexcept nogil
    cdef void note_aborted(self, int64_t last_offset) noexcept nogil
    cdef Py_ssize_t find_aborted_producer(self, int64_t producer_id) noexcept nogil
    cdef int begin_span(self, const uint8_t *records, Py_ssize_t size) noexcept nogil
    cdef int open_old_messages(self) except -1
    cdef int open_closed_batch(self) except -1
