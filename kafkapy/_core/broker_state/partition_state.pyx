"""The state of partitions that the gate reads and changes, and the hash table in which it finds the partitions.

The gate is the compiled code in `_core/gate` that serves usual Produce and Fetch requests without the interpreter lock.
"""

from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memset

cdef enum:
    SMALLEST_CAPACITY = 16


cdef PyObject *NONE = <PyObject *> None

# The counters of a partition that was created without counters.
cdef TopicCounters UNSEEN = TopicCounters()


cdef class PartitionState:
    """Base of Partition: the C fields for the gate, the compiled code that serves usual Produce and Fetch requests.

    Used only by the thread that owns it. Invariants: the C array `replicas` has exactly the values of the dictionary
    `remote_replicas`. The gate has a list of the produce requests that wait for the high watermark of this partition.
    The list is sorted by the offset that the high watermark has to reach for the request. After the gate has handled a
    rise of the high watermark, all offsets in the list are above the high watermark.
    """

    def __cinit__(self, *arguments, **keywords):
        self.counters = UNSEEN
        self.remote_replicas = {}
        self.min_insync_replicas = 1

    def __dealloc__(self):
        free(self.replicas)

    @property
    def effective_min_isr(self):
        """The smallest size of the ISR with which writes are accepted: `min.insync.replicas`, but at most the number of
        replicas."""
        return self.minimal_isr_size()

    @property
    def awaited_count(self):
        """The number of produce requests that wait in compiled code (the gate) for this partition's high watermark."""
        cdef AwaitedOffset *awaited = self.first_awaited
        cdef int count = 0
        while awaited != NULL:
            count += 1
            awaited = awaited.next
        return count

    def set_remote_replicas(self, dict replicas not None):
        """Replaces the followers by `replicas`, a dictionary of ReplicaState by broker id.

        The caller has to call `set_isr` next, which marks the replicas in the ISR.
        """
        cdef PyObject **borrowed = NULL
        cdef int count = 0
        if replicas:
            borrowed = <PyObject **> malloc(len(replicas) * sizeof(PyObject *))
            if borrowed == NULL:
                raise MemoryError()
            for replica in replicas.values():
                borrowed[count] = <PyObject *> (<ReplicaState?> replica)
                count += 1
        free(self.replicas)
        self.replicas = borrowed
        self.replica_count = count
        self.remote_replicas = replicas

    def set_isr(self, int isr_size, maximal_isr, bint is_in_flight):
        """Stores the size of the confirmed ISR, and marks the replicas that the high watermark has to wait for.

        `maximal_isr` has the broker ids of these replicas: the ISR, and the replicas that the leader has proposed to
        add to it. `is_in_flight` is set while the controller has not confirmed the proposal.
        """
        cdef ReplicaState replica
        self.isr_size = isr_size
        self.maximal_isr_size = len(maximal_isr)
        self.is_isr_in_flight = is_in_flight
        for replica in self.remote_replicas.values():
            replica.is_in_maximal_isr = replica.broker_id in maximal_isr

    def raise_high_watermark(self, int64_t monotonic_ms):
        """Increases the high watermark to the largest offset that all replicas in the ISR have; returns whether it
        rose.

        Replicas that are proposed for the ISR, or are caught up and may soon enter it, count as well. The high
        watermark does not rise while the ISR is smaller than `min.insync.replicas`.
        """
        return self.advance_high_watermark(self.log, monotonic_ms)

    def may_expand_isr(self, ReplicaState replica not None):
        """Returns whether the leader may propose to the controller to add the replica to the ISR.

        The replica's last fetch must have reached the high watermark and the start of the leader epoch. Its broker must
        be neither fenced nor in a controlled shutdown. If that fetch had a broker epoch, it must be the epoch of the
        broker's registration. The replica must not be in the ISR, and no proposal may be in flight.
        """
        return self.may_enter_isr(replica, replica.log_end_offset, replica.broker_epoch)

    def watch_fetch(self, *, bint is_from_follower):
        """Marks the partition as one for which a fetch waits.

        The compiled request path (the gate) then notifies Python when the change happens for which the fetch waits: an
        append for a follower's fetch, a higher high watermark for a consumer's fetch.
        """
        self.watch(is_from_follower)

    cdef void watch(self, bint is_from_follower) noexcept nogil:
        if is_from_follower or self.replica_count == 0:  # without followers each append increases the high watermark
            self.is_watched = True
        if not is_from_follower:
            self.is_commit_watched = True

    def is_withheld(self, ReplicaState replica not None, int64_t monotonic_ms):
        """Returns True if the follower gets no records now, because the rate of throttled replicas is exceeded
        (KIP-73).

        Only a follower that is not in the ISR, and is not proposed for it, is throttled.
        """
        return self.withholds_from(replica, monotonic_ms)

    cdef bint withholds_from(self, ReplicaState replica, int64_t monotonic_ms) noexcept nogil:
        return (<PyObject *> self.leader_throttle != NONE and not replica.is_in_maximal_isr
                and not self.leader_throttle.admits(0, monotonic_ms))

    cdef void count_replicated(self, int64_t size, int64_t monotonic_ms) noexcept nogil:
        if size and <PyObject *> self.leader_throttle != NONE:
            self.leader_throttle.add(<double> size, monotonic_ms)

    cdef PyObject *find_replica(self, int32_t broker_id) noexcept nogil:
        cdef int index
        for index in range(self.replica_count):
            if (<ReplicaState> self.replicas[index]).broker_id == broker_id:
                return self.replicas[index]
        return NULL

    cdef int minimal_isr_size(self) noexcept nogil:
        return self.min_insync_replicas if self.min_insync_replicas <= self.replica_count else self.replica_count + 1

    cdef bint advance_high_watermark(self, LogState log, int64_t monotonic_ms) noexcept nogil:
        cdef int64_t candidate = log.log_end_offset
        cdef int index
        if self.replica_count and self.isr_size < self.minimal_isr_size():
            return False
        for index in range(self.replica_count):
            candidate = smaller_end(self, <ReplicaState> self.replicas[index], candidate, log.log_end_offset,
                                    monotonic_ms)
        if candidate <= log.high_watermark:
            return False
        log.high_watermark = candidate
        return True

    cdef bint may_enter_isr(self, ReplicaState replica, int64_t fetch_offset, int64_t broker_epoch) noexcept nogil:
        return (not replica.is_in_maximal_isr and not self.is_isr_in_flight
                and fetch_offset >= self.log.high_watermark and fetch_offset >= self.leader_epoch_start_offset
                and replica.is_acceptable(broker_epoch))


cdef inline int64_t smaller_end(PartitionState partition, ReplicaState replica, int64_t candidate,
                                int64_t leader_end_offset, int64_t monotonic_ms) noexcept nogil:
    """Returns the replica's log end offset if it is below `candidate` and limits the high watermark; otherwise returns
    `candidate`.

    A replica limits the high watermark if it is in the maximal ISR (the ISR and the replicas that are proposed for it),
    or if it is caught up and may enter the ISR.
    """
    if replica.log_end_offset < candidate and (
            replica.is_in_maximal_isr
            or (replica.was_caught_up(leader_end_offset, monotonic_ms, partition.replica_lag_max_ms)
                and replica.is_acceptable(replica.broker_epoch))):
        return replica.log_end_offset
    return candidate


cdef inline uint64_t hash_of(const uint8_t *key, Py_ssize_t length, int32_t partition) noexcept nogil:
    """Returns a hash (FNV-1a) of the partition number and of `key`, the `length` bytes of the topic's name or id.

    The hash needs no secret, because only existing partitions are in the table. A client therefore cannot slow down
    searches by requests for names with equal hashes.
    """
    cdef uint64_t value = 0xcbf29ce484222325u ^ <uint64_t> partition
    cdef Py_ssize_t index
    for index in range(length):
        value = (value ^ key[index]) * 0x100000001b3u
    return value ^ (value >> 29)


cdef class PartitionTable:
    """A hash table of partitions by topic (name or id) and partition number.

    Used only by the thread that owns it. Invariant: at least half of the slots are empty.
    """

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

    cdef list listed(self):
        return [state for _, state in list(self.owned.values())]

    cdef int reserve(self) except -1:
        """Makes room for one more entry, doubling the table if more than half of its slots would be used."""
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
        self.changes += 1
        return 0

    cdef int drop(self, bytes key, int32_t partition) except -1:
        """Removes the partition of the topic `key` (name or id), if it is in the table.

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
        self.changes += 1
        return 0

    def __len__(self):
        return self.used
