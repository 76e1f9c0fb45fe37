# The rate of one quota bucket: a ring of samples, as Apache Kafka's client quotas have it. The gate and the Python path
# record into the same sensor.
from libc.stdint cimport int64_t

cdef struct QuotaSample:
    double value
    int64_t start_ms
    int64_t last_event_ms                # of the last record in the sample, or `start_ms`


cdef class QuotaSensor:
    cdef QuotaSample *samples            # capacity: samples + 1
    cdef int used                        # of the ring, until it is full
    cdef int current
    cdef int sample_limit
    cdef int64_t sample_ms
    cdef int least_full                  # full samples that the window counts as, at least
    cdef int64_t least_ms                # length of the window, at least
    cdef public double bound             # units per second
    cdef readonly int64_t last_record_ms
    cdef double ceiling                  # at least the sum of the samples that still count
    cdef double shortest_s               # the shortest window that a rate is computed for
    cdef int64_t pending                 # the weight of the work whose time is not recorded yet

    cdef void add(self, double value, int64_t monotonic_ms) noexcept nogil
    # The sum of the samples that still count, and the length in ms of the window that they cover.
    cdef double sum_of(self, int64_t monotonic_ms, int64_t *window_ms) noexcept nogil
    # Returns whether the rate would be at most the bound if `value` were recorded now.
    cdef bint admits(self, double value, int64_t monotonic_ms) noexcept nogil
