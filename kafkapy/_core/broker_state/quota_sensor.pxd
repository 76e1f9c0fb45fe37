# The rate of one quota bucket, measured by a ring of samples as in Apache Kafka. The gate and the Python path record
# into the same sensor.
from libc.stdint cimport int64_t

cdef struct QuotaSample:
    double value
    int64_t start_ms
    int64_t last_event_ms                # of the last record in the sample


cdef class QuotaSensor:
    # A request within the quota reads and writes only these fields, which lie in one or two lines of the processor's
    # cache. The value and the last event of the current sample are here; those in `samples` are set when it ends.
    cdef double ceiling                  # an upper bound of the sum of the samples in the window
    cdef double least_allowed            # the largest sum that is within the bound in the shortest window
    cdef double value                    # of the current sample
    cdef int64_t current_until_ms        # the current sample ends then; the lowest integer if there is none
    cdef readonly int64_t last_record_ms
    cdef int64_t pending                 # the weight of the work in this span whose time is not recorded yet

    cdef double limit                    # units per second
    cdef double shortest_s               # the length of the shortest window that a rate is computed for
    cdef QuotaSample *samples            # capacity: samples + 1
    cdef int used                        # samples of the ring that were begun, at most its capacity
    cdef int current
    cdef int sample_limit
    cdef int64_t sample_ms
    cdef int least_full                  # the least number of full samples in the window that a rate is computed for
    cdef int64_t least_ms                # the least length of that window

    cdef void next_sample(self, int64_t monotonic_ms) noexcept nogil
    cdef double value_of(self, int index) noexcept nogil
    cdef int64_t last_event_ms_of(self, int index) noexcept nogil
    cdef void add(self, double value, int64_t monotonic_ms) noexcept nogil
    # Returns the sum of the samples in the window, and sets the window's length.
    cdef double sum_of(self, int64_t monotonic_ms, int64_t *window_ms) noexcept nogil
    # Returns whether the rate would be at most the bound if `value` were recorded now.
    cdef bint admits(self, double value, int64_t monotonic_ms) noexcept nogil
