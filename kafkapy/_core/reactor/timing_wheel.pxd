"""Hierarchical timing wheel: adding and cancelling are O(1) however many timers wait."""
from libc.stdint cimport int64_t


cdef class Bucket:
    cdef dict entries                    # sequence -> TimerEntry
    cdef int64_t earliest_ms             # earliest deadline, or UNKNOWN until it is needed; valid if there are entries

    cdef int put(self, TimerEntry entry) except -1
    cdef int64_t earliest(self) except -3


cdef class TimerEntry:
    cdef readonly int64_t deadline_ms
    cdef readonly object callback        # None once cancelled or expired
    cdef readonly int64_t sequence       # order of insertion, breaks ties between equal deadlines
    cdef Bucket bucket                   # the bucket that holds it, or None if it no longer waits
    cdef TimingWheel wheel

    cpdef bint cancel(self)


cdef class TimingWheel:
    cdef readonly int64_t tick_ms
    cdef readonly int64_t wheel_size     # buckets per level
    cdef readonly int64_t current_ms     # never goes back; may lag behind advances that expired nothing
    cdef list levels                     # lists of buckets; level n has ticks of tick_ms * wheel_size**n
    cdef Bucket due                      # entries added with a deadline that has passed
    cdef Py_ssize_t count
    cdef int64_t next_sequence
    cdef int64_t earliest_ms             # earliest deadline, NONE_WAITING, or UNKNOWN until it is needed

    cpdef TimerEntry add(self, int64_t deadline_ms, object callback)
    cpdef list advance(self, int64_t monotonic_ms)
    cpdef int64_t next_deadline_ms(self)
    cdef int place(self, TimerEntry entry) except -1
    cdef int64_t scan_earliest(self) except -3
