"""The leader's view of its followers. The gate, the compiled code that serves usual requests, and the Python path share
it.

    PartitionState -> ReplicaState (one for each follower) -> PeerState (one for each broker)
"""
from libc.stdint cimport int32_t, int64_t

cdef enum:
    NO_BROKER_EPOCH = -1            # of a follower whose fetch version has no broker epoch


cdef class PeerState:
    cdef public int64_t epoch            # the broker epoch of its registration; -1 if it is fenced or not registered
    cdef public bint is_active           # registered, and neither fenced nor in controlled shutdown


cdef class ReplicaState:
    cdef readonly int32_t broker_id
    cdef readonly PeerState peer
    cdef public int64_t log_start_offset
    cdef public int64_t log_end_offset
    cdef public int64_t last_fetch_leader_end_offset
    cdef public int64_t last_fetch_ms
    cdef public int64_t last_caught_up_ms
    cdef public int64_t broker_epoch     # of its last fetch
    cdef public bint is_in_maximal_isr   # the high watermark waits for it

    # Records a fetch while the leader's log ended at `leader_end_offset`.
    cdef void note_fetch(self, int64_t fetch_offset, int64_t log_start_offset, int64_t leader_end_offset,
                         int64_t monotonic_ms, int64_t broker_epoch) noexcept nogil
    cdef bint was_caught_up(self, int64_t leader_end_offset, int64_t monotonic_ms, int64_t lag_max_ms) noexcept nogil
    # Returns whether the controller would accept the replica in an ISR after a fetch with this broker epoch (KIP-903).
    # Its broker must be active, and must have sent the fetch since its last registration: a broker that was restarted
    # may have lost records that it had fetched before.
    cdef bint is_acceptable(self, int64_t broker_epoch) noexcept nogil
    # Returns whether a fetch with this broker epoch was sent before the broker's last registration (KIP-903).
    cdef bint refuses_epoch(self, int64_t broker_epoch) noexcept nogil
