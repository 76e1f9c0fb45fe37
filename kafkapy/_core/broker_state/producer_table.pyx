"""Producer entries and the table that finds them."""

from typing import NamedTuple

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free

cdef enum:
    SMALLEST_CAPACITY = 8


class BatchMetadata(NamedTuple):
    """The sequences and offsets of a batch in the log; the last sequence and the last offset are inclusive."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


cdef object as_metadata(const ProducedBatch *batch):
    return BatchMetadata(
        batch.first_sequence, batch.last_sequence, batch.first_offset, batch.last_offset, batch.timestamp)


cdef class ProducerEntry:
    """The state of one idempotent producer in one log. Changed only by the thread that owns it.

    `transaction_first_offset` is -1 outside a transaction. Invariants: there are at most five batches, all of
    `producer_epoch`, oldest first.
    """

    def __init__(self, int64_t producer_id, int16_t producer_epoch=-1, int64_t last_timestamp=-1,
                 int32_t coordinator_epoch=-1, int64_t transaction_first_offset=-1):
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.transaction_first_offset = transaction_first_offset

    cdef int32_t newest_sequence(self) noexcept nogil:
        return self.ring[(self.oldest + self.count - 1) % BATCHES_RETAINED].last_sequence if self.count else -1

    cdef void push(self, const ProducedBatch *batch) noexcept nogil:
        self.ring[(self.oldest + self.count) % BATCHES_RETAINED] = batch[0]
        if self.count < BATCHES_RETAINED:
            self.count += 1
        else:
            self.oldest = (self.oldest + 1) % BATCHES_RETAINED
        self.last_timestamp = batch.timestamp

    cdef bint is_next_batch(self, int16_t producer_epoch, int32_t first_sequence) noexcept nogil:
        cdef int32_t newest = self.pending_sequence if self.is_pending else self.newest_sequence()
        return (self.count > 0 and producer_epoch == self.producer_epoch
                and self.transaction_first_offset < 0
                and first_sequence == (0 if newest == LARGEST_SEQUENCE else newest + 1))

    @property
    def last_sequence(self):
        """The last sequence of the newest batch; -1 without a batch."""
        return self.newest_sequence()

    @property
    def batches(self):
        """A list of BatchMetadata, oldest first."""
        return [as_metadata(&self.ring[(self.oldest + at) % BATCHES_RETAINED]) for at in range(self.count)]

    @property
    def last_batch(self):
        """The newest batch; None if there is none."""
        return as_metadata(&self.ring[(self.oldest + self.count - 1) % BATCHES_RETAINED]) if self.count else None

    def raise_epoch(self, int16_t producer_epoch):
        """Sets the epoch. If it differs from the former epoch, removes the batches, because the sequences start again
        at 0."""
        if producer_epoch != self.producer_epoch:
            self.count = 0
            self.producer_epoch = producer_epoch

    def add(self, int16_t producer_epoch, batch):
        """Adds a BatchMetadata of a batch that was appended to the log; of more than five batches the oldest is
        removed."""
        cdef ProducedBatch produced
        (produced.first_sequence, produced.last_sequence, produced.first_offset, produced.last_offset,
         produced.timestamp) = batch
        self.raise_epoch(producer_epoch)
        self.push(&produced)

    def find_duplicate(self, int16_t producer_epoch, int32_t first_sequence, int32_t last_sequence):
        """Returns the stored batch with this epoch and these sequences; None if there is none."""
        cdef ProducedBatch *batch
        cdef int at
        if producer_epoch == self.producer_epoch:
            for at in range(self.count):
                batch = &self.ring[(self.oldest + at) % BATCHES_RETAINED]
                if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                    return as_metadata(batch)
        return None

    def __repr__(self):
        return f"ProducerEntry({self.producer_id}, epoch={self.producer_epoch}, batches={self.batches})"


cdef class ProducerTable:
    """A dictionary of ProducerEntry by producer id. Used only by the thread that owns it.

    `slots` is a hash table of the entries, which code without the interpreter lock can search; at least half of its
    slots are empty. The Python dictionary `owned` has the same entries and keeps them alive.
    """

    def __cinit__(self):
        self.owned = {}

    def __dealloc__(self):
        free(self.slots)

    cdef PyObject *find(self, int64_t producer_id) noexcept nogil:
        cdef Py_ssize_t at
        if self.capacity == 0:
            return NULL
        at = slot_of(producer_id, self.capacity)
        while self.slots[at] != NULL:
            if (<ProducerEntry> self.slots[at]).producer_id == producer_id:
                return self.slots[at]
            at = (at + 1) & (self.capacity - 1)
        return NULL

    cdef int insert(self, ProducerEntry entry) except -1:
        """Inserts the entry into the slots. The caller must have added it to the dictionary `owned` before."""
        cdef Py_ssize_t at
        if 2 * <Py_ssize_t> len(self.owned) > self.capacity:
            return self.rebuild(max(<Py_ssize_t> SMALLEST_CAPACITY, self.capacity * 2))
        at = slot_of(entry.producer_id, self.capacity)
        while self.slots[at] != NULL:
            at = (at + 1) & (self.capacity - 1)
        self.slots[at] = <PyObject *> entry
        return 0

    cdef int rebuild(self, Py_ssize_t capacity) except -1:
        cdef PyObject **slots = <PyObject **> calloc(<size_t> capacity, sizeof(PyObject *))
        cdef ProducerEntry entry
        cdef Py_ssize_t at
        if slots == NULL:
            raise MemoryError()
        for entry in self.owned.values():
            at = slot_of(entry.producer_id, capacity)
            while slots[at] != NULL:
                at = (at + 1) & (capacity - 1)
            slots[at] = <PyObject *> entry
        free(self.slots)
        self.slots = slots
        self.capacity = capacity
        return 0

    def get(self, int64_t producer_id):
        """Returns the entry of the producer; None if the table has none."""
        cdef PyObject *found = self.find(producer_id)
        return None if found == NULL else <object> found

    def __getitem__(self, producer_id):
        return self.owned[producer_id]

    def __setitem__(self, producer_id, ProducerEntry entry not None):
        if entry.producer_id != producer_id:
            raise ValueError(f"{entry} is not the producer {producer_id}")
        known = self.owned.get(producer_id)
        self.owned[producer_id] = entry
        if known is None:
            self.insert(entry)
        elif known is not entry:
            self.rebuild(self.capacity)

    def remove_all(self, producer_ids):
        """Removes the entries of the producers with these ids. An entry must exist for each id."""
        gone = [self.owned.pop(producer_id) for producer_id in producer_ids]
        if gone:
            self.rebuild(self.capacity)  # before `gone`, which owns what the slots borrow, is deleted

    def clear(self):
        owned, self.owned = self.owned, {}
        self.capacity = 0
        free(self.slots)
        self.slots = NULL

    def values(self):
        return self.owned.values()

    def items(self):
        return self.owned.items()

    def __contains__(self, producer_id):
        return producer_id in self.owned

    def __iter__(self):
        return iter(self.owned)

    def __len__(self):
        return len(self.owned)


cdef inline Py_ssize_t slot_of(int64_t producer_id, Py_ssize_t capacity) noexcept nogil:
    """Returns the index of the first slot in which the entry of a producer may be.

    A multiplication spreads the ids, because producers get them in consecutive blocks.
    """
    return <Py_ssize_t> ((<uint64_t> producer_id * 0x9E3779B97F4A7C15u) >> 32) & (capacity - 1)
