"""The leader's view of its followers: the positions of their fetches, and the registrations of their brokers."""


cdef class PeerState:
    """The registration of another broker: its epoch, and `is_active`. Written only by the thread that owns it.

    An active broker is neither fenced nor in a controlled shutdown.
    """

    def __cinit__(self):
        self.epoch = NO_BROKER_EPOCH


cdef class ReplicaState:
    """Base of RemoteReplica: the position and the lag of one follower, as C fields that compiled code and Python share.

    Used only by the thread that owns it. Times are milliseconds of a monotonic clock.
    """

    def __init__(self, int32_t broker_id, PeerState peer not None):
        self.broker_id = broker_id
        self.peer = peer

    cdef void note_fetch(self, int64_t fetch_offset, int64_t log_start_offset, int64_t leader_end_offset,
                         int64_t monotonic_ms, int64_t broker_epoch) noexcept nogil:
        if fetch_offset >= leader_end_offset:
            if monotonic_ms > self.last_caught_up_ms:
                self.last_caught_up_ms = monotonic_ms
        elif fetch_offset >= self.last_fetch_leader_end_offset:
            if self.last_fetch_ms > self.last_caught_up_ms:
                self.last_caught_up_ms = self.last_fetch_ms
        self.log_start_offset = log_start_offset
        self.log_end_offset = fetch_offset
        if leader_end_offset > self.last_fetch_leader_end_offset:
            self.last_fetch_leader_end_offset = leader_end_offset
        self.last_fetch_ms = monotonic_ms
        self.broker_epoch = broker_epoch

    cdef bint was_caught_up(self, int64_t leader_end_offset, int64_t monotonic_ms, int64_t lag_max_ms) noexcept nogil:
        return self.log_end_offset == leader_end_offset or monotonic_ms - self.last_caught_up_ms <= lag_max_ms

    cdef bint is_acceptable(self, int64_t broker_epoch) noexcept nogil:
        return self.peer.is_active and (broker_epoch == NO_BROKER_EPOCH or broker_epoch == self.peer.epoch)

    cdef bint refuses_epoch(self, int64_t broker_epoch) noexcept nogil:
        return broker_epoch != NO_BROKER_EPOCH and self.peer.epoch > broker_epoch

    def record_fetch(self, int64_t fetch_offset, int64_t log_start_offset, int64_t leader_end_offset,
                     int64_t monotonic_ms, int64_t broker_epoch):
        """Records a follower's fetch from `fetch_offset` while the leader's log ended at `leader_end_offset`.

        If the fetch is from that end, the follower is caught up now. If it is from the end that the log had at the
        follower's previous fetch, the follower was caught up at the time of that fetch. Thus a follower that keeps pace
        with a steady writer is in sync, although it never reaches the moving end.
        """
        self.note_fetch(fetch_offset, log_start_offset, leader_end_offset, monotonic_ms, broker_epoch)

    def is_caught_up(self, int64_t leader_end_offset, int64_t monotonic_ms, int64_t lag_max_ms):
        """Returns whether the follower has reached the leader's log end now or within the last `lag_max_ms`."""
        return self.was_caught_up(leader_end_offset, monotonic_ms, lag_max_ms)

    def is_outdated(self, int64_t broker_epoch):
        """Returns whether a fetch with this broker epoch was sent before the broker's last registration (KIP-903)."""
        return self.refuses_epoch(broker_epoch)
