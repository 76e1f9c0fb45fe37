"""Fetch sessions (KIP-227) as server/fetch_session and the gate's fetch_gate share them.

    FetchSessionTable: session id -> FetchSessionState, least recently used first
    FetchSessionState -> SessionPartitions: (topic name or id, partition) -> FetchPartitionState, in reading order
"""
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkapy._core.bytes.linked_order cimport Linked, LinkedOrder
from kafkapy._core.broker_state.partition_state cimport PartitionTable

# A client's place in a partition, as its fetch request states it.
cdef struct FetchPlace:
    int64_t fetch_offset
    int64_t max_bytes
    int64_t log_start_offset             # the log start offset of a follower
    int32_t current_leader_epoch
    int32_t last_fetched_epoch


cdef class FetchPartitionState(Linked):
    cdef FetchPlace place
    cdef public int64_t sent_high_watermark      # sent to the client last; used within a session only
    cdef public int64_t sent_log_start_offset
    cdef bytes topic_key                 # its key in SessionPartitions; `topic` points into it
    cdef const uint8_t *topic
    cdef int32_t topic_length
    cdef int32_t index
    # the place in the request that the gate reads, valid if `asked_by` is the request's serial
    cdef FetchPlace asked
    cdef int64_t asked_by
    # the partition in the gate's table, *borrowed*, valid while the table's number of changes is `found_at`; or NULL
    cdef PyObject *found
    cdef int64_t found_at


cdef class SessionPartitions(LinkedOrder):
    cdef PartitionTable table
    # *Borrows*: returns the partition, or NULL.
    cdef PyObject *find(self, const uint8_t *topic_key, Py_ssize_t length, int32_t index) noexcept nogil


cdef class FetchSessionState(Linked):
    cdef readonly int32_t session_id
    cdef public int32_t epoch            # the epoch expected next
    cdef public bint is_privileged
    cdef public bint uses_topic_ids
    cdef public bint has_unknown_topics
    cdef public int64_t creation_ms
    cdef public int64_t last_used_ms
    cdef readonly SessionPartitions partitions


cdef class FetchSessionTable(LinkedOrder):
    cdef PartitionTable table            # the key is empty, and the session's id is the partition number
    # *Borrows*: returns the session, or NULL.
    cdef PyObject *find(self, int32_t session_id) noexcept nogil
    # Makes the session the most recently used one.
    cdef void use(self, FetchSessionState session, int64_t monotonic_ms) noexcept nogil
