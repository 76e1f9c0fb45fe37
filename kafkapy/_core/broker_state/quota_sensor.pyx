"""The rate at which a client or user uses a quota, measured in samples as Apache Kafka does (KIP-13).

    samples    `sample_limit` + 1 of them, each for at least `sample_ms`; the additional one is leaving the window
    rate       sum of the samples that changed in the last sample_limit * sample_ms, divided by the window's length
    window     the time since the oldest of these samples began; at least (sample_limit - 1) * sample_ms, or at least
               sample_ms in a simple sensor

After a pause, a quota of clients therefore admits (sample_limit - 1) * sample_ms * `bound` at once; `bound` is the
permitted rate. Then the quota admits nearly nothing until the first sample leaves the window. Quotas of replication use
simple sensors. Times are milliseconds of the reactor's monotonic clock.
"""

from libc.math cimport INFINITY, floor
from libc.stdint cimport INT64_MIN, int64_t
from libc.stdlib cimport calloc, free


cdef int64_t LONGEST_MS = (1 << 53) - 1   # the largest exact integer of a double


cdef class QuotaSensor:
    """Measures the rate at which one quota of a client or user is used, and compares it with the quota's bound.

    Used only by the thread that owns it; any thread may read the rate.
    """

    def __cinit__(self, double bound, int sample_limit, int64_t sample_ms, *, bint is_simple=False):
        if sample_limit < 1 or sample_ms < 1:
            raise ValueError("a sensor needs at least one sample of at least one millisecond")
        self.samples = <QuotaSample *> calloc(<size_t> sample_limit + 1, sizeof(QuotaSample))
        if self.samples == NULL:
            raise MemoryError()
        self.current_until_ms = INT64_MIN
        self.sample_limit = sample_limit
        self.sample_ms = sample_ms
        self.least_full = 0 if is_simple else sample_limit - 1
        self.least_ms = sample_ms if is_simple else 1
        self.shortest_s = <double> max(self.least_full * sample_ms, self.least_ms) / 1000
        self.bound = bound

    def __dealloc__(self):
        free(self.samples)

    @property
    def bound(self):
        """The largest rate that the quota permits, in units per second; NaN means no limit."""
        return self.limit

    @bound.setter
    def bound(self, double bound):
        self.limit = bound
        self.least_allowed = bound * self.shortest_s

    cdef void add(self, double value, int64_t monotonic_ms) noexcept nogil:
        if monotonic_ms >= self.current_until_ms:
            self.next_sample(monotonic_ms)
        self.value += value
        if value > 0:
            self.ceiling += value
        self.last_record_ms = monotonic_ms

    cdef void next_sample(self, int64_t monotonic_ms) noexcept nogil:
        if self.used > 0:
            self.samples[self.current].value = self.value
            self.samples[self.current].last_event_ms = self.last_record_ms
            self.current = 0 if self.current == self.sample_limit else self.current + 1
        if self.current == self.used:
            self.used += 1
        self.samples[self.current].start_ms = monotonic_ms
        self.current_until_ms = monotonic_ms + self.sample_ms
        self.value = 0

    cdef double value_of(self, int index) noexcept nogil:
        return self.value if index == self.current else self.samples[index].value

    cdef int64_t last_event_ms_of(self, int index) noexcept nogil:
        return self.last_record_ms if index == self.current else self.samples[index].last_event_ms

    cdef double sum_of(self, int64_t monotonic_ms, int64_t *window_ms) noexcept nogil:
        cdef int64_t expired_before = monotonic_ms - self.sample_limit * self.sample_ms
        cdef int64_t oldest = monotonic_ms
        cdef int64_t elapsed, full
        cdef double total = 0
        cdef int index
        for index in range(self.used):
            if self.last_event_ms_of(index) > expired_before:
                total += self.value_of(index)
                if self.samples[index].start_ms < oldest:
                    oldest = self.samples[index].start_ms
        elapsed = monotonic_ms - oldest
        full = elapsed // self.sample_ms
        if full < self.least_full:
            elapsed += (self.least_full - full) * self.sample_ms
        window_ms[0] = elapsed if elapsed > self.least_ms else self.least_ms
        return total

    cdef bint admits(self, double value, int64_t monotonic_ms) noexcept nogil:
        cdef int64_t window_ms
        cdef double total
        cdef int index
        if self.ceiling + value <= self.least_allowed:
            return True  # without reading the samples, which are rarely in the processor's cache
        total = self.sum_of(monotonic_ms, &window_ms)
        self.ceiling = total
        for index in range(self.used):
            if self.value_of(index) < 0:
                self.ceiling = INFINITY  # the sum would grow when this sample leaves the window
        return not (total + value) / (<double> window_ms / 1000) > self.limit  # a bound that is NaN limits nothing

    def record(self, double value, int64_t monotonic_ms):
        """Adds `value`, such as a number of bytes, to the current sample; a negative value withdraws what was added
        before."""
        self.add(value, monotonic_ms)

    def rate(self, int64_t monotonic_ms):
        """Returns the measured rate at the time `monotonic_ms`, in units per second."""
        cdef int64_t window_ms
        cdef double total = self.sum_of(monotonic_ms, &window_ms)
        return total / (<double> window_ms / 1000)

    def has_room(self, double value, int64_t monotonic_ms):
        """Returns whether the rate would be at most the bound if `value` were recorded now."""
        return self.admits(value, monotonic_ms)

    def throttle_ms(self, int64_t monotonic_ms):
        """Returns the ms from now until the rate is at most the bound, if nothing more is recorded."""
        cdef int64_t window_ms
        cdef double total = self.sum_of(monotonic_ms, &window_ms)
        cdef double rate = total / (<double> window_ms / 1000)
        cdef double wait_ms
        if not rate > self.limit:
            return 0
        if self.limit <= 0:
            return LONGEST_MS
        wait_ms = floor((rate - self.limit) / self.limit * window_ms + 0.5)
        return <int64_t> wait_ms if wait_ms < LONGEST_MS else LONGEST_MS
