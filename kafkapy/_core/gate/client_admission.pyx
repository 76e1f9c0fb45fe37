"""Permissions and quotas in the gate: what Python has learned about a client decides whether the gate serves it.

The answers are attached to the connection (`ConnectionState.gate_rights`, `gate_limits`). They are valid while their
generation is that of the gate, which changes with the ACLs and with the quotas. A client that is not known, not
permitted, or over its quota is left to Python with nothing changed; Python decides, and attaches what it has found.
"""

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport realloc
from libc.string cimport memcmp

from kafkapy._core.broker_state.quota_sensor cimport QuotaSensor
from kafkapy._core.bytes.frame_cursor cimport expect_no_tags, skip_plain_string, take_int16
from kafkapy._core.reactor.reactor_state cimport monotonic_us

cdef enum:
    SMALLEST_CAPACITY = 16

cdef double PERCENT_PER_US = 100.0 / 1000000


cdef bint admits_client(GateContext gate, ConnectionState *connection, FrameCursor *cursor,
                        bint flexible) noexcept nogil:
    cdef int32_t length = take_int16(cursor)
    cdef const uint8_t *client_id = cursor.data + cursor.pos
    skip_plain_string(cursor, length)
    expect_no_tags(cursor, flexible)
    gate.rights = gate.limits = NULL
    if cursor.failed:
        return False
    if gate.is_authorizing:
        gate.rights = connection.gate_rights
        if gate.rights == NULL or not is_current(<ClientRights> gate.rights, gate.rights_generation):
            return False
    if gate.is_limiting:
        gate.limits = connection.gate_limits
        return gate.limits != NULL and admits_requests(gate, <ClientLimits> gate.limits, client_id, length)
    return True


cdef inline bint is_current(ClientRights rights, int64_t generation) noexcept nogil:
    return rights.generation == generation


cdef bint admits_requests(GateContext gate, ClientLimits limits, const uint8_t *client_id,
                          int32_t length) noexcept nogil:
    """Returns whether the limits are those of the client id, and its quota of time is not exceeded."""
    if length < 0:
        length = 0  # a client id that is null counts as an empty one
    if (limits.generation != gate.limits_generation or limits.id_length != length
            or memcmp(limits.id_bytes, client_id, <size_t> length) != 0):
        return False
    if limits.limits_request:
        if gate.timed_from_us == 0:
            gate.timed_from_us = monotonic_us()
        return limits.request.admits(0, gate.shared.monotonic_ms)
    return True


cdef void note_time(GateContext gate) noexcept nogil:
    gate.timed_requests += 1
    if gate.limits != NULL:
        note_request(gate, <ClientLimits> gate.limits)


cdef inline void note_request(GateContext gate, ClientLimits limits) noexcept nogil:
    if limits.limits_request:
        note_sensor(gate, limits.request)


cdef void note_sensor(GateContext gate, QuotaSensor sensor) noexcept nogil:
    cdef void *grown
    cdef int capacity
    if sensor.pending == 0:
        if gate.timed_count == gate.timed_capacity:
            capacity = gate.timed_capacity * 2 if gate.timed_capacity else SMALLEST_CAPACITY
            grown = realloc(gate.timed, <size_t> capacity * sizeof(PyObject *))
            if grown == NULL:
                return  # the time of this request is not counted
            gate.timed = <PyObject **> grown
            gate.timed_capacity = capacity
        gate.timed[gate.timed_count] = <PyObject *> sensor
        gate.timed_count += 1
    sensor.pending += 1


cdef void pay_times(GateContext gate) noexcept nogil:
    cdef double percent
    cdef int index
    if gate.timed_count:
        percent = (monotonic_us() - gate.timed_from_us) * PERCENT_PER_US / gate.timed_requests
        for index in range(gate.timed_count):
            pay_time(<QuotaSensor> gate.timed[index], percent, gate.shared.monotonic_ms)
        gate.timed_count = 0
    gate.timed_requests = 0
    gate.timed_from_us = 0


cdef inline void pay_time(QuotaSensor sensor, double percent, int64_t monotonic_ms) noexcept nogil:
    sensor.add(percent * sensor.pending, monotonic_ms)
    sensor.pending = 0
