# Fetch without the interpreter lock: answered at once, or declined.
from kafkapy._core.bytes.frame_cursor cimport FrameCursor, RequestHead
from kafkapy._core.gate.gate_context cimport GateContext
from kafkapy._core.reactor.reactor_state cimport ConnectionState

cdef enum:
    LOWEST_GATED_FETCH = 4
    HIGHEST_GATED_FETCH = 18

cdef enum:
    FETCH_WAITS = -1                     # beside the GATE_ verdicts

cdef enum FetchLook:
    FETCH_AT_ONCE = 0                    # when it comes
    FETCH_LATER = 1                      # while it waits
    FETCH_AT_DEADLINE = 2                # it waits no longer

# GATE_ANSWERED; or GATE_DECLINED with nothing changed; or FETCH_WAITS, likewise: it asks for more than there is, and
# `reads[:read_count]` are the partitions that may grow. At its deadline it is answered with what there is. The cursor
# stands behind the request header.
cdef int fetch_answer(GateContext gate, ConnectionState *connection, const RequestHead *head, FrameCursor *cursor,
                      FetchLook look) noexcept nogil
