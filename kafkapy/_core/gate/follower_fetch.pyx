"""Fetches of followers in the gate: updates the leader's state of the follower, and the high watermark.

A follower's fetch acknowledges all records below its offset, and may increase the high watermark. The gate then
completes its produce requests that waited for this, and notifies Python if a request in a purgatory may have waited for
it. If a follower may be added to the ISR, the gate declines the fetch, and Python proposes the follower to the
controller. Partition.fetch_records does the same on the Python path.
"""

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkapy._core.broker_state.log_state cimport LogState
from kafkapy._core.broker_state.replica_state cimport NO_BROKER_EPOCH, ReplicaState
from kafkapy._core.bytes.primitives cimport load_int32, load_int64
from kafkapy._core.gate.awaited_produce cimport complete_reached
from kafkapy._core.gate.fetch_request cimport CONSUMER, FETCH_ON_ARRIVAL, REPLICA_STATE_BYTES
from kafkapy._core.reactor.reactor_state cimport GATE_DECLINED


cdef void find_replica_state(FetchRequest *request, const FrameCursor *cursor) noexcept nogil:
    """Reads the follower's id and broker epoch from the end of the request, where followers put them as a tagged field.

    These two fields are read before the partitions, because they decide how the partitions are read. `take_rest`
    verifies later that the end of the request is this tagged field. A request without the field counts as a consumer's.
    The gate declines a request with other tagged fields.
    """
    cdef const uint8_t *at
    request.replica_id = CONSUMER
    request.replica_epoch = NO_BROKER_EPOCH
    if cursor.end - cursor.pos < REPLICA_STATE_BYTES:
        return
    at = cursor.data + cursor.end - REPLICA_STATE_BYTES
    # one tagged field: number 1, 13 bytes, of which the last one is an empty tag section
    if at[0] == 1 and at[1] == 1 and at[2] == 13 and at[15] == 0 and load_int32(at + 3) > CONSUMER:
        request.replica_id = load_int32(at + 3)
        request.replica_epoch = load_int64(at + 7)


cdef bint admits_follower(const FetchRequest *request, FetchedPartition *read, PartitionState partition,
                          const FetchPlace *place) noexcept nogil:
    """Stores the follower's state and its offsets in `read`. Returns False if the gate declines the request.

    The gate declines the fetch of a broker that has no replica of the partition or sends an outdated broker epoch, and
    of a follower that may now enter the ISR.
    """
    read.replica = partition.find_replica(request.replica_id)
    read.fetch_offset = place.fetch_offset
    read.follower_start_offset = place.log_start_offset
    return read.replica != NULL and accepts_fetch_of(partition, <ReplicaState> read.replica, place.fetch_offset,
                                                     request.replica_epoch)


cdef inline bint accepts_fetch_of(PartitionState partition, ReplicaState replica, int64_t fetch_offset,
                                  int64_t broker_epoch) noexcept nogil:
    return not (replica.refuses_epoch(broker_epoch) or partition.may_enter_isr(replica, fetch_offset, broker_epoch))


cdef bint withholds(GateContext gate, const FetchedPartition *read, PartitionState partition) noexcept nogil:
    """Returns whether the follower gets no records of the partition now, because replication is throttled (KIP-73).

    The Python path for this is Partition.fetch_records.
    """
    return withholds_from(gate, partition, <ReplicaState> read.replica)


cdef inline bint withholds_from(GateContext gate, PartitionState partition, ReplicaState replica) noexcept nogil:
    return partition.withholds_from(replica, gate.shared.monotonic_ms)


cdef void count_sent(GateContext gate, const FetchedPartition *read, PartitionState partition) noexcept nogil:
    partition.count_replicated(read.length, gate.shared.monotonic_ms)


cdef void record_follower(GateContext gate, const FetchRequest *request, const FetchedPartition *read,
                          PartitionState partition, ReplicaState replica, LogState log) noexcept nogil:
    """Stores what a follower's fetch says about one partition, and advances the high watermark if possible.

    The fetch offset and the follower's log start offset are stored in `replica`, the leader's state of the follower.
    The Python path for this is Partition._update_follower.
    """
    cdef bint is_risen
    cdef bint is_start_moved = replica.log_start_offset != read.follower_start_offset
    replica.note_fetch(read.fetch_offset, read.follower_start_offset, log.log_end_offset, gate.shared.monotonic_ms,
                       request.replica_epoch)
    is_risen = partition.advance_high_watermark(log, gate.shared.monotonic_ms)
    if is_risen:
        complete_reached(gate, partition)
    if partition.is_commit_watched and (is_risen or is_start_moved):
        gate.wake(partition)


cdef inline void record_read(GateContext gate, const FetchRequest *request, const FetchedPartition *read,
                             PartitionState partition) noexcept nogil:
    record_follower(gate, request, read, partition, <ReplicaState> read.replica, partition.log)


cdef void record_positions(GateContext gate, const FetchRequest *request, int count, int verdict) noexcept nogil:
    """Records the follower's position in each partition of its fetch.

    Does nothing for a consumer, for a fetch that has waited and is presented to the gate again, and if `verdict` is
    GATE_DECLINED, which means that Python has to serve the fetch.
    """
    cdef int index
    if request.replica_id == CONSUMER or request.moment != FETCH_ON_ARRIVAL or verdict == GATE_DECLINED:
        return
    for index in range(count):
        record_read(gate, request, &gate.reads[index], <PartitionState> gate.reads[index].partition)
