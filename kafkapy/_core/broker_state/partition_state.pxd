"""What the gate knows of a partition, and how it finds one by the bytes of a request.

    PartitionTable: (topic name or topic id, partition) -> PartitionState; open addressing, linear probing
"""
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from kafkapy._core.broker_state.log_state cimport LogState
from kafkapy._core.broker_state.topic_counters cimport TopicCounters


cdef class PartitionState:
    cdef public LogState log
    cdef public TopicCounters counters   # of its topic; shared by the topic's partitions, and never None
    cdef public bint is_leader
    cdef public int32_t leader_epoch
    cdef public bint is_gated            # the gate is open; written by Python only, see Partition
    cdef public bint is_watched          # a delayed fetch may wait for it
    cdef readonly int append_errno       # of the gate's failed append, until Python was told; 0: none
    cdef bint is_waking                  # in the gate's list for Python
    cdef int64_t last_request            # serial of the last request that named it
    # What this wake-up gathered; gathered_count is 0 outside phase 1.
    cdef int gathered_count
    cdef int first_gathered              # indexes of GateContext.batches
    cdef int last_gathered
    cdef int64_t gathered_end_offset     # behind the last batch
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

    # *Borrows*: the state that was put there (a PartitionState; other tables have their own), or NULL.
    cdef PyObject *find(self, const uint8_t *key, Py_ssize_t length, int32_t partition) noexcept nogil
    cdef void place(self, PartitionSlot *slot) noexcept nogil
    cdef int reserve(self) except -1
    cdef int put(self, bytes key, int32_t partition, object state) except -1
    cdef int drop(self, bytes key, int32_t partition) except -1
