# Phase 3: answers -> sockets.
from kafkapy._core.reactor.reactor_state cimport ConnectionState, ReactorState

cdef void output_flush(ReactorState *state, ConnectionState *connection) noexcept nogil
# Writes the output of all connections that have some.
cdef void output_flush_queued(ReactorState *state) noexcept nogil
