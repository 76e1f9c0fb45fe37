"""Produce requests with acks=all that wait in the gate for the high watermark.

    connection -> AwaitedProduce (DeferredAnswer) -> next -> next          in the order of its requests
    partition  -> AwaitedOffset -> next -> next                            by offset
    GateContext.oldest_awaited -> later -> later                           in the order of their arrival
"""
from libc.stdint cimport int16_t, int32_t, int64_t

from kafkapy._core.broker_state.partition_state cimport AwaitedOffset, PartitionState
from kafkapy._core.gate.gate_context cimport AwaitedProduce, GateContext
from kafkapy._core.reactor.reactor_state cimport ConnectionState

# Returns an answer of the connection, with `parts` partitions and room for `answer_size` bytes, behind the answers that
# it waits for already; NULL if memory is short. The caller writes the answer and calls `await_offset` for each
# partition, then `begin_wait`.
cdef AwaitedProduce *await_produce(GateContext gate, ConnectionState *connection, int16_t version, int parts,
                                   size_t answer_size, int64_t received_us) noexcept nogil
# Makes the request wait until the partition's high watermark reaches `required_offset`, unless it has reached it
# already (`is_complete`). `index` numbers the partitions of the request.
cdef void await_offset(AwaitedProduce *awaited, int index, PartitionState partition, int64_t required_offset,
                       int32_t error_at, bint is_complete) noexcept nogil
# Starts the wait for the deadline, after the answer was written and all partitions were added.
cdef void begin_wait(GateContext gate, AwaitedProduce *awaited, int64_t answer_size, int32_t timeout_ms) noexcept nogil
# Completes the requests whose records in the partition are below its high watermark.
cdef void complete_reached(GateContext gate, PartitionState partition) noexcept nogil
# Completes, with an error, all requests that wait for the partition.
cdef void fail_awaited(GateContext gate, PartitionState partition, int16_t error) noexcept nogil
# Completes the requests whose deadline has come, or all. Returns the next deadline, 0 if nothing waits.
cdef int64_t expire_produces(GateContext gate, int64_t monotonic_ms, bint at_once) noexcept nogil
# Removes the first answer of the connection, which has been sent, and sends the following ones.
cdef void finish_first(GateContext gate, ConnectionState *connection) noexcept nogil
cdef void free_awaited(GateContext gate, AwaitedProduce *awaited) noexcept nogil
