"""Validates the record batches of clients, assigns their offsets in place, and scans log files.

The gate's produce path calls the leaf functions; the Python path calls the Python functions around them.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkapy._core.bytes.batch_layout cimport BatchHeader
from kafkapy._core.bytes.record_scanner cimport RecordCheck

# Faults of a batch in addition to the RECORDS_ and RECORD_ statuses; 0 means none.
cdef enum:
    BATCH_BAD_BASE_OFFSET = 20           # the base offset of a client's batch is not 0
    BATCH_TOO_LARGE = 21
    BATCH_BAD_CRC = 22
    BATCH_BAD_COUNT = 23                 # not positive, or not last offset delta + 1
    BATCH_IS_CONTROL = 24
    BATCH_BAD_SEQUENCE = 25              # a producer id without a sequence
    BATCH_BAD_CODEC = 26

# The limits of a topic. Filled once per topic configuration.
cdef struct BatchLimits:
    int32_t max_message_bytes
    bint from_client
    bint log_append_time                 # message.timestamp.type
    int64_t before_max_ms                # message.timestamp.before.max.ms
    int64_t after_max_ms                 # message.timestamp.after.max.ms
    bint compacted                       # compacted: keys are required


cdef bint crc_is_valid(const uint8_t *buf, const BatchHeader *header) noexcept nogil
# Checks everything of a whole batch of magic 2 except its records. Returns 0 or a BATCH_ status.
cdef int check_batch(const uint8_t *buf, const BatchHeader *header, const BatchLimits *limits) noexcept nogil
# Sets the limits against which the records of this batch are checked.
cdef void prepare_check(RecordCheck *check, const BatchHeader *header, const BatchLimits *limits,
                        int64_t wall_ms) noexcept nogil
# Writes base offset and leader epoch. If `log_append_time_ms` is 0 or more, or the largest timestamp differs, also
# writes the timestamp and the CRC.
cdef void assign_in_place(uint8_t *batch, int64_t size, int64_t base_offset, int32_t leader_epoch,
                          int64_t max_timestamp, int64_t log_append_time_ms) noexcept nogil


cdef class BatchSummary:
    cdef BatchHeader header
    cdef readonly int64_t position           # in the buffer, plus the `position_offset` of scan_batches
    cdef readonly int64_t max_timestamp      # of the records if they were read, otherwise of the header
    cdef readonly int64_t offset_of_max_timestamp
    cdef int64_t assigned_base_offset

    @staticmethod
    cdef BatchSummary of(const BatchHeader *header, int64_t position)
