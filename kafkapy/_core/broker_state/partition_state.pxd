"""The fields of a partition that the gate reads, and the table that finds a partition by the bytes of a request.

    PartitionTable: (topic name or topic id, partition) -> PartitionState; open addressing, linear probing
"""
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from kafkapy._core.broker_state.log_state cimport LogState
from kafkapy._core.broker_state.topic_counters cimport TopicCounters


cdef class PartitionState:
    cdef public LogState log
    cdef public TopicCounters counters   # shared by the partitions of a topic; never None
    cdef public bint is_leader
    cdef public int32_t leader_epoch
    cdef public bint is_gated            # the gate may serve it; written by Partition only
    cdef public bint is_watched          # a fetch may wait for it
    # errno of the gate's failed append until Python is notified; 0 means no failure
    cdef readonly int append_errno
    cdef bint is_waking                  # the partition is in the gate's list for Python
    cdef int64_t last_request_serial     # of the last request that named the partition
    # The batches gathered in this wake-up; gathered_count is 0 outside phase 1.
    cdef int gathered_count
    cdef int first_gathered              # indexes of GateContext.batches
    cdef int last_gathered
    cdef int64_t gathered_end_offset     # offset after the last batch
    cdef int64_t gathered_bytes


cdef struct PartitionSlot:
    const uint8_t *key                   # borrowed from a key of `owned`; NULL: empty
    Py_ssize_t length
    int32_t partition
    uint64_t hash
    PyObject *state                      # borrowed from a value of `owned`


cdef class PartitionTable:
    cdef dict owned                      # (key bytes, partition) -> (key, state)
    cdef PartitionSlot *slots
    cdef Py_ssize_t capacity             # a power of two
    cdef Py_ssize_t used

    # *Borrows*: returns the object stored under the key, such as a PartitionState, or NULL.
    cdef PyObject *find(self, const uint8_t *key, Py_ssize_t length, int32_t partition) noexcept nogil
    cdef void place(self, PartitionSlot *slot) noexcept nogil
    cdef int reserve(self) except -1
    cdef int put(self, bytes key, int32_t partition, object state) except -1
    cdef int drop(self, bytes key, int32_t partition) except -1
