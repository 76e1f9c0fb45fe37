# Phase 3: answers -> sockets.
from kafkapy._core.reactor.reactor_state cimport ConnectionState, ReactorState

cdef void output_flush(ReactorState *state, ConnectionState *connection) noexcept nogil
