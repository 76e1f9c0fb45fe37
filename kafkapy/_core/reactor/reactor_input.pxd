# Phase 1: sockets -> slabs -> frames -> gate or Python queue.
from kafkapy._core.reactor.reactor_state cimport ConnectionState, ReactorState

cdef void input_serve(ReactorState *state, ConnectionState *connection) noexcept nogil
cdef void input_advance(ReactorState *state, ConnectionState *connection) noexcept nogil
cdef bint intake_is_blocked(ReactorState *state) noexcept nogil
# Serves the connections that have unprocessed input.
cdef void input_serve_queued(ReactorState *state) noexcept nogil
