"""Permissions and quotas in the gate, which serves only the clients whose permissions and quotas Python has looked up.

Python attaches them to the connection (`ConnectionState.gate_rights`, `gate_limits`). The gate counts the changes of
ACLs and the changes of quotas. Permissions and quotas have a generation, which is the value of this count when they
were looked up. They are valid until the count changes. If a client is not known, not permitted, or over its quota, the
gate changes nothing and leaves the request to Python. Python then decides, and attaches the permissions and quotas that
it has looked up to the connection.
"""

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport realloc
from libc.string cimport memcmp

from kafkapy._core.broker_state.quota_sensor cimport QuotaSensor
from kafkapy._core.bytes.frame_cursor cimport expect_no_tags, skip_plain_string, take_int16
from kafkapy._core.reactor.reactor_state cimport ReactorState, monotonic_us, prefetch

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
    gate.is_over_time = False
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
    """Returns whether `limits` are valid and belong to the client id in a request.

    The client id is the `length` bytes at `client_id`, or null if `length` is negative. If the result is True, sets
    `gate.is_over_time`, which is true if the client has used up its quota of request time.
    """
    prefetch(<PyObject *> limits.request)
    prefetch(<PyObject *> limits.produce)
    if length < 0:
        length = 0  # a client id that is null counts as an empty one
    if (limits.generation != gate.limits_generation or limits.id_length != length
            or memcmp(limits.id_bytes, client_id, <size_t> length) != 0):
        return False
    if limits.limits_request:
        gate.is_over_time = not limits.request.admits(0, gate.shared.monotonic_ms)
    return True


cdef void note_work(void *context, ConnectionState *connection, int64_t weight) noexcept nogil:
    if connection.gate_limits != NULL and weight > 0:
        note_client(<GateContext> context, <ClientLimits> connection.gate_limits, connection.frame.is_exempt, weight)


cdef inline void note_client(GateContext gate, ClientLimits limits, bint is_exempt, int64_t weight) noexcept nogil:
    if is_exempt:
        if limits.measures_exempt:
            note_sensor(gate, limits.exempt, weight)
    elif limits.limits_request:
        note_sensor(gate, limits.request, weight)


cdef void note_sensor(GateContext gate, QuotaSensor sensor, int64_t weight) noexcept nogil:
    cdef void *grown
    cdef int capacity
    if sensor.pending == 0:
        if gate.timed_count == gate.timed_capacity:
            capacity = gate.timed_capacity * 2 if gate.timed_capacity else SMALLEST_CAPACITY
            grown = realloc(gate.timed, <size_t> capacity * sizeof(PyObject *))
            if grown == NULL:
                return  # the time of this work is not counted
            gate.timed = <PyObject **> grown
            gate.timed_capacity = capacity
        gate.timed[gate.timed_count] = <PyObject *> sensor
        gate.timed_count += 1
    sensor.pending += weight


cdef void charge_times(void *context, int64_t now_us) noexcept nogil:
    charge_sensors(<GateContext> context, now_us)


cdef void charge_sensors(GateContext gate, int64_t now_us) noexcept nogil:
    cdef ReactorState *shared = gate.shared
    cdef double percent
    cdef int index
    if gate.timed_count == 0:
        return  # no client with limits has work in this span
    if now_us == 0:
        now_us = monotonic_us()
    percent = (now_us - shared.span_from_us) * PERCENT_PER_US / shared.span_weight
    for index in range(gate.timed_count):
        charge_time(<QuotaSensor> gate.timed[index], percent, shared.monotonic_ms)
    gate.timed_count = 0
    shared.span_from_us = now_us
    shared.span_weight = 0


cdef inline void charge_time(QuotaSensor sensor, double percent, int64_t monotonic_ms) noexcept nogil:
    sensor.add(percent * sensor.pending, monotonic_ms)
    sensor.pending = 0
