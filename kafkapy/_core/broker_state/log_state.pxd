"""The offsets, sizes and timestamps of a log, shared by the Python path and the gate.

    LogState -> SegmentsState -> SegmentState (active) -> SegmentFile, OffsetIndex, TimeIndex
             -> ProducersState -> ProducerTable -> ProducerEntry

The storage classes extend these classes and use the fields as their attributes; the gate uses the same fields without
the interpreter lock. Only the thread that owns the log, which is the reactor's, writes them.
"""
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t

from kafkapy._core.bytes.offset_index cimport OffsetIndex
from kafkapy._core.broker_state.producer_table cimport ProducerTable
from kafkapy._core.bytes.segment_file cimport SegmentFile
from kafkapy._core.bytes.time_index cimport TimeIndex

cdef enum:
    TIMESTAMP_NOT_LOADED = -2            # LogSegment reads the timestamp from the file when it is needed
    LARGEST_RELATIVE_OFFSET = 2147483647

cdef class DirectoryState:
    cdef public bint is_online           # changes only from True to False


cdef class LogLimits:
    cdef public int64_t segment_bytes
    cdef public int64_t segment_ms
    cdef public int64_t index_interval_bytes
    cdef public int64_t flush_messages
    cdef public int32_t max_message_bytes
    cdef public bint stamps_append_time      # message.timestamp.type is LogAppendTime
    cdef public int64_t timestamp_before_max_ms
    cdef public int64_t timestamp_after_max_ms
    cdef public bint is_compacted
    cdef public int codec                # the topic's compression.type; negative: the producer's codec


cdef class SegmentState:
    cdef public int64_t base_offset
    cdef public int64_t size             # bytes of valid batches
    cdef public int64_t bytes_since_last_index_entry
    cdef public int64_t created_ms
    cdef public int64_t roll_jitter_ms
    cdef public bint is_open_for_append
    cdef public bint is_free_of_aborted  # True only if the transaction index has no entry
    cdef public int64_t _first_timestamp
    cdef public int64_t _max_timestamp
    cdef public int64_t _offset_of_max_timestamp
    cdef public SegmentFile _file        # None until opened, like the indexes
    cdef public OffsetIndex _offset_index
    cdef public TimeIndex _time_index

    # Returns True only if `size` more bytes fit at `position`, behind `pending` batches without index entries.
    cdef bint certainly_fits(self, LogLimits limits, int64_t position, int64_t pending, int64_t size,
                             int64_t max_timestamp, int64_t last_offset) noexcept nogil
    # Indexes one batch as LogSegment.index_batch does. Returns 0 or -errno.
    cdef int index_one(self, int64_t interval_bytes, int64_t position, int64_t size, int64_t last_offset,
                       int64_t max_timestamp) noexcept nogil
    # Discards the bytes from `position` on. If the file cannot be truncated, the next append overwrites them.
    cdef void cut_to(self, int64_t position) noexcept nogil


cdef class SegmentsState:
    cdef readonly SegmentState active    # the last one; None while there is no segment
    cdef PyObject **ordered              # SegmentState by base offset, borrowed from the list of LogSegments
    cdef Py_ssize_t count
    # Returns the index of the segment that covers the offset; -1 before the first segment.
    cdef Py_ssize_t place_of(self, int64_t offset) noexcept nogil


cdef struct EndedTransaction:            # both ends inclusive
    int64_t first_offset
    int64_t last_offset                  # of its marker


cdef class ProducersState:
    cdef public int64_t map_end_offset   # the entries reflect all batches below this offset
    # a transaction is open, or ended above the high watermark; Python resets it later
    cdef public bint may_have_transactions
    cdef readonly ProducerTable entries
    cdef int64_t first_ongoing           # the least first offset of the open transactions, or -1
    cdef EndedTransaction *ended         # transactions that may not end below the high watermark
    cdef Py_ssize_t ended_count

    # Returns the last stable offset for this high watermark.
    cdef int64_t last_stable(self, int64_t high_watermark) noexcept nogil


cdef struct EpochStart:
    int32_t epoch
    int64_t start_offset


cdef class EpochsState:
    cdef readonly int32_t latest_epoch   # the newest leader epoch of the log, or -1
    cdef EpochStart *starts              # all leader epochs of the log, oldest first
    cdef Py_ssize_t start_count

    # Returns whether a log that ends at `end_offset`, and whose last batch has `last_epoch`, is a prefix of this log,
    # which ends at `log_end_offset`. False if that is not known.
    cdef bint certainly_contain(self, int32_t last_epoch, int64_t end_offset, int64_t log_end_offset) noexcept nogil


cdef class LogState:
    cdef public int64_t log_start_offset
    cdef public int64_t log_end_offset
    cdef public int64_t high_watermark
    cdef public int64_t recovery_point   # guarded by RECOVERY_POINT_LOCK of storage/log.py when lowered
    cdef public LogLimits config
    cdef public DirectoryState directory
    cdef public SegmentsState segments
    cdef public ProducersState producers
    cdef public EpochsState leader_epochs
