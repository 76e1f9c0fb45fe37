"""The fields of a partition that the gate uses, and the table that finds a partition by the bytes of a request.

    PartitionTable: (topic name or topic id, partition) -> PartitionState; open addressing, linear probing
    PartitionState -> ReplicaState: the followers of a partition that this broker leads
                   -> AwaitedOffset: produce requests of the gate that wait for the high watermark, by offset
"""
from cpython.ref cimport PyObject
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t

from kafkapy._core.broker_state.client_notes cimport ClientNotes
from kafkapy._core.broker_state.log_state cimport LogState
from kafkapy._core.broker_state.quota_sensor cimport QuotaSensor
from kafkapy._core.broker_state.replica_state cimport ReplicaState
from kafkapy._core.broker_state.topic_counters cimport TopicCounters

# One partition of a produce request that waits until the high watermark reaches an offset. The gate owns it.
cdef struct AwaitedOffset:
    PyObject *partition                  # borrowed PartitionState; NULL: no longer in a list
    AwaitedOffset *previous              # of the same partition, by offset
    AwaitedOffset *next
    void *owner                          # the request
    int64_t required_offset
    int32_t error_at                     # position of the error code in the request's answer
    int16_t error


cdef class PartitionState:
    cdef public LogState log
    cdef public TopicCounters counters   # shared by the partitions of a topic; never None
    cdef public bint is_leader
    cdef public int32_t leader_epoch
    cdef int32_t topic_number            # by which the gate knows the topic; 0 outside the gate
    cdef public bint is_gated            # the gate may serve fetches from it; written by Partition only
    cdef public bint is_for_clients      # clients may append to it: its topic is not internal
    cdef public bint is_watched          # a request in a purgatory may wait for an append
    # Until then the gate serves fetches whose first batch is larger than they permit; Python notes the next one.
    cdef public int64_t large_fetch_noted_until_ms
    cdef public bint is_commit_watched   # a request in a purgatory may wait for the high watermark, or for a follower
    # The followers, if this broker leads the partition. `replica_count` is 0 without other replicas.
    cdef readonly dict remote_replicas   # broker id -> ReplicaState
    cdef PyObject **replicas             # borrowed from `remote_replicas`
    cdef int replica_count
    cdef int isr_size                    # of the ISR that the controller confirmed last
    cdef int maximal_isr_size            # with the replicas that a proposal adds
    cdef bint is_isr_in_flight           # a proposed ISR is not confirmed yet
    cdef public int32_t min_insync_replicas
    cdef public int64_t leader_epoch_start_offset
    cdef public int64_t replica_lag_max_ms
    cdef public ClientNotes client_notes # of the audit; None: the broker does not count the partition's records
    cdef public QuotaSensor leader_throttle  # of what followers read; None: the partition is not throttled here
    cdef AwaitedOffset *first_awaited
    cdef AwaitedOffset *last_awaited
    # errno of the gate's failed append until Python is notified; 0 means no failure
    cdef readonly int append_errno
    cdef bint is_waking                  # the partition is in the gate's list for Python
    cdef int64_t last_request_serial     # of the last request that named it; twice: declined
    # The batches gathered in this wake-up; gathered_count is 0 while the reactor's thread runs Python.
    cdef int gathered_count
    cdef int first_gathered              # indexes of GateContext.batches
    cdef int last_gathered
    cdef int64_t gathered_end_offset     # offset after the last batch
    cdef int64_t gathered_bytes

    # *Borrows*: returns the ReplicaState of a follower, or NULL.
    cdef PyObject *find_replica(self, int32_t broker_id) noexcept nogil
    # `min.insync.replicas`, but at most the number of replicas.
    cdef int minimal_isr_size(self) noexcept nogil
    # Increases the high watermark if possible, and returns whether it rose.
    cdef bint advance_high_watermark(self, LogState log, int64_t monotonic_ms) noexcept nogil
    # Returns whether a follower outside of the ISR gets no records now, because the rate of throttled partitions is
    # exceeded (KIP-73).
    cdef bint withholds_from(self, ReplicaState replica, int64_t monotonic_ms) noexcept nogil
    # Counts what a follower reads, if the partition is throttled.
    cdef void count_replicated(self, int64_t size, int64_t monotonic_ms) noexcept nogil
    # Notes that a fetch waits for the partition.
    cdef void watch(self, bint is_from_follower) noexcept nogil
    # Returns whether a replica that fetches from `fetch_offset` with this broker epoch may be added to the ISR.
    cdef bint may_enter_isr(self, ReplicaState replica, int64_t fetch_offset, int64_t broker_epoch) noexcept nogil


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
    # The number of changes. As long as it stays the same, what `find` has returned is valid.
    cdef int64_t changes

    # *Borrows*: returns the object stored under the key, such as a PartitionState, or NULL.
    cdef PyObject *find(self, const uint8_t *key, Py_ssize_t length, int32_t partition) noexcept nogil
    cdef void place(self, PartitionSlot *slot) noexcept nogil
    # Returns the stored objects, in no order. Any thread that holds the interpreter lock may call it.
    cdef list listed(self)
    cdef int reserve(self) except -1
    cdef int put(self, bytes key, int32_t partition, object state) except -1
    cdef int drop(self, bytes key, int32_t partition) except -1
