# Fetches of followers: who fetches, and the leader's view of the follower.
from kafkapy._core.broker_state.fetch_session_state cimport FetchPlace
from kafkapy._core.broker_state.partition_state cimport PartitionState
from kafkapy._core.bytes.frame_cursor cimport FrameCursor
from kafkapy._core.gate.fetch_request cimport FetchRequest
from kafkapy._core.gate.gate_context cimport FetchedPartition, GateContext

# Reads the follower's id and broker epoch from the end of the request.
cdef void find_replica_state(FetchRequest *request, const FrameCursor *cursor) noexcept nogil
# Finds the follower that fetches. Returns False if Python has to refuse it, or to propose it for the ISR.
cdef bint admits_follower(const FetchRequest *request, FetchedPartition *read, PartitionState partition,
                          const FetchPlace *place) noexcept nogil
# Returns whether the follower gets no records of the partition now, because replication is throttled.
cdef bint withholds(GateContext gate, const FetchedPartition *read, PartitionState partition) noexcept nogil
# Counts the records that are sent to a follower, if replication of the partition is throttled.
cdef void count_sent(GateContext gate, const FetchedPartition *read, PartitionState partition) noexcept nogil
# Records the positions of a follower whose fetch has arrived and is not for Python.
cdef void record_positions(GateContext gate, const FetchRequest *request, int count, int verdict) noexcept nogil
