"""The idempotent producers of one log (KIP-98), found by id with or without the interpreter lock.

    ProducerTable: open addressing, linear probing, at most half full; a slot borrows what the dictionary owns
    ProducerEntry: the last five batches in a ring, oldest first
"""
from cpython.ref cimport PyObject
from libc.stdint cimport int16_t, int32_t, int64_t

cdef enum:
    BATCHES_RETAINED = 5
    LARGEST_SEQUENCE = 2147483647

cdef struct ProducedBatch:               # both ends inclusive
    int32_t first_sequence
    int32_t last_sequence
    int64_t first_offset
    int64_t last_offset
    int64_t timestamp


cdef class ProducerEntry:
    cdef readonly int64_t producer_id
    cdef public int16_t producer_epoch
    cdef public int32_t coordinator_epoch
    cdef public int64_t last_timestamp
    cdef public int64_t transaction_first_offset     # -1 outside a transaction
    cdef ProducedBatch ring[BATCHES_RETAINED]        # all of them have the epoch `producer_epoch`
    cdef int oldest
    cdef int count
    cdef bint is_pending                 # the gate has gathered batches of the producer that are not written yet
    cdef int32_t pending_sequence        # the last sequence of these batches

    cdef int32_t newest_sequence(self) noexcept nogil
    cdef void push(self, const ProducedBatch *batch) noexcept nogil
    # Returns whether a batch of this epoch and sequence, outside a transaction, is the next batch of the producer.
    cdef bint is_next_batch(self, int16_t producer_epoch, int32_t first_sequence) noexcept nogil


cdef class ProducerTable:
    cdef dict owned                      # producer id -> ProducerEntry
    cdef PyObject **slots
    cdef Py_ssize_t capacity             # a power of two, or 0
    # *Borrows*: returns the entry, or NULL.
    cdef PyObject *find(self, int64_t producer_id) noexcept nogil
    cdef int insert(self, ProducerEntry entry) except -1
    cdef int rebuild(self, Py_ssize_t capacity) except -1
