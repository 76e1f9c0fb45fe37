# Fetch without the interpreter lock: answered at once, or declined.
from kafkapy._core.frame_cursor cimport FrameCursor, RequestHead
from kafkapy._core.gate_context cimport GateContext
from kafkapy._core.reactor_state cimport RequestFrame

cdef enum:
    LOWEST_GATED_FETCH = 4
    HIGHEST_GATED_FETCH = 18

# A GATE_ verdict: answered, or declined with nothing changed. The cursor stands behind the request header.
cdef int fetch_answer(GateContext gate, RequestFrame *frame, const RequestHead *head, FrameCursor *cursor) noexcept nogil
