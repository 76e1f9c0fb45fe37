# The batches of one partition of a fetch response, appended by a follower without a Python object for each batch.
from cpython.buffer cimport Py_buffer
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkapy._core.broker_state.log_state cimport LogLimits, SegmentState

cdef class FetchedBatches:
    cdef object records                  # the bytes; given to Python with a batch that it has to account for
    cdef Py_buffer view                  # pins `records`
    cdef bint has_view
    cdef int status                      # of the examination
    cdef bint has_producers              # a batch has a producer id
    cdef int32_t highest_epoch           # of all batches
    cdef readonly int64_t size           # bytes of the batches that are to be appended
    cdef readonly int64_t batch_count
    cdef readonly int64_t base_offset
    cdef readonly int64_t first_batch_end
    cdef readonly int64_t next_offset
    cdef readonly int64_t max_timestamp  # the largest of the batches' headers
    cdef readonly int64_t handed_over    # batches that Python accounted for

    cdef int examine(self, int32_t leader_epoch) noexcept nogil
    # Indexes the batches, of which the first is at `position` of the segment. Returns 0 or -errno.
    cdef int index_all(self, SegmentState segment, LogLimits limits, int64_t position) noexcept nogil
