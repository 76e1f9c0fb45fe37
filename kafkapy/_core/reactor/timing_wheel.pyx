"""The timing wheel for the timers of delayed operations, sessions and quotas.

Level 0 has `wheel_size` buckets of one tick; each further level has ticks as long as the whole level below it and is
made when a deadline first needs it. An entry is in the lowest level that reaches its deadline; when the clock enters
its bucket, it expires or moves to a lower level. With ticks of 1 ms and 20 buckets, one day takes 6 levels.

    level 0   |now|+1 |+2 | ... |+19|         1 ms each
    level 1   |   0..19    |20..39| ... |     20 ms each
    level 2   |         0..399        | ...   400 ms each

The wheel runs no callbacks: `next_deadline_ms` returns the exact time until which the owner may sleep, and `advance`
returns the callbacks that have expired.
"""
from libc.stdint cimport INT64_MAX

cdef enum:
    NONE_WAITING = -1
    UNKNOWN = -2


cdef class Bucket:
    """The entries of one slot of a level of the wheel: those with a deadline in the interval of time that the slot
    covers.

    Also stores the earliest of these deadlines, if it is known.
    """

    def __cinit__(self):
        self.entries = {}

    cdef int put(self, TimerEntry entry) except -1:
        if not self.entries or (self.earliest_ms != UNKNOWN and entry.deadline_ms < self.earliest_ms):
            # A negative deadline would be taken for UNKNOWN or NONE_WAITING; 0 is equivalent for any past deadline.
            self.earliest_ms = max(entry.deadline_ms, <int64_t>0)
        self.entries[entry.sequence] = entry
        entry.bucket = self
        return 0

    cdef int64_t earliest(self) except -3:
        cdef TimerEntry entry
        cdef int64_t found = INT64_MAX
        if self.earliest_ms == UNKNOWN:
            for entry in self.entries.values():
                found = min(found, entry.deadline_ms)
            self.earliest_ms = max(found, <int64_t>0)
        return self.earliest_ms


cdef class TimerEntry:
    """A callback that waits for its deadline. The caller that added it and its bucket refer to it.

    Used only by the thread that owns the wheel.
    """

    cpdef bint cancel(self):
        """Removes the entry from the wheel. Returns False if it has expired or was cancelled before, otherwise True."""
        cdef TimingWheel wheel = self.wheel
        if self.bucket is None:
            return False
        del self.bucket.entries[self.sequence]
        if self.deadline_ms <= self.bucket.earliest_ms:
            self.bucket.earliest_ms = UNKNOWN
        self.bucket = None
        self.callback = None
        self.wheel = None
        wheel.count -= 1
        if self.deadline_ms <= wheel.earliest_ms:
            wheel.earliest_ms = UNKNOWN
        return True

    def __lt__(self, TimerEntry other not None):
        if self.deadline_ms != other.deadline_ms:
            return self.deadline_ms < other.deadline_ms
        return self.sequence < other.sequence

    def __repr__(self):
        return f"TimerEntry(deadline_ms={self.deadline_ms}, callback={self.callback!r})"


cdef class TimingWheel:
    """A hierarchical timing wheel, which owns all waiting entries. Used only by the thread that owns it.

    Entries whose deadline has passed are in `due`. Invariant: all other entries have deadline_ms > current_ms.
    """

    def __init__(self, int64_t tick_ms=1, int64_t wheel_size=20, int64_t start_ms=0):
        if tick_ms < 1 or wheel_size < 2 or start_ms < 0:
            raise ValueError("a timing wheel needs tick_ms >= 1, wheel_size >= 2 and start_ms >= 0")
        self.tick_ms = tick_ms
        self.wheel_size = wheel_size
        self.current_ms = start_ms
        self.levels = []
        self.due = Bucket()
        self.earliest_ms = NONE_WAITING

    cpdef TimerEntry add(self, int64_t deadline_ms, object callback):
        """Adds a callback that expires at `deadline_ms` on the wheel's clock; returns its entry.

        If the deadline has passed already, the callback expires at the next `advance`.
        """
        cdef TimerEntry entry = TimerEntry.__new__(TimerEntry)
        entry.deadline_ms = deadline_ms
        entry.callback = callback
        entry.sequence = self.next_sequence
        entry.wheel = self
        self.next_sequence += 1
        self.place(entry)
        self.count += 1
        if self.earliest_ms == NONE_WAITING or (self.earliest_ms != UNKNOWN and deadline_ms < self.earliest_ms):
            self.earliest_ms = max(deadline_ms, <int64_t>0)
        return entry

    cdef int place(self, TimerEntry entry) except -1:
        """Puts an entry into the lowest level of the wheel whose intervals include its deadline, or into `due` if the
        deadline has passed."""
        cdef Py_ssize_t level = 0
        cdef int64_t tick = self.tick_ms, index
        if entry.deadline_ms <= self.current_ms:
            self.due.put(entry)
        else:
            index = entry.deadline_ms // tick
            while index - self.current_ms // tick >= self.wheel_size:
                tick *= self.wheel_size
                level += 1
                index = entry.deadline_ms // tick
            while level >= len(self.levels):
                self.levels.append([Bucket() for _ in range(self.wheel_size)])
            (<Bucket>(<list>self.levels[level])[index % self.wheel_size]).put(entry)
        return 0

    cpdef list advance(self, int64_t monotonic_ms):
        """Moves the clock to `monotonic_ms`, unless that is before its present time.

        Returns the callbacks whose deadline has come, in the order of their deadlines. Callbacks with equal deadlines
        are in the order in which they were added.
        """
        cdef list expired = list(self.due.entries.values()), fallen = [], buckets
        cdef Bucket bucket
        cdef int64_t tick = self.tick_ms, first, last, index, before = self.current_ms
        cdef TimerEntry entry
        if monotonic_ms < before:
            monotonic_ms = before
        if not expired and (self.earliest_ms == NONE_WAITING or monotonic_ms < self.earliest_ms):
            # Nothing can have expired; the buckets passed over are processed when something has.
            if self.earliest_ms == NONE_WAITING:
                self.current_ms = monotonic_ms
            return []
        self.due.entries.clear()
        for buckets in self.levels:
            # The current bucket can hold later deadlines of the same tick, so that it is processed again.
            first = before // tick
            last = min(monotonic_ms // tick, first + self.wheel_size - 1)
            for index in range(first, last + 1):
                bucket = buckets[index % self.wheel_size]
                if bucket.entries:
                    fallen.extend(bucket.entries.values())
                    bucket.entries.clear()
            tick *= self.wheel_size
        self.current_ms = monotonic_ms
        for entry in fallen:
            if entry.deadline_ms <= monotonic_ms:
                expired.append(entry)
            else:
                self.place(entry)
        self.count -= len(expired)
        self.earliest_ms = UNKNOWN if self.count else NONE_WAITING
        if len(expired) > 1:
            expired.sort()
        return [take_callback(entry) for entry in expired]

    cpdef int64_t next_deadline_ms(self):
        """Returns the earliest deadline in ms (0 for a negative one), or -1 if no entry waits."""
        if self.earliest_ms == UNKNOWN:
            self.earliest_ms = self.scan_earliest()
        return self.earliest_ms

    cdef int64_t scan_earliest(self) except -3:
        """Returns the earliest deadline of all entries in ms, or NONE_WAITING (-1) if no entry waits.

        Looks only at the first bucket of each level that has entries. The later buckets of the level need not be read,
        because all their deadlines are later.
        """
        cdef int64_t tick = self.tick_ms, index, first, earliest = INT64_MAX
        cdef list buckets
        cdef Bucket bucket
        if self.count == 0:
            return NONE_WAITING
        if self.due.entries:
            return self.due.earliest()
        for buckets in self.levels:
            first = self.current_ms // tick
            for index in range(first, first + self.wheel_size):
                bucket = <Bucket>buckets[index % self.wheel_size]
                if bucket.entries:
                    earliest = min(earliest, bucket.earliest())
                    break
            tick *= self.wheel_size
        return earliest

    def __len__(self):
        return self.count


cdef object take_callback(TimerEntry entry):
    cdef object callback = entry.callback
    entry.callback = None
    entry.bucket = None
    entry.wheel = None
    return callback
