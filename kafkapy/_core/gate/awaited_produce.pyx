"""Produce requests with acks=all that wait in the gate until the high watermark passes their records.

Each waiting request is one allocation, which contains its whole answer, and no Python object. A request is complete
when all of its partitions are. A partition is complete when the high watermark has reached the records, this broker no
longer leads the partition, or the deadline has come. The answers of a connection are sent in the order of its requests.
If an answer has an error, Python fills in the present leader and counts the error. All other answers are sent without
Python.

A request whose connection was closed stays in the lists of its partitions, and is freed when it is complete. The number
of requests that wait is limited for each connection (DEFERRED_LIMIT).
"""

from cpython.ref cimport PyObject
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from kafkapy._core.bytes.primitives cimport store_int16
from kafkapy._core.gate.request_versions cimport PRODUCE
from kafkapy._core.reactor.reactor_state cimport (
    CLOSE_NO_MEMORY, answer_defer, answer_sent, connection_close, output_commit, output_reserve)

cdef enum:
    REQUEST_TIMED_OUT = 7
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20


cdef AwaitedProduce *await_produce(GateContext gate, ConnectionState *connection, int16_t version, int parts,
                                   size_t answer_size, int64_t received_us) noexcept nogil:
    cdef size_t size = sizeof(AwaitedProduce) + <size_t> parts * sizeof(AwaitedOffset)
    cdef AwaitedProduce *awaited = <AwaitedProduce *> calloc(1, size + answer_size)
    if awaited == NULL:
        return NULL
    awaited.parts = <AwaitedOffset *> (awaited + 1)
    awaited.answer = <uint8_t *> awaited + size
    awaited.version = version
    awaited.part_count = parts
    awaited.deferred.received_us = received_us
    awaited.earlier = gate.newest_awaited
    if gate.newest_awaited != NULL:
        gate.newest_awaited.later = awaited
    else:
        gate.oldest_awaited = awaited
    gate.newest_awaited = awaited
    gate.awaited_count += 1
    gate.produces_awaited += 1
    answer_defer(gate.shared, connection, &awaited.deferred, PRODUCE)
    return awaited


cdef void await_offset(AwaitedProduce *awaited, int index, PartitionState partition, int64_t required_offset,
                       int32_t error_at, bint is_complete) noexcept nogil:
    cdef AwaitedOffset *part = &awaited.parts[index]
    part.owner = awaited
    part.required_offset = required_offset
    part.error_at = error_at
    if is_complete:
        return
    awaited.open_parts += 1
    part.partition = <PyObject *> partition
    part.previous = partition.last_awaited
    if partition.last_awaited != NULL:
        partition.last_awaited.next = part
    else:
        partition.first_awaited = part
    partition.last_awaited = part


cdef void begin_wait(GateContext gate, AwaitedProduce *awaited, int64_t answer_size, int32_t timeout_ms) noexcept nogil:
    awaited.answer_size = answer_size
    awaited.deadline_ms = gate.shared.monotonic_ms + timeout_ms
    if awaited.open_parts and (gate.timer_ms == 0 or awaited.deadline_ms < gate.timer_ms) and (
            gate.wanted_timer_ms == 0 or awaited.deadline_ms < gate.wanted_timer_ms):
        gate.wanted_timer_ms = awaited.deadline_ms
        gate.shared.gate_due = True


cdef void unlink_part(AwaitedOffset *part, PartitionState partition) noexcept nogil:
    if part.previous != NULL:
        part.previous.next = part.next
    else:
        partition.first_awaited = part.next
    if part.next != NULL:
        part.next.previous = part.previous
    else:
        partition.last_awaited = part.previous
    part.partition = NULL


cdef void close_part(GateContext gate, AwaitedOffset *part, int16_t error) noexcept nogil:
    """Sets the outcome of one partition of a produce request that waits: an error code, or 0 for success.

    If all other partitions of the request have an outcome already, the answer to the request is complete. It is sent
    after the earlier answers of the connection.
    """
    cdef AwaitedProduce *awaited = <AwaitedProduce *> part.owner
    unlink_part(part, <PartitionState> part.partition)
    awaited.open_parts -= 1
    if error:
        part.error = error
        store_int16(awaited.answer + part.error_at, error)
        awaited.has_error = True
    if awaited.open_parts == 0:
        if awaited.deferred.connection == NULL:
            free_awaited(gate, awaited)
        elif awaited.deferred.connection.first_deferred == &awaited.deferred:
            send_complete(gate, awaited.deferred.connection)


cdef void send_complete(GateContext gate, ConnectionState *connection) noexcept nogil:
    """Sends the complete answers of a connection in order, up to the first one that is not complete or has an error.

    An answer with an error is sent later, when Python code runs (`DataGate.complete_failed`), because Python has to
    fill in the present leader of the partition.
    """
    cdef AwaitedProduce *first
    cdef uint8_t *at
    while connection.first_deferred != NULL:
        first = <AwaitedProduce *> connection.first_deferred
        if first.open_parts:
            return
        if first.has_error:
            first.is_listed = True
            first.next_failed = gate.first_failed
            gate.first_failed = first
            gate.shared.gate_due = True
            return
        at = output_reserve(gate.shared, <size_t> first.answer_size)
        if at != NULL:
            memcpy(at, first.answer, <size_t> first.answer_size)
        if at == NULL or output_commit(gate.shared, connection, <size_t> first.answer_size):
            connection_close(gate.shared, connection, CLOSE_NO_MEMORY, 0)
            free_awaited(gate, first)
            return
        answer_sent(gate.shared, connection, PRODUCE)
        free_awaited(gate, first)


cdef void finish_first(GateContext gate, ConnectionState *connection) noexcept nogil:
    cdef AwaitedProduce *first = <AwaitedProduce *> connection.first_deferred
    answer_sent(gate.shared, connection, PRODUCE)
    free_awaited(gate, first)
    send_complete(gate, connection)


cdef void free_awaited(GateContext gate, AwaitedProduce *awaited) noexcept nogil:
    if awaited.earlier != NULL:
        awaited.earlier.later = awaited.later
    else:
        gate.oldest_awaited = awaited.later
    if awaited.later != NULL:
        awaited.later.earlier = awaited.earlier
    else:
        gate.newest_awaited = awaited.earlier
    gate.awaited_count -= 1
    free(awaited)


cdef void complete_reached(GateContext gate, PartitionState partition) noexcept nogil:
    cdef int16_t error = 0
    if partition.first_awaited == NULL:
        return
    if partition.maximal_isr_size < partition.minimal_isr_size():
        error = NOT_ENOUGH_REPLICAS_AFTER_APPEND
    while (partition.first_awaited != NULL
           and partition.first_awaited.required_offset <= partition.log.high_watermark):
        close_part(gate, partition.first_awaited, error)


cdef void fail_awaited(GateContext gate, PartitionState partition, int16_t error) noexcept nogil:
    while partition.first_awaited != NULL:
        close_part(gate, partition.first_awaited, error)


cdef void expire(GateContext gate, AwaitedProduce *awaited) noexcept nogil:
    cdef int index, last_open = -1
    for index in range(awaited.part_count):
        if awaited.parts[index].partition != NULL:
            last_open = index
    gate.expired_count += 1
    for index in range(last_open + 1):  # the last one may free the request
        if awaited.parts[index].partition != NULL:
            close_part(gate, &awaited.parts[index], REQUEST_TIMED_OUT)


cdef int64_t expire_produces(GateContext gate, int64_t monotonic_ms, bint at_once) noexcept nogil:
    cdef AwaitedProduce *awaited = gate.oldest_awaited
    cdef AwaitedProduce *later
    cdef int64_t next_ms = 0
    while awaited != NULL:
        later = awaited.later
        if awaited.open_parts == 0:
            if awaited.deferred.connection == NULL and not awaited.is_listed:
                free_awaited(gate, awaited)
        elif at_once or awaited.deadline_ms <= monotonic_ms:
            expire(gate, awaited)
        elif next_ms == 0 or awaited.deadline_ms < next_ms:
            next_ms = awaited.deadline_ms
        awaited = later
    return next_ms
