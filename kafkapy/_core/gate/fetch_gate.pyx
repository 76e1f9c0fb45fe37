"""Serves usual Fetch requests in compiled code (the gate). The Python path can serve every request, but is slower.

    gate          parse | gate open? | segment -> index -> batch header | answer: headers, and file ranges (sendfile)
    Python path   server/handlers/fetch -> ReplicaManager -> Partition -> LogReader

The gate serves a fetch without a session or in an open session, if enough data is available. It declines the cases that
Python has to decide: a follower that may enter the ISR or has an outdated broker epoch; a consumer that may be referred
to a replica in another rack; a session that begins, ends or changes its partitions; a fetcher whose log may diverge
from this log; an offset that is out of range; a read_committed fetch of a log that may have open or aborted
transactions; a segment whose files are not open yet. tests/property/test_gate_twin.py compares both paths' answers.

When a follower's fetch arrives, its position is recorded, which may increase the high watermark and complete produce
requests. A fetch that finds too few bytes has to wait. Python stores the request (replica/held_fetch), and presents it
to the gate again after an append or a rise of the high watermark, and at the deadline. Until then nothing else changes,
not even the fetch session (docs/decisions/held-fetch.md shows the sequence).
"""

from cpython.ref cimport PyObject
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcmp, memcpy

from kafkapy._core.bytes.codecs cimport CODEC_ZSTD
from kafkapy._core.broker_state.fetch_session_state cimport (
    FetchPartitionState, FetchPlace, FetchSessionState, FetchSessionTable, SessionPartitions)
from kafkapy._core.bytes.frame_cursor cimport (
    expect_no_tags, skip_plain_string, take_bytes, take_int8, take_int32, take_int64, take_length, take_string_length)
from kafkapy._core.broker_state.client_rights cimport MAY_READ
from kafkapy._core.gate.answer_fields cimport put_length, put_tags
from kafkapy._core.gate.client_admission cimport admits_fetch, largest_fetch, may_follow, may_use, charge_fetch
from kafkapy._core.gate.find_partition cimport find_asked, find_partition
from kafkapy._core.gate.fetch_request cimport (
    CONSUMER, FETCH_AT_DEADLINE, FETCH_ON_ARRIVAL, FETCH_WHILE_HELD, REPLICA_STATE_BYTES, FetchRequest)
from kafkapy._core.gate.follower_fetch cimport (
    admits_follower, count_sent, find_replica_state, record_positions, withholds)
from kafkapy._core.gate.gate_context cimport UUID_BYTES, FetchedPartition
from kafkapy._core.gate.request_versions cimport (
    FIRST_FETCH_WITH_CURRENT_LEADER_EPOCH, FIRST_FETCH_WITH_FORGOTTEN_TOPICS_DATA, FIRST_FETCH_WITH_LAST_FETCHED_EPOCH,
    FIRST_FETCH_WITH_LOG_START_OFFSET, FIRST_FETCH_WITH_PREFERRED_READ_REPLICA, FIRST_FETCH_WITH_RACK_ID,
    FIRST_FETCH_WITH_REPLICA_STATE, FIRST_FETCH_WITH_SESSION_ID, FIRST_FETCH_WITH_TOPIC_ID, FIRST_FETCH_WITH_ZSTD,
    FIRST_FLEXIBLE_FETCH)
from kafkapy._core.broker_state.log_state cimport LogState, ProducersState, SegmentState, SegmentsState
from kafkapy._core.broker_state.partition_state cimport PartitionState
from kafkapy._core.broker_state.replica_state cimport NO_BROKER_EPOCH
from kafkapy._core.bytes.primitives cimport store_int16, store_int32, store_int64, write_unsigned_varlong
from kafkapy._core.reactor.reactor_state cimport (
    CLOSE_NO_MEMORY, GATE_ANSWERED, GATE_DECLINED, GATE_WAITS, ConnectionState, OutputChunk, connection_close,
    output_append, output_commit, output_reserve)
from kafkapy._core.bytes.segment_file cimport descriptor_pin, descriptor_unpin
from kafkapy._core.bytes.segment_scan cimport locate_batch
from kafkapy._core.broker_state.topic_counters cimport count_fetch

cdef enum:
    READ_COMMITTED = 1
    INITIAL_EPOCH = 0
    FINAL_EPOCH = -1
    LARGEST_EPOCH = 2147483647
    HEAD_ROOM = 64                       # bytes from the size prefix to the number of topics, at most
    TOPIC_ROOM = 32                      # bytes of a topic without its name, at most
    PARTITION_ROOM = 64                  # bytes of a partition up to the length of the records, at most
    TAIL_ROOM = 16

cdef PyObject *NONE = <PyObject *> None

# ---- reading

cdef bint no_aborted(SegmentsState segments, Py_ssize_t first) noexcept nogil:
    """Returns whether no segment from the index `first` on lists an aborted transaction."""
    cdef Py_ssize_t index
    for index in range(first, segments.count):
        if not (<SegmentState> segments.ordered[index]).is_free_of_aborted:
            return False
    return True


cdef int read_segment(FetchedPartition *read, SegmentState segment, int64_t offset, int64_t limit, int64_t max_bytes,
                      bint min_one_message) noexcept nogil:
    """Finds the bytes to send from one segment, from `offset` up to the offset `limit` (-1: the segment's end). Returns
    1 on success, even if there are no bytes to send; 0 if the segment ends before `offset`; -1 if the gate declines.
    LogReader._read does the same on the Python path."""
    cdef int64_t position, size, length, end, limit_position, limit_size
    cdef int found
    if <PyObject *> segment._file == NONE or <PyObject *> segment._offset_index == NONE:
        return -1
    found = locate_batch(segment._file.descriptor.fd, segment._offset_index.position_of(offset), segment.size, offset,
                         &position, &size)
    if found <= 0:
        return found
    end = segment.size
    if limit >= 0:
        found = locate_batch(segment._file.descriptor.fd, segment._offset_index.position_of(limit), segment.size, limit,
                             &limit_position, &limit_size)
        if found < 0:
            return -1
        if found:
            end = limit_position
    if end <= position:
        return 1
    read.available = end - position
    length = size if min_one_message and size > max_bytes else max_bytes
    if length > read.available:
        length = read.available
    if length > 0:
        read.segment = <PyObject *> segment
        read.position = position
        read.length = length
    return 1


cdef inline int64_t limit_within(SegmentsState segments, Py_ssize_t index, int64_t limit,
                                 int64_t log_end_offset) noexcept nogil:
    """Returns `limit`, or -1 (no limit) if the segment at `index` has no batches at or above this offset."""
    if limit == log_end_offset or (
            index + 1 < segments.count and (<SegmentState> segments.ordered[index + 1]).base_offset <= limit):
        return -1
    return limit


cdef bint read_log(FetchRequest *request, FetchedPartition *read, LogState log, SegmentsState segments, int64_t offset,
                   int64_t max_bytes) noexcept nogil:
    """Finds the bytes to send from a log, as LogReader.read does in Python; returns False if the gate declines."""
    cdef Py_ssize_t index
    cdef int status = 0
    cdef int64_t limit = log.high_watermark if request.replica_id == CONSUMER else log.log_end_offset
    if not log.directory.is_online or (request.is_committed and log.producers.may_have_transactions):
        return False
    if offset < log.log_start_offset or offset > log.log_end_offset:
        return False
    if offset >= limit:
        request.must_not_wait |= offset > limit
        return True
    index = segments.place_of(offset)
    if index < 0 or (request.is_committed and not no_aborted(segments, index)):
        return False
    while status == 0 and index < segments.count:
        status = read_segment(read, <SegmentState> segments.ordered[index], offset,
                              limit_within(segments, index, limit, log.log_end_offset), max_bytes,
                              request.min_one_message)
        index += 1
    # As condition F of DelayedFetch: the log has rolled to another segment, either after the fetch offset, or at the
    # fetch offset, perhaps since the fetch began to wait. Python decides whether the fetch may wait.
    if (index < segments.count and (<SegmentState> segments.ordered[index]).base_offset <= limit) or (
            index > 1 and (<SegmentState> segments.ordered[index - 1]).base_offset == offset):
        request.must_not_wait = True
    return status == 1


cdef inline bint is_within(LogState log, int64_t offset) noexcept nogil:
    """Returns whether the log is online and contains the offset or ends there, so that a fetch from it is valid."""
    return log.directory.is_online and log.log_start_offset <= offset <= log.log_end_offset


cdef inline bint may_read_from_follower(const FetchRequest *request) noexcept nogil:
    """Returns whether brokers that do not lead the partition may serve the fetch. Python path: FetchParams.only_leader.
    """
    return request.replica_id == CONSUMER and request.version >= FIRST_FETCH_WITH_RACK_ID


cdef inline bint certainly_agrees(LogState log, const FetchPlace *place) noexcept nogil:
    """Returns whether the fetcher's log is certainly a prefix of this log; the gate declines if it is not."""
    return log.leader_epochs.certainly_contain(place.last_fetched_epoch, place.fetch_offset, log.log_end_offset)


cdef bint read_partition(GateContext gate, FetchRequest *request, FetchedPartition *read, PartitionState partition,
                         const FetchPlace *place) noexcept nogil:
    """Finds the bytes to send from one partition, and sets `read` to them. Returns False if the gate declines."""
    cdef int64_t max_bytes = place.max_bytes
    if not partition.is_gated or not (partition.is_leader or may_read_from_follower(request)):
        gate.has_lost_partition = True
        return False
    if max_bytes < 0 or partition.last_request_serial == gate.serial:
        return False
    if request.replica_id == CONSUMER and not may_use(gate, partition, MAY_READ):
        return False
    partition.last_request_serial = gate.serial
    request.leads |= partition.is_leader
    if place.last_fetched_epoch != -1 and not certainly_agrees(partition.log, place):
        return False
    if request.replica_id != CONSUMER and not admits_follower(request, read, partition, place):
        return False
    if place.current_leader_epoch != -1 and place.current_leader_epoch != partition.leader_epoch:
        return False
    if request.version < FIRST_FETCH_WITH_ZSTD and partition.log.config.codec == CODEC_ZSTD:
        return False  # Python refuses it
    if request.replica_id != CONSUMER and withholds(gate, read, partition):
        return is_within(partition.log, place.fetch_offset)
    if max_bytes > request.remaining:
        max_bytes = request.remaining
    if not read_log(request, read, partition.log, partition.log.segments, place.fetch_offset, max_bytes):
        return False
    request.has_unnoted_batch |= (read.length > max_bytes and request.replica_id == CONSUMER
                                  and gate.shared.monotonic_ms >= partition.large_fetch_noted_until_ms)
    request.readable += read.available if read.available < place.max_bytes else place.max_bytes
    if read.length:
        request.found += read.length
        request.min_one_message = False
        request.remaining = request.remaining - read.length if request.remaining > read.length else 0
    return True


# ---- parsing

cdef inline int32_t take_topic_length(const FetchRequest *request, FrameCursor *cursor) noexcept nogil:
    """Reads the length of the next topic's name; in versions with topic ids, returns the length of an id instead."""
    if request.version >= FIRST_FETCH_WITH_TOPIC_ID:
        return UUID_BYTES
    return take_string_length(cursor, request.version >= FIRST_FLEXIBLE_FETCH)


cdef int32_t take_place(const FetchRequest *request, FrameCursor *cursor, FetchPlace *place) noexcept nogil:
    """Parses the next partition of the request: returns its number, and sets `place` to its other fields."""
    cdef bint flexible = request.version >= FIRST_FLEXIBLE_FETCH
    cdef int32_t partition = take_int32(cursor)
    place.current_leader_epoch = take_int32(cursor) if request.version >= FIRST_FETCH_WITH_CURRENT_LEADER_EPOCH else -1
    place.fetch_offset = take_int64(cursor)
    place.last_fetched_epoch = (
        take_int32(cursor) if request.version >= FIRST_FETCH_WITH_LAST_FETCHED_EPOCH else -1)
    place.log_start_offset = take_int64(cursor) if request.version >= FIRST_FETCH_WITH_LOG_START_OFFSET else -1
    place.max_bytes = take_int32(cursor)
    expect_no_tags(cursor, flexible)
    return partition


cdef bint read_named(GateContext gate, FetchRequest *request, const uint8_t *topic, int32_t topic_length,
                     int32_t partition, const FetchPlace *place, int count) noexcept nogil:
    """Stores the bytes to send from a partition in `gate.reads[count]`; returns False if the gate declines."""
    cdef bint by_id = request.version >= FIRST_FETCH_WITH_TOPIC_ID
    cdef PyObject *found = find_partition(gate, by_id, topic, topic_length, partition)
    return read_found(gate, request, found, topic_length, partition, place, count)


cdef bint read_found(GateContext gate, FetchRequest *request, PyObject *found, int32_t topic_length, int32_t partition,
                     const FetchPlace *place, int count) noexcept nogil:
    """Finds the bytes to send from the partition `found`, and stores them in `gate.reads[count]`. Returns False if the
    gate declines. The gate declines if `found` is NULL, because this broker does not host the partition."""
    cdef FetchedPartition *read
    if gate.reserve_read(count):
        return False
    read = &gate.reads[count]
    read.asked = NULL
    read.partition_index = partition
    read.topic = NULL
    read.topic_length = topic_length
    read.topic_partitions = 0
    read.segment = NULL
    read.replica = NULL
    read.position = 0
    read.length = 0
    read.available = 0
    read.partition = found
    if found == NULL:
        gate.has_lost_partition = True
        return False
    return read_partition(gate, request, read, <PartitionState> read.partition, place)


cdef int take_topics(GateContext gate, FetchRequest *request, FrameCursor *cursor) noexcept nogil:
    """Finds the bytes to send from all partitions of the request. Returns the number of partitions, or -1 if the gate
    declines."""
    cdef bint flexible = request.version >= FIRST_FLEXIBLE_FETCH
    cdef const uint8_t *topic
    cdef const uint8_t *previous = NULL
    cdef int32_t topic_length, previous_length = -1, partition, partitions, topics
    cdef int count = 0, first
    cdef FetchPlace place
    request.topic_count = take_length(cursor, flexible)
    if cursor.failed or request.topic_count <= 0:
        return -1
    for topics in range(request.topic_count):
        topic_length = take_topic_length(request, cursor)
        topic = take_bytes(cursor, topic_length)
        partitions = take_length(cursor, flexible)
        if cursor.failed or partitions <= 0:
            return -1
        if topic_length == previous_length and memcmp(topic, previous, <size_t> topic_length) == 0:
            return -1  # the answer merges both entries of the topic
        previous, previous_length, first = topic, topic_length, count
        while count - first < partitions:
            partition = take_place(request, cursor, &place)
            if cursor.failed or not read_named(gate, request, topic, topic_length, partition, &place, count):
                return -1
            count += 1
        gate.reads[first].topic = topic
        gate.reads[first].topic_partitions = partitions
        expect_no_tags(cursor, flexible)
    return count


cdef bint take_limits(GateContext gate, FetchRequest *request, FrameCursor *cursor) noexcept nogil:
    """Parses the fields before the topics. Returns False if the gate declines the request."""
    cdef int32_t max_bytes
    cdef int8_t isolation_level
    if request.version >= FIRST_FETCH_WITH_REPLICA_STATE:
        find_replica_state(request, cursor)
    else:
        request.replica_id = take_int32(cursor)
        request.replica_epoch = NO_BROKER_EPOCH
    if request.replica_id < CONSUMER or (request.replica_id != CONSUMER and not may_follow(gate)):
        return False
    request.leads = False
    request.rack_length = 0
    gate.max_wait_ms = take_int32(cursor)
    request.min_bytes = take_int32(cursor)
    max_bytes = take_int32(cursor)
    isolation_level = take_int8(cursor)
    request.session_id = take_int32(cursor) if request.version >= FIRST_FETCH_WITH_SESSION_ID else 0
    request.session_epoch = take_int32(cursor) if request.version >= FIRST_FETCH_WITH_SESSION_ID else FINAL_EPOCH
    if max_bytes > gate.fetch_max_bytes:
        max_bytes = gate.fetch_max_bytes
    if request.replica_id == CONSUMER:
        max_bytes = <int32_t> largest_fetch(gate, max_bytes)
    if request.min_bytes > max_bytes:
        request.min_bytes = max_bytes
    request.remaining = max_bytes
    request.min_one_message = True
    request.is_committed = isolation_level == READ_COMMITTED and request.replica_id == CONSUMER
    request.must_not_wait = request.has_unnoted_batch = False
    request.found = 0
    request.readable = 0
    return not cursor.failed and max_bytes >= 0 and 0 <= isolation_level <= READ_COMMITTED


cdef bint quota_allows(GateContext gate, const FetchRequest *request, int count) noexcept nogil:
    """Returns whether the consumer's quota allows the answer, whose size is estimated. In a session the estimate omits
    partitions without records, which the answer may contain."""
    cdef int64_t size = HEAD_ROOM + request.found
    cdef int index
    if gate.limits == NULL or request.replica_id != CONSUMER:
        return True
    for index in range(count):
        if gate.reads[index].length or gate.reads[index].asked == NULL:
            size += PARTITION_ROOM + gate.reads[index].topic_length
    return admits_fetch(gate, size)


cdef int verdict_on(GateContext gate, const FetchRequest *request, int count) noexcept nogil:
    """Returns the GateVerdict for a fetch whose `count` partitions have been read. If the fetch has waited, a batch
    larger than its partition's limit counts only up to the limit, as in DelayedFetch."""
    cdef int64_t available = request.readable if request.moment == FETCH_WHILE_HELD else request.found
    if request.moment == FETCH_AT_DEADLINE or (available > 0 and available >= request.min_bytes):
        # Python notes the client whose fetch is smaller than a batch.
        return GATE_DECLINED if request.has_unnoted_batch or not quota_allows(gate, request, count) else GATE_ANSWERED
    if gate.max_wait_ms <= 0 or available >= request.min_bytes or request.must_not_wait:
        return GATE_DECLINED
    gate.read_count = count
    gate.read_replica_id = request.replica_id
    if request.moment != FETCH_ON_ARRIVAL:
        watch_partitions(gate, count, request.replica_id != CONSUMER)
    return GATE_WAITS


cdef void watch_partitions(GateContext gate, int count, bint is_from_follower) noexcept nogil:
    """Marks the first `count` partitions in `gate.reads` as those for which a fetch waits. Python is then notified of
    an append, if a follower's fetch waits, or of a higher high watermark, if a consumer's fetch waits."""
    cdef int index
    for index in range(count):
        watch_partition(<PartitionState> gate.reads[index].partition, is_from_follower)


cdef inline void watch_partition(PartitionState partition, bint is_from_follower) noexcept nogil:
    partition.watch(is_from_follower)


cdef bint may_be_referred(GateContext gate, const FetchRequest *request) noexcept nogil:
    """Returns whether the consumer is in another rack, so that the Python path may refer it to a follower (KIP-392)."""
    return (gate.rack != NULL and request.leads and request.replica_id == CONSUMER and request.rack_length > 0
            and not (request.rack_length == gate.rack_length
                     and memcmp(request.rack, gate.rack, <size_t> request.rack_length) == 0))


cdef bint take_rest(FetchRequest *request, FrameCursor *cursor) noexcept nogil:
    """Parses the fields after the topics. Returns False if the gate declines the request."""
    cdef bint flexible = request.version >= FIRST_FLEXIBLE_FETCH
    if request.version >= FIRST_FETCH_WITH_FORGOTTEN_TOPICS_DATA and take_length(cursor, flexible) != 0:
        return False
    if request.version >= FIRST_FETCH_WITH_RACK_ID:
        request.rack_length = take_string_length(cursor, flexible)
        request.rack = cursor.data + cursor.pos
        skip_plain_string(cursor, request.rack_length)
    if request.replica_id != CONSUMER and request.version >= FIRST_FETCH_WITH_REPLICA_STATE:
        return not cursor.failed and cursor.pos == cursor.end - REPLICA_STATE_BYTES
    expect_no_tags(cursor, flexible)
    return not cursor.failed and cursor.pos == cursor.end


# ---- sessions

cdef bint note_places(GateContext gate, FetchRequest *request, FrameCursor *cursor,
                      SessionPartitions partitions) noexcept nogil:
    """Stores the request's fields of each partition in the session. Returns False if the gate declines, because the
    session lacks a partition."""
    cdef bint flexible = request.version >= FIRST_FLEXIBLE_FETCH
    cdef int32_t topics, count, topic_length, partition
    cdef const uint8_t *topic
    cdef FetchPlace place
    cdef PyObject *found
    topics = take_length(cursor, flexible)
    if topics < 0:
        return False
    while topics > 0 and not cursor.failed:
        topic_length = take_topic_length(request, cursor)
        topic = take_bytes(cursor, topic_length)
        count = take_length(cursor, flexible)
        if count <= 0:
            return False
        while count > 0:
            partition = take_place(request, cursor, &place)
            if cursor.failed:
                return False
            found = partitions.find(topic, topic_length, partition)
            if found == NULL:
                return False
            (<FetchPartitionState> found).asked = place
            (<FetchPartitionState> found).asked_by = gate.serial
            count -= 1
        expect_no_tags(cursor, flexible)
        topics -= 1
    return not cursor.failed


cdef inline const FetchPlace *place_of_client(FetchPartitionState asked, int64_t serial) noexcept nogil:
    """Returns the fields, such as the offset, that the client has sent last for a partition: in the present request,
    whose number is `serial`, or in an earlier request of its session."""
    return &asked.asked if asked.asked_by == serial else &asked.place


cdef int read_session(GateContext gate, FetchRequest *request, SessionPartitions partitions) noexcept nogil:
    """Finds the bytes to send from all partitions of the session. Returns the number of the partitions, or -1 if the
    gate declines the request."""
    cdef bint by_id = request.version >= FIRST_FETCH_WITH_TOPIC_ID
    cdef PyObject *at = partitions.first
    cdef int count = 0
    while at != NULL:
        if not read_found(gate, request, find_asked(gate, by_id, <FetchPartitionState> at),
                          (<FetchPartitionState> at).topic_length, (<FetchPartitionState> at).index,
                          place_of_client(<FetchPartitionState> at, gate.serial), count):
            return -1
        gate.reads[count].asked = at
        count += 1
        at = (<FetchPartitionState> at).next
    return count


cdef bint remember(FetchPartitionState asked, const FetchedPartition *read, LogState log,
                   int64_t serial) noexcept nogil:
    """Stores the client's fields and the reported offsets in a session's partition, as CachedPartition.remember does.
    `serial` is the number of the present request. Returns whether the answer has to contain the partition, because
    there are records, or the high watermark or log start offset has changed since the last answer."""
    cdef bint is_changed = (read.length > 0 or log.high_watermark != asked.sent_high_watermark
                            or log.log_start_offset != asked.sent_log_start_offset)
    asked.place = place_of_client(asked, serial)[0]
    asked.sent_high_watermark = log.high_watermark
    asked.sent_log_start_offset = log.log_start_offset
    return is_changed


cdef int keep_changed(GateContext gate, const FetchRequest *request, SessionPartitions partitions,
                      int count) noexcept nogil:
    """Moves the partitions that the answer has to contain to the front of `gate.reads`; returns their number."""
    cdef int index, changed = 0
    cdef FetchedPartition *read
    for index in range(count):
        read = &gate.reads[index]
        count_read(request, read, <PartitionState> read.partition)
        if not remember_read(read, <PartitionState> read.partition, gate.serial):
            continue
        if read.length:
            partitions.move_to_end(<FetchPartitionState> read.asked)
        gate.reads[changed] = read[0]
        changed += 1
    return changed


cdef inline void count_read(const FetchRequest *request, const FetchedPartition *read,
                            PartitionState partition) noexcept nogil:
    count_fetch(partition.counters, read.length if request.replica_id == CONSUMER else 0)


cdef inline bint remember_read(const FetchedPartition *read, PartitionState partition, int64_t serial) noexcept nogil:
    return remember(<FetchPartitionState> read.asked, read, partition.log, serial)


cdef int32_t group_by_topic(GateContext gate, int count) noexcept nogil:
    """Makes adjacent partitions of one topic share an entry of the answer; returns the number of these topic entries.
    """
    cdef int32_t topics = 0
    cdef int index, first = 0
    for index in range(count):
        if index and same_topic(<FetchPartitionState> gate.reads[index - 1].asked,
                                <FetchPartitionState> gate.reads[index].asked):
            gate.reads[first].topic_partitions += 1
        else:
            first = index
            gate.reads[index].topic = (<FetchPartitionState> gate.reads[index].asked).topic
            gate.reads[index].topic_partitions = 1
            topics += 1
    return topics


cdef inline bint same_topic(FetchPartitionState one, FetchPartitionState other) noexcept nogil:
    return one.topic_length == other.topic_length and memcmp(one.topic, other.topic, <size_t> one.topic_length) == 0


cdef void advance(FetchSessionTable sessions, FetchSessionState session, int64_t monotonic_ms) noexcept nogil:
    session.epoch = 1 if session.epoch == LARGEST_EPOCH else session.epoch + 1
    sessions.use(session, monotonic_ms)


cdef int take_session(GateContext gate, FetchRequest *request, FrameCursor *cursor,
                      FetchSessionState session, int *count) noexcept nogil:
    """Serves an incremental fetch of a session. Returns the GateVerdict. If the fetch is answered, the session advances
    to its next epoch, and `count` becomes the number of partitions in the answer. Python path:
    FetchSessions._incremental and IncrementalFetchContext.answer."""
    cdef int verdict
    if (session.epoch != request.session_epoch or session.has_unknown_topics
            or session.uses_topic_ids != (request.version >= FIRST_FETCH_WITH_TOPIC_ID)):
        return GATE_DECLINED
    if not note_places(gate, request, cursor, session.partitions) or not take_rest(request, cursor):
        return GATE_DECLINED
    count[0] = read_session(gate, request, session.partitions)
    if count[0] < 0 or may_be_referred(gate, request):
        return GATE_DECLINED
    verdict = verdict_on(gate, request, count[0])
    record_positions(gate, request, count[0], verdict)
    if verdict == GATE_ANSWERED:
        advance(gate.sessions, session, gate.shared.monotonic_ms)
        count[0] = keep_changed(gate, request, session.partitions, count[0])
        request.topic_count = group_by_topic(gate, count[0])
        gate.session_fetches_gated += 1
    return verdict


cdef int take_full(GateContext gate, FetchRequest *request, FrameCursor *cursor, int *count) noexcept nogil:
    """Serves a fetch without a session. Returns the GateVerdict; `count` becomes the number of its partitions."""
    cdef int verdict, index
    count[0] = take_topics(gate, request, cursor)
    if count[0] < 0 or not take_rest(request, cursor) or may_be_referred(gate, request):
        return GATE_DECLINED
    verdict = verdict_on(gate, request, count[0])
    record_positions(gate, request, count[0], verdict)
    if verdict == GATE_ANSWERED:
        for index in range(count[0]):
            count_read(request, &gate.reads[index], <PartitionState> gate.reads[index].partition)
    return verdict


# ---- answering

cdef Py_ssize_t put_head(uint8_t *at, const FetchRequest *request) noexcept nogil:
    """Writes the answer up to the number of topics, with an empty size prefix; returns the length of this part."""
    cdef bint flexible = request.version >= FIRST_FLEXIBLE_FETCH
    cdef Py_ssize_t pos
    store_int32(at + 4, request.correlation_id)
    pos = put_tags(at, 8, flexible)
    store_int32(at + pos, 0)  # throttle time
    pos += 4
    if request.version >= FIRST_FETCH_WITH_SESSION_ID:
        store_int16(at + pos, 0)
        store_int32(at + pos + 2, request.session_id)
        pos += 6
    return put_length(at, pos, request.topic_count, flexible)


cdef Py_ssize_t put_topic(uint8_t *at, Py_ssize_t pos, const FetchedPartition *read, int version) noexcept nogil:
    cdef bint flexible = version >= FIRST_FLEXIBLE_FETCH
    if version < FIRST_FETCH_WITH_TOPIC_ID:
        if flexible:
            pos = write_unsigned_varlong(at, pos, <uint64_t> (read.topic_length + 1))
        else:
            store_int16(at + pos, <int16_t> read.topic_length)
            pos += 2
    memcpy(at + pos, read.topic, <size_t> read.topic_length)
    return put_length(at, pos + read.topic_length, read.topic_partitions, flexible)


cdef inline int64_t last_stable_offset(LogState log, ProducersState producers) noexcept nogil:
    return producers.last_stable(log.high_watermark) if producers.may_have_transactions else log.high_watermark


cdef Py_ssize_t put_partition(uint8_t *at, Py_ssize_t pos, const FetchRequest *request, const FetchedPartition *read,
                              LogState log) noexcept nogil:
    """Writes a partition to `at[pos:]`, up to the length of its records; returns the position after it."""
    cdef bint flexible = request.version >= FIRST_FLEXIBLE_FETCH
    store_int32(at + pos, read.partition_index)
    store_int16(at + pos + 4, 0)
    store_int64(at + pos + 6, log.high_watermark)
    store_int64(at + pos + 14, last_stable_offset(log, log.producers))
    pos += 22
    if request.version >= FIRST_FETCH_WITH_LOG_START_OFFSET:
        store_int64(at + pos, log.log_start_offset)
        pos += 8
    pos = put_length(at, pos, 0 if request.is_committed else -1, flexible)
    if request.version >= FIRST_FETCH_WITH_PREFERRED_READ_REPLICA:
        store_int32(at + pos, -1)  # no preferred replica
        pos += 4
    return put_length(at, pos, read.length, flexible)


cdef inline Py_ssize_t put_found(uint8_t *at, Py_ssize_t pos, const FetchRequest *request,
                                 const FetchedPartition *read, PartitionState partition) noexcept nogil:
    return put_partition(at, pos, request, read, partition.log)


cdef bint append_range(GateContext gate, ConnectionState *connection, const FetchedPartition *read,
                       SegmentState segment) noexcept nogil:
    """Appends the records to the output as a range of the file. Pins the file's descriptor until they are sent.
    Returns False if memory is short."""
    cdef OutputChunk *chunk = output_append(gate.shared, connection, read.length)
    if chunk == NULL:
        return False
    descriptor_pin(segment._file.descriptor)
    chunk.pin = segment._file.descriptor
    chunk.release = descriptor_unpin
    chunk.fd = segment._file.descriptor.fd
    chunk.position = read.position
    return True


cdef bint answer(GateContext gate, ConnectionState *connection, const FetchRequest *request,
                 int count) noexcept nogil:
    """Writes the answer to the output, and charges it to the consumer's quota. Returns False if memory is short; the
    output then has a part of the answer."""
    cdef bint flexible = request.version >= FIRST_FLEXIBLE_FETCH
    cdef uint8_t *at = output_reserve(gate.shared, HEAD_ROOM + TOPIC_ROOM + PARTITION_ROOM + UUID_BYTES)
    cdef uint8_t *prefix = at
    cdef Py_ssize_t pos
    cdef int64_t total
    cdef int index
    cdef int32_t left = 0
    cdef FetchedPartition *read
    if at == NULL:
        return False
    pos = put_head(at, request)
    if count == 0:
        pos = put_tags(at, pos, flexible)  # nothing changed in the session: these tags end the answer
    total = pos - 4
    if output_commit(gate.shared, connection, <size_t> pos):
        return False
    for index in range(count):
        read = &gate.reads[index]
        at = output_reserve(gate.shared, TOPIC_ROOM + PARTITION_ROOM + <size_t> read.topic_length)
        if at == NULL:
            return False
        pos = 0
        if read.topic != NULL:
            pos = put_topic(at, pos, read, request.version)
            left = read.topic_partitions
        pos = put_found(at, pos, request, read, <PartitionState> read.partition)
        if request.replica_id != CONSUMER:
            count_sent(gate, read, <PartitionState> read.partition)
        total += pos + read.length
        if output_commit(gate.shared, connection, <size_t> pos):
            return False
        if read.length and not append_range(gate, connection, read, <SegmentState> read.segment):
            return False
        left -= 1
        if flexible:
            at = output_reserve(gate.shared, TAIL_ROOM)
            if at == NULL:
                return False
            at[0] = at[1] = at[2] = 0  # tags of the partition, of its topic and of the answer
            pos = 1 + (left == 0) + (index == count - 1)
            total += pos
            if output_commit(gate.shared, connection, <size_t> pos):
                return False
    store_int32(prefix, <int32_t> total)
    if request.replica_id == CONSUMER:
        charge_fetch(gate, total - flexible)  # the size that Kafka computes has no tags of the header
    return True


cdef int fetch_answer(GateContext gate, ConnectionState *connection, const RequestHead *head, FrameCursor *cursor,
                      FetchMoment moment) noexcept nogil:
    cdef FetchRequest request
    cdef PyObject *session
    cdef int count = 0
    cdef int verdict = GATE_DECLINED
    request.version = head.version
    request.correlation_id = head.correlation_id
    request.moment = moment
    if connection.gathered or connection.first_deferred != NULL:
        return GATE_DECLINED  # earlier produce requests of this connection have to be answered first
    if not take_limits(gate, &request, cursor):
        return GATE_DECLINED
    connection.frame.is_from_follower = request.replica_id != CONSUMER
    connection.frame.is_exempt = request.replica_id != CONSUMER
    if gate.is_over_time and not connection.frame.is_exempt:
        return GATE_DECLINED
    gate.serial += 1
    if request.session_epoch == FINAL_EPOCH and request.session_id == 0:
        verdict = take_full(gate, &request, cursor, &count)
    elif request.session_epoch != FINAL_EPOCH and request.session_epoch != INITIAL_EPOCH:
        session = gate.sessions.find(request.session_id)
        if session != NULL:
            verdict = take_session(gate, &request, cursor, <FetchSessionState> session, &count)
    if verdict == GATE_ANSWERED:
        if not answer(gate, connection, &request, count):
            connection_close(gate.shared, connection, CLOSE_NO_MEMORY, 0)
        gate.fetches_gated += 1
        gate.follower_fetches_gated += request.replica_id != CONSUMER
    return verdict
