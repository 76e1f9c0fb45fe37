"""The state of partitions that the gate reads."""

from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memset

cdef enum:
    SMALLEST_CAPACITY = 16


# The counters of a partition that was created without counters.
cdef TopicCounters UNSEEN = TopicCounters()


cdef class PartitionState:
    """Base of Partition. Used by the owner thread only."""

    def __cinit__(self, *arguments, **keywords):
        self.counters = UNSEEN


cdef inline uint64_t hash_of(const uint8_t *key, Py_ssize_t length, int32_t partition) noexcept nogil:
    """Returns an FNV-1a hash. Only existing partitions are in the table, so that clients cannot force collisions."""
    cdef uint64_t value = 0xcbf29ce484222325u ^ <uint64_t> partition
    cdef Py_ssize_t index
    for index in range(length):
        value = (value ^ key[index]) * 0x100000001b3u
    return value ^ (value >> 29)


cdef class PartitionTable:
    """Owns its entries. Used by the owner thread only. Invariant: at least half of the slots are empty."""

    def __cinit__(self):
        self.owned = {}
        self.slots = <PartitionSlot *> calloc(SMALLEST_CAPACITY, sizeof(PartitionSlot))
        if self.slots == NULL:
            raise MemoryError()
        self.capacity = SMALLEST_CAPACITY

    def __dealloc__(self):
        free(self.slots)

    cdef PyObject *find(self, const uint8_t *key, Py_ssize_t length, int32_t partition) noexcept nogil:
        cdef uint64_t hash = hash_of(key, length, partition)
        cdef Py_ssize_t at = <Py_ssize_t> hash & (self.capacity - 1)
        cdef PartitionSlot *slot
        while True:
            slot = &self.slots[at]
            if slot.key == NULL:
                return NULL
            if (slot.hash == hash and slot.partition == partition and slot.length == length
                    and memcmp(slot.key, key, <size_t> length) == 0):
                return slot.state
            at = (at + 1) & (self.capacity - 1)

    cdef void place(self, PartitionSlot *slot) noexcept nogil:
        cdef Py_ssize_t at = <Py_ssize_t> slot.hash & (self.capacity - 1)
        while self.slots[at].key != NULL:
            at = (at + 1) & (self.capacity - 1)
        self.slots[at] = slot[0]

    cdef int reserve(self) except -1:
        """Makes room for one more entry."""
        cdef PartitionSlot *old = self.slots
        cdef Py_ssize_t old_capacity = self.capacity
        cdef Py_ssize_t at
        if 2 * (self.used + 1) <= self.capacity:
            return 0
        self.slots = <PartitionSlot *> calloc(<size_t> old_capacity * 2, sizeof(PartitionSlot))
        if self.slots == NULL:
            self.slots = old
            raise MemoryError()
        self.capacity = old_capacity * 2
        for at in range(old_capacity):
            if old[at].key != NULL:
                self.place(&old[at])
        free(old)
        return 0

    cdef int put(self, bytes key, int32_t partition, object state) except -1:
        cdef PartitionSlot slot
        self.drop(key, partition)
        self.reserve()
        self.owned[key, partition] = (key, state)
        slot.key = key
        slot.length = len(key)
        slot.partition = partition
        slot.hash = hash_of(slot.key, slot.length, partition)
        slot.state = <PyObject *> state
        self.place(&slot)
        self.used += 1
        return 0

    cdef int drop(self, bytes key, int32_t partition) except -1:
        """Removes the partition, if it is in the table.

        Later entries of the same probe sequence move up, so that no gap ends a search too early.
        """
        cdef Py_ssize_t mask = self.capacity - 1
        cdef Py_ssize_t at, gap, home
        cdef object gone = self.owned.pop((key, partition), None)
        if gone is None:
            return 0
        at = <Py_ssize_t> hash_of(key, len(key), partition) & mask
        while self.slots[at].state != <PyObject *> gone[1] or self.slots[at].partition != partition:
            at = (at + 1) & mask
        gap = at
        while True:
            at = (at + 1) & mask
            if self.slots[at].key == NULL:
                break
            home = <Py_ssize_t> self.slots[at].hash & mask
            if ((at - home) & mask) >= ((at - gap) & mask):
                self.slots[gap] = self.slots[at]
                gap = at
        memset(&self.slots[gap], 0, sizeof(PartitionSlot))
        self.used -= 1
        return 0

    def __len__(self):
        return self.used
