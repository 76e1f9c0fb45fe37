# Connections and frames: Python objects around the C state.
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkapy._core.reactor.reactor_state cimport ConnectionState, ReactorState
from kafkapy._core.bytes.slab cimport Slab

# Puts one answer into the output. A failure closes the connection, since a part may be in the output already.
cdef int write_answer(ReactorState *shared, ConnectionState *connection, chunks) except -1

# Releases the Python objects whose bytes were sent.
cdef int release_garbage(ReactorState *shared) except -1

cdef class Connection:
    cdef ConnectionState *native    # owned
    cdef ReactorState *shared       # the state of `reactor`, which keeps it alive
    cdef object reactor
    cdef readonly str id
    cdef readonly object listener
    cdef readonly str peer_host
    cdef readonly int peer_port
    cdef public object state        # the session: principal, name and version of the client
    cdef str close_text
    cdef object gate_rights         # keeps alive what the gate knows about the client
    cdef object gate_limits
    cdef object unmute_timer        # ends the mute; None if the connection is not muted
    cdef int64_t muted_until_ms
    cpdef respond(self, chunks)
    # Removes the marks of the reactor's queues, which the caller has emptied.
    cdef void forget_queues(self) noexcept

cdef class Request:
    cdef readonly Connection connection
    cdef Slab *slab                 # pinned
    cdef uint8_t *data
    cdef bint owns_data             # `data` was allocated for this request, and `slab` is NULL
    cdef int32_t size
    cdef readonly int64_t received_ms
    cdef readonly bint has_invalid_size  # the client is not authenticated, and sent no valid size prefix
    cdef readonly bint waits        # a fetch that the gate serves once there is more to read (GATE_WAITS)
    cdef public int64_t waited_ms   # how long it was held for the gate before the gate declined it

cdef class OutgoingConnection(Connection):
    cdef object on_response         # called with each response
    cdef object on_closed           # called once with the connection
    cdef int deliver(self, Request response) except -1
