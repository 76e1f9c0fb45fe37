"""The data gate: which requests are served in phase 1 of the reactor, and what Python hears of it afterwards.

Python says which partitions there are (`add`, `remove`) and opens each one's gate (`PartitionState.is_plain`). A gate
does not know principals and delays nobody: what authorizes requests, or throttles them, shuts it (`shut`), and every
request then takes the Python way. It keeps wall-clock time of its own: a broker with another clock does without a gate.
"""

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport realloc

from kafkapy._core.gate.fetch_gate cimport (
    FETCH_AT_DEADLINE, FETCH_AT_ONCE, FETCH_LATER, FETCH_WAITS, HIGHEST_GATED_FETCH, LOWEST_GATED_FETCH, FetchLook,
    fetch_answer)
from kafkapy._core.broker_state.fetch_session_state cimport FetchSessionTable
from kafkapy._core.bytes.frame_cursor cimport FrameCursor, RequestHead, expect_no_tags, skip_plain_string, take_head, take_int16
from kafkapy._core.broker_state.partition_state cimport PartitionState
from kafkapy._core.gate.produce_gate cimport (
    HIGHEST_GATED_PRODUCE, LOWEST_GATED_PRODUCE, produce_finish, produce_gather)
from kafkapy._core.reactor.reactor cimport Reactor
from kafkapy._core.reactor.reactor_connection cimport Request
from kafkapy._core.reactor.reactor_state cimport GATE_ANSWERED, GATE_DECLINED, ConnectionState, RequestFrame

cdef enum:
    PRODUCE = 0
    PRODUCE_FLEXIBLE_FROM = 9
    FETCH = 1
    FETCH_FLEXIBLE_FROM = 12
    UUID_BYTES = 16

# What `DataGate.serve_again` gives.
ANSWERED = GATE_ANSWERED
DECLINED = GATE_DECLINED
WAITS = FETCH_WAITS
AT_ONCE = FETCH_AT_ONCE
LATER = FETCH_LATER
AT_DEADLINE = FETCH_AT_DEADLINE


cdef bint begin(FrameCursor *cursor, RequestHead *head, const uint8_t *data, int32_t size) noexcept nogil:
    """Reads the fixed part of a request header. False: for Python."""
    cursor.data = data
    cursor.pos = 0
    cursor.end = size
    cursor.failed = False
    take_head(cursor, head)
    return not cursor.failed


cdef int take(void *context, RequestFrame *frame) noexcept nogil:
    """The verdict on one request; its header is read here."""
    cdef FrameCursor cursor
    cdef RequestHead head
    cdef int verdict
    if (<GateContext> context).is_shut or not begin(&cursor, &head, frame.data, frame.size):
        return GATE_DECLINED
    if head.api_key == PRODUCE and LOWEST_GATED_PRODUCE <= head.version <= HIGHEST_GATED_PRODUCE:
        pass_client_id(&cursor, head.version >= PRODUCE_FLEXIBLE_FROM)
        return GATE_DECLINED if cursor.failed else produce_gather(<GateContext> context, frame, &head, &cursor)
    if head.api_key == FETCH and LOWEST_GATED_FETCH <= head.version <= HIGHEST_GATED_FETCH:
        verdict = take_fetch(<GateContext> context, frame.connection, &head, &cursor, FETCH_AT_ONCE)
        frame.waits = verdict == FETCH_WAITS
        return GATE_DECLINED if frame.waits else verdict
    return GATE_DECLINED


cdef int take_fetch(GateContext gate, ConnectionState *connection, const RequestHead *head, FrameCursor *cursor,
                    FetchLook look) noexcept nogil:
    pass_client_id(cursor, head.version >= FETCH_FLEXIBLE_FROM)
    return GATE_DECLINED if cursor.failed else fetch_answer(gate, connection, head, cursor, look)


cdef void pass_client_id(FrameCursor *cursor, bint flexible) noexcept nogil:
    """The rest of the request header."""
    skip_plain_string(cursor, take_int16(cursor))
    expect_no_tags(cursor, flexible)


cdef void finish(void *context) noexcept nogil:
    if (<GateContext> context).request_count:
        produce_finish(<GateContext> context)
    (<GateContext> context).decompressor.renew()


cdef class DataGate(GateContext):
    """Owner thread only, or before the reactor runs. `on_appended` and `on_append_failed` are called in phase 2."""

    def __init__(self, on_appended, on_append_failed, *, int32_t fetch_max_bytes, FetchSessionTable sessions=None):
        """`fetch_max_bytes` is the broker's fetch.max.bytes; `sessions` are Python's own, shared."""
        self.sessions = FetchSessionTable() if sessions is None else sessions
        self.fetch_max_bytes = fetch_max_bytes
        self.on_appended = on_appended
        self.on_append_failed = on_append_failed
        self.shut_by = set()

    def shut(self, str reason not None):
        """Every request takes the Python way until all who shut the gate have opened it again (`open`)."""
        self.shut_by.add(reason)
        self.is_shut = True

    def open(self, str reason not None):
        """The reason for which it was shut has gone; nothing if it was not shut for that."""
        self.shut_by.discard(reason)
        self.is_shut = len(self.shut_by) > 0

    def attach(self, Reactor reactor not None):
        """The reactor asks this gate from now on, and keeps it alive."""
        self.shared = &reactor.native
        self.reactor = reactor
        reactor.on_gate = self.tell
        reactor.native.gate_context = <PyObject *> self
        reactor.native.gate_finish = finish
        reactor.native.gate = take

    def add(self, PartitionState partition not None, str topic, bytes topic_id, int index):
        """The partition can be found by name and by id; its log is set and stays."""
        cdef Py_ssize_t capacity = 2 * len(self.by_name) + 16
        cdef void *grown
        if capacity > self.waking_capacity:
            grown = realloc(self.waking, <size_t> capacity * sizeof(PyObject *))
            if grown == NULL:
                raise MemoryError()
            self.waking = <PyObject **> grown
            self.waking_capacity = <int> capacity
        self.by_name.put(topic.encode(), index, partition)
        if len(topic_id) == UUID_BYTES and topic_id != bytes(UUID_BYTES):
            self.by_id.put(topic_id, index, partition)

    def remove(self, PartitionState partition not None, str topic, bytes topic_id, int index):
        """It cannot be found any more."""
        self.forget_waking(partition)
        self.by_name.drop(topic.encode(), index)
        self.by_id.drop(topic_id, index)

    def find(self, str topic, int index):
        """The partition that a request with this topic's name would meet, or None."""
        cdef bytes name = topic.encode()
        cdef PyObject *found = self.by_name.find(name, len(name), index)
        return None if found == NULL else <object> found

    def find_by_id(self, bytes topic_id, int index):
        """The same by the topic's id."""
        cdef PyObject *found = self.by_id.find(topic_id, len(topic_id), index)
        return None if found == NULL else <object> found

    def serve_again(self, Request request not None, FetchLook look):
        """Phase 2: a look at a fetch that was to wait (`Request.waits`), AT_ONCE, LATER or AT_DEADLINE, when what there
        is is answered. ANSWERED; DECLINED: it is Python's now; or WAITS. A closed connection needs no answer."""
        cdef ConnectionState *connection = request.connection.native
        cdef FrameCursor cursor
        cdef RequestHead head
        cdef int verdict
        if connection.closed or connection.closing:
            return GATE_ANSWERED
        if self.is_shut or not begin(&cursor, &head, request.data, request.size):
            return GATE_DECLINED
        verdict = take_fetch(self, connection, &head, &cursor, look)
        if verdict == GATE_ANSWERED:
            request.connection.respond(None)  # it is in the output already
        return verdict

    def awaited(self):
        """(partitions, how long in ms) that the fetch looked at last waits for."""
        return [<object> self.reads[index].partition for index in range(self.read_count)], self.max_wait_ms

    def tell(self):
        """Phase 2: what Python has to hear of partitions that the gate appended to."""
        cdef PartitionState partition
        cdef int append_errno
        for partition in self.take_waking():
            append_errno = partition.append_errno
            if append_errno:
                self.on_append_failed(partition, append_errno)
                partition.append_errno = 0
            if partition.is_watched:
                self.on_appended(partition)

    @property
    def partition_count(self):
        return len(self.by_name)

    def counters(self):
        """What happened since the start, by name."""
        return {
            "batches_appended": self.batches_gated,
            "bytes_appended": self.bytes_gated,
            "fetches_answered": self.fetches_gated,
            "session_fetches_answered": self.session_fetches_gated,
        }
