# Produce without the interpreter lock: a request is gathered, then all of a wake-up are finished together.
from kafkapy._core.bytes.frame_cursor cimport FrameCursor, RequestHead
from kafkapy._core.gate.gate_context cimport GateContext
from kafkapy._core.reactor.reactor_state cimport RequestFrame

cdef enum:
    LOWEST_GATED_PRODUCE = 3
    HIGHEST_GATED_PRODUCE = 13

# A GATE_ verdict: gathered, or declined with nothing changed. The cursor stands behind the request header.
cdef int produce_gather(GateContext gate, RequestFrame *frame, const RequestHead *head, FrameCursor *cursor) noexcept nogil
# Writes, accounts for and answers what was gathered.
cdef void produce_finish(GateContext gate) noexcept nogil
