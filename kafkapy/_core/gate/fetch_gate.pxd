# Fetch without the interpreter lock.
from kafkapy._core.bytes.frame_cursor cimport FrameCursor, RequestHead
from kafkapy._core.gate.fetch_request cimport FetchMoment
from kafkapy._core.gate.gate_context cimport GateContext
from kafkapy._core.gate.request_versions cimport FIRST_FETCH_WITH_BATCHES
from kafkapy._core.reactor.reactor_state cimport ConnectionState

cdef enum:
    LOWEST_GATED_FETCH = FIRST_FETCH_WITH_BATCHES
    HIGHEST_GATED_FETCH = 18

# Serves one fetch; the cursor is after the request header. Returns GATE_ANSWERED; GATE_DECLINED with nothing changed;
# or GATE_WAITS with nothing changed but the positions of a follower, if there is less to read than the client asks for.
# With GATE_WAITS `gate.reads[:gate.read_count]` are the partitions that may grow, `gate.max_wait_ms` is the client's
# limit, and `gate.read_replica_id` is the follower that fetches, or CONSUMER. Except on arrival, each of them has noted
# that a fetch waits (PartitionState.watch). With GATE_DECLINED `gate.has_lost_partition` is set if the gate found a
# partition that this broker does not serve.
cdef int fetch_answer(GateContext gate, ConnectionState *connection, const RequestHead *head, FrameCursor *cursor,
                      FetchMoment moment) noexcept nogil
