"""Serves usual Produce requests in compiled code (the gate). The Python path can serve all requests, but is slower.

    gather (each request)      parse | gate open? | batch, CRC, records | sequence | room in the segment | offsets
    finish (once in a pass)    one pwritev for each partition | indexes, producers, high watermarks | answers
    Python path                server/handlers/produce -> ReplicaManager -> Partition -> Log -> LogSegment

The gate serves requests that have one plain batch of magic 2 for each partition, which the topic stores unchanged. It
gathers the batches of all requests in one pass of the reactor, and writes the batches of a partition at once. It
declines all other requests, changes nothing, and leaves them to the Python path. These are requests with a codec that
was not used before, or with too much to decompress; with a transactional batch, or the first or a repeated batch of an
idempotent producer; with a batch that may cause a roll, a flush or a full index; requests for a partition whose ISR is
too small; and requests of a form that clients do not usually send.

With acks=all the answer waits in the gate for the high watermark (`awaited_produce`). tests/property/test_gate_twin.py
compares the answers and the files of the two paths.
"""

from cpython.ref cimport PyObject
from libc.errno cimport EIO
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy
from posix.time cimport CLOCK_REALTIME, clock_gettime, timespec

from kafkapy._core.bytes.batch_layout cimport (
    BATCH_OVERHEAD, HEADER_OK, BatchHeader, last_sequence_of, parse_batch_header)
from kafkapy._core.bytes.batch_validation cimport BatchLimits, assign_in_place, check_batch, prepare_check
from kafkapy._core.bytes.codecs cimport CODEC_MASK, CODEC_ZSTD, LARGEST_CODEC
from kafkapy._core.bytes.frame_cursor cimport (
    expect_no_tags, take_bytes, take_int16, take_int32, take_length, take_string_length)
from kafkapy._core.broker_state.client_rights cimport MAY_WRITE
from kafkapy._core.gate.answer_fields cimport put_length, put_tags
from kafkapy._core.gate.awaited_produce cimport await_offset, await_produce, begin_wait, complete_reached
from kafkapy._core.gate.client_admission cimport admits_produce, may_use, charge_produce
from kafkapy._core.gate.gate_context cimport UUID_BYTES, AwaitedProduce, GatheredBatch, GatheredRequest
from kafkapy._core.gate.request_versions cimport (
    FIRST_FLEXIBLE_PRODUCE, FIRST_PRODUCE_WITH_LOG_START_OFFSET, FIRST_PRODUCE_WITH_RECORD_ERRORS,
    FIRST_PRODUCE_WITH_TOPIC_ID, FIRST_PRODUCE_WITH_ZSTD)
from kafkapy._core.broker_state.log_state cimport LogLimits, LogState, SegmentState
from kafkapy._core.broker_state.partition_state cimport PartitionState
from kafkapy._core.bytes.primitives cimport load_int16, store_int16, store_int32, store_int64, write_unsigned_varlong
from kafkapy._core.broker_state.producer_table cimport ProducedBatch, ProducerEntry
from kafkapy._core.reactor.reactor_state cimport (
    CLOSE_ERROR, CLOSE_NO_MEMORY, GATE_DECLINED, GATE_GATHERED, ConnectionState, connection_close,
    gathered_request_answered, output_commit, output_reserve)
from kafkapy._core.bytes.record_scanner cimport RECORDS_OK, check_records
from kafkapy._core.bytes.slab cimport slab_release, slab_retain
from kafkapy._core.broker_state.topic_counters cimport TopicCounters, count_append, count_failed_append

cdef enum:
    ALL_REPLICAS = -1
    CLIENT_ID_AT = 8                     # of its length, after the key and version of the API and the correlation id
    KAFKA_STORAGE_ERROR = 56
    ANSWER_OVERHEAD = 32                 # bytes of size prefix, header, array length, throttle time and tags, at most
    TOPIC_OVERHEAD = 16                  # bytes of a topic without its name, at most
    PARTITION_BYTES = 48                 # bytes of a partition, at most


cdef int64_t read_wall_ms() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_REALTIME, &now)
    return <int64_t> now.tv_sec * 1000 + now.tv_nsec // 1000000


# ---- gather

cdef bint examine_batch(GateContext gate, PartitionState partition, GatheredBatch *batch, int32_t size, int version,
                        int64_t wall_ms) noexcept nogil:
    """Returns whether the `size` bytes at `batch.data` are one batch that the gate can append unchanged.

    Sets the other fields of `batch` from the header of these bytes.
    """
    cdef BatchHeader header
    cdef BatchLimits limits
    if parse_batch_header(batch.data, 0, size, &header) != HEADER_OK or header.size != size:
        return False
    if not keeps_codec(partition.log.config, header.attributes, version):
        return False
    batch.size = size
    batch.max_timestamp = header.max_timestamp
    batch.last_offset_delta = header.last_offset_delta
    batch.base_sequence = header.base_sequence
    batch.last_sequence = last_sequence_of(&header)
    batch.producer = NULL
    if header.producer_id >= 0:
        batch.producer = partition.log.producers.entries.find(header.producer_id)
        if batch.producer == NULL or not (<ProducerEntry> batch.producer).is_next_batch(
                header.producer_epoch, header.base_sequence):
            return False
    if not has_room(partition, partition.log, partition.log.segments.active, batch):
        return False  # tested before the records are decompressed, and again when their timestamps are known
    fill_limits(&limits, partition.log.config)
    if check_batch(batch.data, &header, &limits) != RECORDS_OK:
        return False
    prepare_check(&gate.check, &header, &limits, wall_ms)
    if not has_valid_records(gate, batch.data, size, header.attributes):
        return False
    batch.max_timestamp = gate.check.max_timestamp
    return has_room(partition, partition.log, partition.log.segments.active, batch)


cdef bint keeps_codec(LogLimits config, int attributes, int version) noexcept nogil:
    """Returns whether the gate may store a batch with the header field `attributes` without compressing it again.

    That is the case if the attributes have no flag other than the codec, the request's `version` permits the codec, and
    the topic's `compression.type` is producer or this codec.
    """
    if (attributes & ~CODEC_MASK or attributes > LARGEST_CODEC
            or (attributes == CODEC_ZSTD and version < FIRST_PRODUCE_WITH_ZSTD)):
        return False
    return config.codec < 0 or config.codec == attributes


cdef bint has_valid_records(GateContext gate, const uint8_t *data, int32_t size, int codec) noexcept nogil:
    """Returns whether all records of the batch are valid according to the limits in `gate.check`."""
    if codec:
        if not gate.decompressor.check_records(codec, data + BATCH_OVERHEAD, size - BATCH_OVERHEAD, &gate.check):
            return False
    elif check_records(data, BATCH_OVERHEAD, size, &gate.check) != RECORDS_OK:
        return False
    return gate.check.error_count == 0


cdef void fill_limits(BatchLimits *limits, LogLimits config) noexcept nogil:
    limits.max_message_bytes = config.max_message_bytes
    limits.from_client = True
    limits.log_append_time = False
    limits.before_max_ms = config.timestamp_before_max_ms
    limits.after_max_ms = config.timestamp_after_max_ms
    limits.compacted = False


cdef bint has_room(PartitionState partition, LogState log, SegmentState segment, GatheredBatch *batch) noexcept nogil:
    """Returns whether the segment has room for the batch, without a roll or a flush; sets the batch's base offset.

    The batch follows the gathered batches: batches of earlier requests that are not yet written to the segment.
    """
    cdef int64_t first_offset = partition.gathered_end_offset if partition.gathered_count else log.log_end_offset
    batch.base_offset = first_offset
    return (segment.certainly_fits(log.config, segment.size + partition.gathered_bytes, partition.gathered_count,
                                   batch.size, batch.max_timestamp, first_offset + batch.last_offset_delta)
            and first_offset + batch.last_offset_delta + 1 - log.recovery_point < log.config.flush_messages)


cdef bint is_open(PartitionState partition) noexcept nogil:
    """Returns whether the gate may append to the partition.

    This broker must be the leader and its log must be online. The topic must not be internal or compacted, and its
    timestamp type must not be LogAppendTime. The gate does not append after a failed append either, until Python has
    been notified of the failure.
    """
    return (partition.is_for_clients and partition.is_leader and takes_plain_appends(partition.log.config)
            and partition.log.directory.is_online and partition.append_errno == 0)


cdef bint takes_plain_appends(LogLimits config) noexcept nogil:
    return not config.is_compacted and not config.stamps_append_time


cdef bint take_partition(GateContext gate, RequestFrame *frame, FrameCursor *cursor, const uint8_t *topic,
                         int32_t topic_length, int version, int64_t wall_ms) noexcept nogil:
    """Reads the next partition of the request into the batch at `gate.batch_count`.

    Returns False if the gate declines the request.
    """
    cdef bint flexible = version >= FIRST_FLEXIBLE_PRODUCE
    cdef int32_t index = take_int32(cursor)
    cdef int32_t size = take_length(cursor, flexible)
    cdef const uint8_t *data = take_bytes(cursor, size)
    cdef GatheredBatch *batch
    expect_no_tags(cursor, flexible)
    if cursor.failed or gate.reserve_batch():
        return False
    batch = &gate.batches[gate.batch_count]
    if version >= FIRST_PRODUCE_WITH_TOPIC_ID:
        batch.partition = gate.by_id.find(topic, topic_length, index)
    else:
        batch.partition = gate.by_name.find(topic, topic_length, index)
    if batch.partition == NULL:
        return False
    batch.data = frame.data + (data - frame.data)
    batch.partition_index = index
    batch.topic = NULL
    batch.topic_length = topic_length
    batch.topic_partitions = 0
    batch.next_gathered = -1
    batch.failed = False
    return examine_partition(gate, <PartitionState> batch.partition, batch, size, version, wall_ms)


cdef bint accepts_replicated(PartitionState partition, GatheredRequest *request) noexcept nogil:
    """Marks the request as one that writes to a partition with followers.

    Returns whether the gate may append the request's records to this partition. With acks=all the ISR must have enough
    replicas for `min.insync.replicas`, and the request's timeout must be above 0. With other acks the gate always may.
    """
    request.is_replicated = True
    return request.acks != ALL_REPLICAS or (
        request.timeout_ms > 0 and partition.isr_size >= partition.minimal_isr_size())


cdef bint examine_partition(GateContext gate, PartitionState partition, GatheredBatch *batch, int32_t size,
                            int version, int64_t wall_ms) noexcept nogil:
    # If the request names the partition twice, the partition already has the serial of this request.
    if (partition.last_request_serial == gate.serial or not is_open(partition)
            or not may_use(gate, partition, MAY_WRITE)):
        return False
    partition.last_request_serial = gate.serial
    if partition.replica_count and not accepts_replicated(partition, &gate.requests[gate.request_count]):
        return False
    return examine_batch(gate, partition, batch, size, version, wall_ms)


cdef bint take_topics(GateContext gate, RequestFrame *frame, FrameCursor *cursor, GatheredRequest *request,
                      bint flexible) noexcept nogil:
    """Reads all topics of the request, and adds their batches to those of earlier requests that wait to be written.

    Returns False if the gate declines the request.
    """
    cdef int64_t wall_ms = read_wall_ms()
    cdef const uint8_t *topic
    cdef int32_t topic_length, topics, partitions
    cdef int first
    request.topic_count = take_length(cursor, flexible)
    if cursor.failed or request.topic_count <= 0:
        return False
    for topics in range(request.topic_count):
        topic_length = UUID_BYTES
        if request.version < FIRST_PRODUCE_WITH_TOPIC_ID:
            topic_length = take_string_length(cursor, flexible)
        topic = take_bytes(cursor, topic_length)
        partitions = take_length(cursor, flexible)
        if cursor.failed or partitions <= 0:
            return False
        first = gate.batch_count
        while gate.batch_count - first < partitions:
            if not take_partition(gate, frame, cursor, topic, topic_length, request.version, wall_ms):
                return False
            gate.batch_count += 1
        gate.batches[first].topic = topic
        gate.batches[first].topic_partitions = partitions
        expect_no_tags(cursor, flexible)
    expect_no_tags(cursor, flexible)
    return not cursor.failed and cursor.pos == cursor.end


cdef void gather_batch(GateContext gate, PartitionState partition, GatheredBatch *batch, int index) noexcept nogil:
    """Adds the batch to the batches of its partition that are written together at the end of this pass of the reactor.

    Writes the base offset into the batch. `index` is the index of the batch in `gate.batches`.
    """
    if partition.gathered_count == 0:
        gate.touched[gate.touched_count] = <PyObject *> partition
        gate.touched_count += 1
        partition.first_gathered = index
        partition.gathered_bytes = 0
    else:
        gate.batches[partition.last_gathered].next_gathered = index
    partition.last_gathered = index
    partition.gathered_count += 1
    partition.gathered_bytes += batch.size
    partition.gathered_end_offset = batch.base_offset + batch.last_offset_delta + 1
    if batch.producer != NULL:
        (<ProducerEntry> batch.producer).is_pending = True
        (<ProducerEntry> batch.producer).pending_sequence = batch.last_sequence
    assign_in_place(batch.data, batch.size, batch.base_offset, partition.leader_epoch, batch.max_timestamp, -1)


cdef inline bint is_audited(PartitionState partition) noexcept nogil:
    return partition.client_notes is not None


cdef inline void note_client(PartitionState partition, const GatheredBatch *batch,
                             const uint8_t *header) noexcept nogil:
    """Notes which client appends the batch, for the audit of the topic. `header` is the header of the request."""
    partition.client_notes.note(batch.base_offset, header + CLIENT_ID_AT + 2, load_int16(header + CLIENT_ID_AT))


cdef int produce_gather(GateContext gate, RequestFrame *frame, const RequestHead *head,
                        FrameCursor *cursor) noexcept nogil:
    cdef bint flexible = head.version >= FIRST_FLEXIBLE_PRODUCE
    cdef GatheredRequest *request
    cdef int first = gate.batch_count
    cdef int index
    cdef int32_t transactional_id = take_string_length(cursor, flexible)
    if transactional_id != -1 or gate.reserve_request():
        return GATE_DECLINED
    request = &gate.requests[gate.request_count]
    request.version = head.version
    request.correlation_id = head.correlation_id
    request.acks = take_int16(cursor)
    request.timeout_ms = take_int32(cursor)
    request.is_replicated = False
    if cursor.failed or request.acks < -1 or request.acks > 1:
        return GATE_DECLINED
    frame.is_exempt = request.acks == 0
    if gate.is_over_time and not frame.is_exempt:
        return GATE_DECLINED
    gate.serial += 1
    if not take_topics(gate, frame, cursor, request, flexible) or not admits_produce(gate, frame.size):
        gate.batch_count = first
        return GATE_DECLINED
    request.connection = frame.connection
    request.slab = frame.slab
    request.received_us = frame.received_us
    slab_retain(frame.slab)
    charge_produce(gate, frame.size)
    request.first_batch = first
    request.batch_count = gate.batch_count - first
    for index in range(first, gate.batch_count):
        gather_batch(gate, <PartitionState> gate.batches[index].partition, &gate.batches[index], index)
        if is_audited(<PartitionState> gate.batches[index].partition):
            note_client(<PartitionState> gate.batches[index].partition, &gate.batches[index], frame.data)
    gate.request_count += 1
    return GATE_GATHERED


# ---- finish

cdef int write_gathered(GateContext gate, PartitionState partition, SegmentState segment) noexcept nogil:
    """Writes the batches of the partition that have been gathered in this pass of the reactor, with one system call.

    Returns 0, or -errno if nothing was written.
    """
    cdef int index = partition.first_gathered
    cdef Py_ssize_t count = 0
    while index >= 0:
        gate.vectors[count].iov_base = gate.batches[index].data
        gate.vectors[count].iov_len = <size_t> gate.batches[index].size
        count += 1
        index = gate.batches[index].next_gathered
    return segment._file.append_vectors(gate.vectors, count, partition.gathered_bytes)


cdef void account_for_producer(ProducerEntry producer, const GatheredBatch *batch) noexcept nogil:
    cdef ProducedBatch produced
    produced.first_sequence = batch.base_sequence
    produced.last_sequence = batch.last_sequence
    produced.first_offset = batch.base_offset
    produced.last_offset = batch.base_offset + batch.last_offset_delta
    produced.timestamp = batch.max_timestamp
    producer.push(&produced)


cdef void finish_partition(GateContext gate, PartitionState partition, LogState log, SegmentState segment,
                           TopicCounters counters) noexcept nogil:
    """Writes the gathered batches of the partition, then updates indexes, offsets and producers for each batch.

    Gathered batches are those of all requests in this pass of the reactor. After a failure the remaining batches are
    not in the log, and Python is notified of the failure.
    """
    cdef int status = write_gathered(gate, partition, segment)
    cdef int index = partition.first_gathered
    cdef GatheredBatch *batch
    while index >= 0:
        batch = &gate.batches[index]
        if batch.producer != NULL:
            (<ProducerEntry> batch.producer).is_pending = False
        if status == 0:
            status = segment.index_one(log.config.index_interval_bytes, segment.size, batch.size,
                                       batch.base_offset + batch.last_offset_delta, batch.max_timestamp)
            if status:
                segment.cut_to(segment.size)
        if status == 0:
            segment.size += batch.size
            log.log_end_offset = batch.base_offset + batch.last_offset_delta + 1
            if batch.producer != NULL:
                account_for_producer(<ProducerEntry> batch.producer, batch)
            gate.batches_gated += 1
            gate.bytes_gated += batch.size
            count_append(counters, batch.last_offset_delta + 1, batch.size)
        else:
            count_failed_append(counters)
        batch.failed = status != 0
        index = batch.next_gathered
    log.producers.map_end_offset = log.log_end_offset
    partition.gathered_count = 0
    partition.gathered_bytes = 0
    if status:
        partition.append_errno = -status
    if partition.replica_count:
        finish_replicated(gate, partition, log)
    elif log.log_end_offset > log.high_watermark:
        log.high_watermark = log.log_end_offset
    if status or partition.is_watched:
        gate.wake(partition)


cdef void finish_replicated(GateContext gate, PartitionState partition, LogState log) noexcept nogil:
    """Increases the high watermark of a replicated partition if possible, and completes requests that wait for it."""
    if partition.advance_high_watermark(log, gate.shared.monotonic_ms):
        complete_reached(gate, partition)
        if partition.is_commit_watched:
            gate.wake(partition)


cdef Py_ssize_t put_partition(uint8_t *at, Py_ssize_t pos, GatheredBatch *batch, int64_t log_start_offset,
                              int version) noexcept nogil:
    cdef bint flexible = version >= FIRST_FLEXIBLE_PRODUCE
    batch.error_at = <int32_t> pos + 4
    store_int32(at + pos, batch.partition_index)
    store_int16(at + pos + 4, KAFKA_STORAGE_ERROR if batch.failed else 0)
    store_int64(at + pos + 6, -1 if batch.failed else batch.base_offset)
    store_int64(at + pos + 14, -1)  # log append time
    pos += 22
    if version >= FIRST_PRODUCE_WITH_LOG_START_OFFSET:
        store_int64(at + pos, -1 if batch.failed else log_start_offset)
        pos += 8
    if version >= FIRST_PRODUCE_WITH_RECORD_ERRORS:
        pos = put_length(at, pos, 0, flexible)
        if flexible:
            at[pos] = 0  # no message
            pos += 1
        else:
            store_int16(at + pos, -1)
            pos += 2
    return put_tags(at, pos, flexible)


cdef inline int64_t log_start_offset_of(PartitionState partition) noexcept nogil:
    return partition.log.log_start_offset


cdef Py_ssize_t put_topic(uint8_t *at, Py_ssize_t pos, const GatheredBatch *batch, int version) noexcept nogil:
    """Writes the topic's name or id and the number of its partitions to `at[pos:]`; returns the position after them."""
    cdef bint flexible = version >= FIRST_FLEXIBLE_PRODUCE
    if version < FIRST_PRODUCE_WITH_TOPIC_ID:
        if flexible:
            pos = write_unsigned_varlong(at, pos, <uint64_t> (batch.topic_length + 1))
        else:
            store_int16(at + pos, <int16_t> batch.topic_length)
            pos += 2
    memcpy(at + pos, batch.topic, <size_t> batch.topic_length)
    return put_length(at, pos + batch.topic_length, batch.topic_partitions, flexible)


cdef Py_ssize_t put_answer(GateContext gate, const GatheredRequest *request, uint8_t *at) noexcept nogil:
    """Writes the answer with its size prefix to `at`; returns the number of bytes."""
    cdef bint flexible = request.version >= FIRST_FLEXIBLE_PRODUCE
    cdef Py_ssize_t pos
    cdef int index
    cdef int32_t left = 0
    cdef GatheredBatch *batch
    store_int32(at + 4, request.correlation_id)
    pos = put_tags(at, 8, flexible)
    pos = put_length(at, pos, request.topic_count, flexible)
    for index in range(request.first_batch, request.first_batch + request.batch_count):
        batch = &gate.batches[index]
        if batch.topic != NULL:
            pos = put_topic(at, pos, batch, request.version)
            left = batch.topic_partitions
        pos = put_partition(at, pos, batch, log_start_offset_of(<PartitionState> batch.partition), request.version)
        left -= 1
        if left == 0:
            pos = put_tags(at, pos, flexible)
    store_int32(at + pos, 0)  # throttle time
    pos = put_tags(at, pos + 4, flexible)
    store_int32(at, <int32_t> (pos - 4))
    return pos


cdef size_t room_for_answer(GateContext gate, const GatheredRequest *request) noexcept nogil:
    cdef size_t room = ANSWER_OVERHEAD
    cdef int index
    for index in range(request.first_batch, request.first_batch + request.batch_count):
        room += PARTITION_BYTES
        if gate.batches[index].topic != NULL:
            room += TOPIC_OVERHEAD + <size_t> gate.batches[index].topic_length
    return room


cdef bint answer(GateContext gate, const GatheredRequest *request) noexcept nogil:
    """Puts the answer into the connection's output. Returns False if memory is short."""
    cdef uint8_t *at
    cdef Py_ssize_t length
    at = output_reserve(gate.shared, room_for_answer(gate, request))
    if at == NULL:
        return False
    length = put_answer(gate, request, at)
    return output_commit(gate.shared, request.connection, <size_t> length) == 0


cdef bint has_reached(PartitionState partition, const GatheredBatch *batch) noexcept nogil:
    """Returns whether the batch need not wait: the high watermark has passed it, or it could not be appended."""
    return batch.failed or partition.log.high_watermark > batch.base_offset + batch.last_offset_delta


cdef bint must_wait(GateContext gate, const GatheredRequest *request) noexcept nogil:
    """Returns whether the answer has to wait until the high watermark has passed all batches of the request."""
    cdef int index
    if request.acks == ALL_REPLICAS and request.is_replicated:
        for index in range(request.first_batch, request.first_batch + request.batch_count):
            if not has_reached(<PartitionState> gate.batches[index].partition, &gate.batches[index]):
                return True
    return False


cdef bint defer(GateContext gate, const GatheredRequest *request) noexcept nogil:
    """Stores the answer; it is sent when all its partitions, and the connection's earlier answers, are complete.

    Returns False if memory is short.
    """
    cdef size_t room = room_for_answer(gate, request)
    cdef AwaitedProduce *awaited = await_produce(gate, request.connection, request.version, request.batch_count, room,
                                                 request.received_us)
    cdef Py_ssize_t length
    cdef int index
    if awaited == NULL:
        return False
    length = put_answer(gate, request, awaited.answer)
    for index in range(request.batch_count):
        await_batch(awaited, index, <PartitionState> gate.batches[request.first_batch + index].partition,
                    &gate.batches[request.first_batch + index], request.acks)
    begin_wait(gate, awaited, length, request.timeout_ms)
    return True


cdef inline void await_batch(AwaitedProduce *awaited, int index, PartitionState partition, const GatheredBatch *batch,
                             int acks) noexcept nogil:
    await_offset(awaited, index, partition, batch.base_offset + batch.last_offset_delta + 1, batch.error_at,
                 acks != ALL_REPLICAS or has_reached(partition, batch))


cdef bint has_failed(GateContext gate, const GatheredRequest *request) noexcept nogil:
    cdef int index
    for index in range(request.first_batch, request.first_batch + request.batch_count):
        if gate.batches[index].failed:
            return True
    return False


cdef void finish_request(GateContext gate, const GatheredRequest *request) noexcept nogil:
    """Sends or stores the answer of a request, unless its connection is closed.

    With acks=0 nothing is sent, and an error closes the connection.
    """
    cdef ConnectionState *connection = request.connection
    if not connection.closed and not connection.closing:
        if request.acks == 0:
            if has_failed(gate, request):
                connection_close(gate.shared, connection, CLOSE_ERROR, EIO)
        elif must_wait(gate, request) or connection.first_deferred != NULL:
            if not defer(gate, request):
                connection_close(gate.shared, connection, CLOSE_NO_MEMORY, 0)
        elif not answer(gate, request):
            connection_close(gate.shared, connection, CLOSE_NO_MEMORY, 0)
    gathered_request_answered(gate.shared, connection)
    slab_release(request.slab)


cdef void produce_finish(GateContext gate) noexcept nogil:
    cdef int index
    for index in range(gate.touched_count):
        finish_touched(gate, <PartitionState> gate.touched[index])
    for index in range(gate.request_count):
        finish_request(gate, &gate.requests[index])
    gate.touched_count = 0
    gate.request_count = 0
    gate.batch_count = 0


cdef void finish_touched(GateContext gate, PartitionState partition) noexcept nogil:
    finish_partition(gate, partition, partition.log, partition.log.segments.active, partition.counters)
