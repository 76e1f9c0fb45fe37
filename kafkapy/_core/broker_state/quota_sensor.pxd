# The rate of one quota bucket, measured by a ring of samples as in Apache Kafka. The gate and the Python path record
# into the same sensor.
from libc.stdint cimport int64_t

cdef struct QuotaSample:
    double value
    int64_t start_ms
    int64_t last_event_ms                # of the last record in the sample, or `start_ms`


cdef class QuotaSensor:
    cdef QuotaSample *samples            # capacity: samples + 1
    cdef int used                        # samples of the ring that were begun, at most its capacity
    cdef int current
    cdef int sample_limit
    cdef int64_t sample_ms
    cdef int least_full                  # the least number of full samples in the window that a rate is computed for
    cdef int64_t least_ms                # the least length of that window
    cdef public double bound             # units per second
    cdef readonly int64_t last_record_ms
    cdef double ceiling                  # an upper bound of the sum of the samples in the window
    cdef double shortest_s               # the length of the shortest window that a rate is computed for
    cdef int64_t pending                 # the weight of the work in this span whose time is not recorded yet

    cdef void add(self, double value, int64_t monotonic_ms) noexcept nogil
    # Returns the sum of the samples in the window, and sets the window's length.
    cdef double sum_of(self, int64_t monotonic_ms, int64_t *window_ms) noexcept nogil
    # Returns whether the rate would be at most the bound if `value` were recorded now.
    cdef bint admits(self, double value, int64_t monotonic_ms) noexcept nogil
