# Produce without the interpreter lock: requests are gathered, and those of one wake-up are finished together.
from kafkapy._core.bytes.frame_cursor cimport FrameCursor, RequestHead
from kafkapy._core.gate.gate_context cimport GateContext
from kafkapy._core.gate.request_versions cimport FIRST_PRODUCE_WITH_BATCHES
from kafkapy._core.reactor.reactor_state cimport RequestFrame

cdef enum:
    LOWEST_GATED_PRODUCE = FIRST_PRODUCE_WITH_BATCHES
    HIGHEST_GATED_PRODUCE = 13

# Gathers a request whose header the cursor has passed. Returns GATE_GATHERED, or GATE_DECLINED with nothing changed.
cdef int produce_gather(GateContext gate, RequestFrame *frame, const RequestHead *head,
                        FrameCursor *cursor) noexcept nogil
# Writes the gathered batches, updates logs and producers, and answers the requests.
cdef void produce_finish(GateContext gate) noexcept nogil
