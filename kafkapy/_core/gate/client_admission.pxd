# Permissions and quotas of clients in the gate. Leaf functions, which change only counters and sensors.
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkapy._core.broker_state.client_limits cimport ClientLimits
from kafkapy._core.broker_state.client_rights cimport ClientRights
from kafkapy._core.broker_state.partition_state cimport PartitionState
from kafkapy._core.bytes.frame_cursor cimport FrameCursor
from kafkapy._core.gate.gate_context cimport GateContext
from kafkapy._core.reactor.reactor_state cimport ConnectionState

# Reads the rest of the request header, and finds the rights and limits of the client. Returns False if Python has to
# serve the request: it cannot be read, or the client is not known yet. Sets `is_over_time`.
cdef bint admits_client(GateContext gate, ConnectionState *connection, FrameCursor *cursor,
                        bint flexible) noexcept nogil
# Notes work (`WorkNote`) of the client of a connection. `charge_times` later charges its time to the client.
cdef void note_work(void *context, ConnectionState *connection, int64_t weight) noexcept nogil
# Divides the time of a span of work among the clients (`WorkSettle`).
cdef void charge_times(void *context, int64_t now_us) noexcept nogil


cdef inline bint may_use(GateContext gate, PartitionState partition, uint8_t bit) noexcept nogil:
    """Returns whether the client may certainly read (MAY_READ) or write (MAY_WRITE) the partition."""
    return gate.rights == NULL or has_right(gate, <ClientRights> gate.rights, partition.topic_number, bit)


cdef inline bint has_right(GateContext gate, ClientRights rights, int32_t topic, uint8_t bit) noexcept nogil:
    gate.rights_used += 1
    return rights.may(topic, bit)


cdef inline bint may_follow(GateContext gate) noexcept nogil:
    """Returns whether the client may certainly fetch as a follower."""
    return gate.rights == NULL or (<ClientRights> gate.rights).may_follow


cdef inline bint admits_produce(GateContext gate, int64_t size) noexcept nogil:
    """Returns whether the quota of the client allows a produce request of this size."""
    return gate.limits == NULL or has_produce_room(gate, <ClientLimits> gate.limits, size)


cdef inline bint has_produce_room(GateContext gate, ClientLimits limits, int64_t size) noexcept nogil:
    return not limits.limits_produce or limits.produce.admits(<double> size, gate.shared.monotonic_ms)


cdef inline void charge_produce(GateContext gate, int64_t size) noexcept nogil:
    if gate.limits != NULL:
        add_produce(gate, <ClientLimits> gate.limits, size)


cdef inline void add_produce(GateContext gate, ClientLimits limits, int64_t size) noexcept nogil:
    if limits.limits_produce:
        limits.produce.add(<double> size, gate.shared.monotonic_ms)


cdef inline bint admits_fetch(GateContext gate, int64_t size) noexcept nogil:
    """Returns whether the quota of the client allows a response of this size to a fetch."""
    return gate.limits == NULL or has_fetch_room(gate, <ClientLimits> gate.limits, size)


cdef inline bint has_fetch_room(GateContext gate, ClientLimits limits, int64_t size) noexcept nogil:
    return not limits.limits_fetch or limits.fetch.admits(<double> size, gate.shared.monotonic_ms)


cdef inline void charge_fetch(GateContext gate, int64_t size) noexcept nogil:
    if gate.limits != NULL:
        add_fetch(gate, <ClientLimits> gate.limits, size)


cdef inline void add_fetch(GateContext gate, ClientLimits limits, int64_t size) noexcept nogil:
    if limits.limits_fetch:
        limits.fetch.add(<double> size, gate.shared.monotonic_ms)


cdef inline int64_t largest_fetch(GateContext gate, int64_t max_bytes) noexcept nogil:
    """Returns `max_bytes`, or the largest response that the client's quota allows at all if that is smaller."""
    if gate.limits == NULL:
        return max_bytes
    return smaller_window(<ClientLimits> gate.limits, max_bytes)


cdef inline int64_t smaller_window(ClientLimits limits, int64_t max_bytes) noexcept nogil:
    if limits.limits_fetch and limits.fetch_window_bytes < max_bytes:
        return limits.fetch_window_bytes
    return max_bytes
