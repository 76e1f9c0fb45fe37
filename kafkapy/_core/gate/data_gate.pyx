"""The data gate: serves usual Produce and Fetch requests without the interpreter lock.

A pass of the reactor's loop has three phases: it reads the sockets without the lock, runs Python code, and writes the
answers without the lock. In phase 1 it presents each request to the gate. In phase 2 the gate notifies Python of the
partitions that it has changed.

Python adds and removes partitions (`add`, `remove`), and decides for each whether the gate may serve fetches from it
(`PartitionState.is_gated`) and append to it (`is_leader`, `is_for_clients`). Python also stores in the gate what a
client may do and which quotas it has (`set_rights`, `set_limits`); the gate leaves the requests of other clients to
Python. A feature that the gate does not support calls `shut`; every request is then served by the handlers in Python
(the Python path). The gate reads the machine's wall clock itself.
"""

from cpython.ref cimport PyObject
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport realloc

from kafkapy._core.broker_state.client_limits cimport ClientLimits
from kafkapy._core.broker_state.client_rights cimport ClientRights
from kafkapy._core.gate.awaited_produce cimport (
    complete_reached, expire_produces, fail_awaited, finish_first, free_awaited)
from kafkapy._core.gate.client_admission cimport admits_client, note_work, charge_times
from kafkapy._core.gate.fetch_gate cimport HIGHEST_GATED_FETCH, LOWEST_GATED_FETCH, fetch_answer
from kafkapy._core.gate.fetch_request cimport (
    CONSUMER, FETCH_AT_DEADLINE, FETCH_BEFORE_HOLDING, FETCH_ON_ARRIVAL, FETCH_WHILE_HELD, FetchMoment)
from kafkapy._core.broker_state.fetch_session_state cimport FetchSessionTable
from kafkapy._core.bytes.frame_cursor cimport (
    FrameCursor, RequestHead, take_head)
from kafkapy._core.broker_state.partition_state cimport PartitionState
from kafkapy._core.gate.gate_context cimport UUID_BYTES, AwaitedProduce
from kafkapy._core.gate.produce_gate cimport (
    HIGHEST_GATED_PRODUCE, LOWEST_GATED_PRODUCE, produce_finish, produce_gather)
# setup.py generates request_versions.pxd from the message definitions.
from kafkapy._core.gate.request_versions cimport FETCH, FIRST_FLEXIBLE_FETCH, FIRST_FLEXIBLE_PRODUCE, PRODUCE
from kafkapy._core.reactor.reactor cimport Reactor
from kafkapy._core.reactor.reactor_connection cimport Connection, Request, write_answer
from kafkapy._core.reactor.reactor_state cimport (
    CLOSE_LOCAL, GATE_ANSWERED, GATE_DECLINED, GATE_GATHERED, GATE_WAITS, ConnectionState, RequestFrame, WorkNote,
    WorkSettle, connection_close)

# The verdicts of `DataGate.serve_or_await` and `DataGate.serve_held`.
ANSWERED = GATE_ANSWERED
DECLINED = GATE_DECLINED
WAITS = GATE_WAITS


cdef bint read_header(FrameCursor *cursor, RequestHead *head, const uint8_t *data, int32_t size) noexcept nogil:
    """Reads the fixed part of a request header into `head`, and the position after it into `cursor`.

    Returns False if the header is malformed or unusual, so that Python has to handle the request.
    """
    cursor.data = data
    cursor.pos = 0
    cursor.end = size
    cursor.failed = False
    take_head(cursor, head)
    return not cursor.failed


cdef int serve_request(void *context, RequestFrame *frame) noexcept nogil:
    """Serves one request if the gate can; returns the GateVerdict.

    The verdict says what becomes of the request: it was answered, it will be answered by `finish`, it has to wait for
    data, or the gate has declined it and Python has to serve it.
    """
    cdef FrameCursor cursor
    cdef RequestHead head
    cdef int verdict = GATE_DECLINED
    if (<GateContext> context).is_shut or not read_header(&cursor, &head, frame.data, frame.size):
        return GATE_DECLINED
    if head.api_key == PRODUCE and LOWEST_GATED_PRODUCE <= head.version <= HIGHEST_GATED_PRODUCE:
        if admits_client(<GateContext> context, frame.connection, &cursor, head.version >= FIRST_FLEXIBLE_PRODUCE):
            verdict = produce_gather(<GateContext> context, frame, &head, &cursor)
    elif head.api_key == FETCH and LOWEST_GATED_FETCH <= head.version <= HIGHEST_GATED_FETCH:
        verdict = serve_fetch(<GateContext> context, frame.connection, &head, &cursor, FETCH_ON_ARRIVAL)
    return verdict


cdef int serve_fetch(GateContext gate, ConnectionState *connection, const RequestHead *head, FrameCursor *cursor,
                     FetchMoment moment) noexcept nogil:
    if not admits_client(gate, connection, cursor, head.version >= FIRST_FLEXIBLE_FETCH):
        return GATE_DECLINED
    return fetch_answer(gate, connection, head, cursor, moment)


cdef enum:
    NOT_LEADER_OR_FOLLOWER = 6
    LARGEST_TOPIC_NUMBER = 2147483647


cdef void finish(void *context) noexcept nogil:
    """Writes the batches of all produce requests of this pass of the reactor, and answers these requests.

    The reactor calls this function after it has read all sockets, so that one write is made for each partition. Also
    renews the decompressor's allowance of work for the next pass.
    """
    if (<GateContext> context).request_count:
        produce_finish(<GateContext> context)
    (<GateContext> context).decompressor.renew()


cdef class DataGate(GateContext):
    """The Python interface of the gate. Used only by the thread that owns it, or by any one thread before the reactor
    runs."""

    def __init__(self, on_appended, on_append_failed, *, int32_t fetch_max_bytes, FetchSessionTable sessions=None,
                 bytes own_rack=None):
        """Creates a gate without partitions. `fetch_max_bytes` is the broker's fetch.max.bytes.

        `sessions` is the table of fetch sessions, shared with the Python path. If `own_rack` is given, the Python path
        may refer consumers of other racks to followers (KIP-392). Phase 2 calls `on_appended(partition)` for a watched
        partition that the gate appended to, and `on_append_failed(partition, errno)` for one to which it could not
        append. It calls `on_produce_failed(connection, version, answer, errors)`, if set, for an answer to a produce
        request that has waited and has an error; `errors` has the error code of each partition, in order. The result of
        the function is the chunks to send instead of `answer`.
        """
        self.sessions = FetchSessionTable() if sessions is None else sessions
        self.fetch_max_bytes = fetch_max_bytes
        self.on_appended = on_appended
        self.on_append_failed = on_append_failed
        self.shut_by = set()
        self.topic_numbers = {}
        self.rights_generation = 1
        self.limits_generation = 1
        if own_rack is not None:
            self.own_rack = own_rack
            self.rack = own_rack
            self.rack_length = <int32_t> len(own_rack)

    def shut(self, str reason not None):
        """Makes the gate decline every request until each reason that was passed to `shut` was passed to `open`."""
        self.shut_by.add(reason)
        self.is_shut = True

    def open(self, str reason not None):
        """Withdraws a reason that was passed to `shut`. Does nothing for any other reason."""
        self.shut_by.discard(reason)
        self.is_shut = len(self.shut_by) > 0

    def authorize(self):
        """Makes the gate check permissions. It then declines every request of a client for which `set_rights` has
        stored no valid permissions."""
        self.is_authorizing = True

    def outdate_rights(self):
        """Makes all stored permissions invalid, after a change of the ACLs. Any thread may call it."""
        self.rights_generation += 1

    def set_rights(self, Connection connection not None, ClientRights rights not None):
        """Stores the permissions of the connection's client, for the requests that follow."""
        connection.gate_rights = rights
        connection.native.gate_rights = <PyObject *> rights

    def rights_of(self, Connection connection not None):
        """Returns the ClientRights that `set_rights` has stored for the connection; None before the first call."""
        return connection.gate_rights

    def limit(self, bint is_limiting, *, bint measures_time=False):
        """Sets whether clients have quotas. If they have, the gate declines the requests of a client until `set_limits`
        has stored its limits.

        Limits from earlier calls of `set_limits` become invalid. `measures_time` is set if a quota limits the time of a
        client's requests.
        """
        charge_times(<PyObject *> self, 0)  # now, because the caller may drop the sensors
        if self.shared != NULL:  # a gate that is not attached serves nothing
            self.shared.work_note = note_work if measures_time else <WorkNote> NULL
            self.shared.work_settle = charge_times if measures_time else <WorkSettle> NULL
        self.limits_generation += 1
        self.is_limiting = is_limiting

    def set_limits(self, Connection connection not None, ClientLimits limits not None):
        """Stores the quotas that apply to the connection's client id, for the requests that follow."""
        connection.gate_limits = limits
        connection.native.gate_limits = <PyObject *> limits

    def limits_of(self, Connection connection not None):
        """Returns the ClientLimits that `set_limits` has stored for the connection; None before the first call."""
        return connection.gate_limits

    def topic_number(self, str topic):
        """Returns the number by which ClientRights identifies the topic; 0 for a topic without partitions on this
        broker."""
        entry = self.topic_numbers.get(topic)
        return 0 if entry is None else entry[0]

    def attach(self, Reactor reactor not None):
        """Makes the reactor present every request to this gate before the Python path.

        The reactor keeps the gate alive.
        """
        self.shared = &reactor.native
        self.reactor = reactor
        reactor.on_gate = self.notify_python
        reactor.native.gate_context = <PyObject *> self
        reactor.native.gate_finish = finish
        reactor.native.gate = serve_request

    def add(self, PartitionState partition not None, str topic, bytes topic_id, int index):
        """Adds the partition, whose number is `index`, to the tables by topic name and by topic id.

        `partition.log` must be set, and must not become None before `remove`.
        """
        cdef Py_ssize_t capacity = 2 * len(self.by_name) + 16
        cdef void *grown
        if capacity > self.waking_capacity:
            grown = realloc(self.waking, <size_t> capacity * sizeof(PyObject *))
            if grown == NULL:
                raise MemoryError()
            self.waking = <PyObject **> grown
            self.waking_capacity = <int> capacity
        self.number_partition(partition, topic)
        self.by_name.put(topic.encode(), index, partition)
        if len(topic_id) == UUID_BYTES and topic_id != bytes(UUID_BYTES):
            self.by_id.put(topic_id, index, partition)

    def remove(self, PartitionState partition not None, str topic, bytes topic_id, int index):
        """Removes the partition, whose number is `index`, so that no request finds it."""
        cdef list entry = self.topic_numbers.get(topic)
        self.forget_waking(partition)
        self.by_name.drop(topic.encode(), index)
        self.by_id.drop(topic_id, index)
        if entry is not None and partition in entry[1]:
            entry[1].discard(partition)
            if not entry[1]:
                del self.topic_numbers[topic]

    cdef int number_partition(self, PartitionState partition, str topic) except -1:
        """Sets `topic_number` of the partition to the number of its topic; a topic without a number gets the next one.

        ClientRights identifies topics by these numbers. A number is used for one topic only, also after the deletion of
        the topic.
        """
        cdef list entry = self.topic_numbers.get(topic)
        if entry is None:
            if self.last_topic_number == LARGEST_TOPIC_NUMBER:
                raise OverflowError("too many topics were created since the start")
            self.last_topic_number += 1
            entry = self.topic_numbers[topic] = [self.last_topic_number, set()]
        entry[1].add(partition)
        partition.topic_number = entry[0]
        return 0

    def find(self, str topic, int index):
        """Returns the partition with the topic name and the number `index`, or None if the gate does not serve it."""
        cdef bytes name = topic.encode()
        cdef PyObject *found = self.by_name.find(name, len(name), index)
        return None if found == NULL else <object> found

    def find_by_id(self, bytes topic_id, int index):
        """Returns the partition with the topic id and the number `index`, or None if the gate does not serve it."""
        cdef PyObject *found = self.by_id.find(topic_id, len(topic_id), index)
        return None if found == NULL else <object> found

    def serve_or_await(self, Request request not None):
        """Serves a fetch that found too little to read when it arrived (`Request.waits`), or returns what to wait for.

        Called in phase 2, when Python code runs: later requests of the same pass may have appended what the fetch
        needs.

        Returns (verdict, partitions, max_wait_ms, replica id). If the verdict is WAITS, `partitions` is a list of the
        partitions for which a consumer's fetch waits. It is empty for a follower's fetch, which may have thousands of
        partitions. `max_wait_ms` is the longest time to wait, and the replica id is the follower's broker id, or -1 for
        a consumer. If the verdict is ANSWERED or DECLINED (see `serve_held`), the other members are [], 0 and -1.
        """
        cdef int verdict = self.present(request, FETCH_BEFORE_HOLDING)
        cdef list awaited = []
        if verdict != GATE_WAITS:
            return verdict, awaited, 0, CONSUMER
        if self.read_replica_id == CONSUMER:
            awaited = [<object> self.reads[index].partition for index in range(self.read_count)]
        return verdict, awaited, self.max_wait_ms, self.read_replica_id

    def serve_held(self, Request request not None, *, bint at_deadline=False):
        """Tries again to serve a fetch that waits for data; returns ANSWERED, DECLINED or WAITS. Called in phase 2.

        ANSWERED: the answer is in the output, or the connection was closed and needs no answer. DECLINED: the gate has
        changed nothing, and Python has to serve the fetch. `has_lost_partition` is then True if this broker no longer
        serves one of the partitions. WAITS: there is still too little to read. If `at_deadline` is set, the gate
        answers with the available data and never returns WAITS.
        """
        return self.present(request, FETCH_AT_DEADLINE if at_deadline else FETCH_WHILE_HELD)

    cdef int present(self, Request request, FetchMoment moment) except -1:
        cdef ConnectionState *connection = request.connection.native
        cdef FrameCursor cursor
        cdef RequestHead head
        cdef int verdict
        if connection.closed or connection.closing:
            return GATE_ANSWERED
        self.has_lost_partition = False
        if self.is_shut or not read_header(&cursor, &head, request.data, request.size):
            return GATE_DECLINED
        verdict = serve_fetch(self, connection, &head, &cursor, moment)
        if verdict == GATE_ANSWERED:
            request.connection.respond(None)  # the answer is in the output already
        return verdict

    def notify_python(self):
        """Calls `on_appended` and `on_append_failed` for the partitions that the gate has changed.

        Also completes and sends the answers to produce requests that have waited and failed. The reactor calls this
        function in the phase of a pass that runs Python code.
        """
        cdef PartitionState partition
        cdef int append_errno
        for partition in self.take_waking():
            append_errno = partition.append_errno
            if append_errno:
                self.on_append_failed(partition, append_errno)
                partition.append_errno = 0
            if partition.is_watched or partition.is_commit_watched:
                self.on_appended(partition)
        self.complete_failed()
        if self.wanted_timer_ms:
            self.set_timer(self.wanted_timer_ms)

    def complete_awaited(self, PartitionState partition not None, int error=0):
        """Completes the produce requests that wait for the partition, after a change of its high watermark or role.

        If `error` is not 0, or this broker no longer leads the partition, completes all of these requests with an
        error. Otherwise completes only the requests whose records the high watermark has passed. Has to be called
        before a removed partition is released.
        """
        if partition.first_awaited == NULL:
            return
        if error or not partition.is_leader:
            fail_awaited(self, partition, <int16_t> (error or NOT_LEADER_OR_FOLLOWER))
        else:
            complete_reached(self, partition)
        self.complete_failed()

    def expire_awaited(self, *, bint at_once=False):
        """Answers the waiting produce requests whose deadline has passed with the error REQUEST_TIMED_OUT.

        If `at_once` is set, answers all waiting produce requests with this error.
        """
        cdef int64_t next_ms = 0
        if self.oldest_awaited != NULL:
            next_ms = expire_produces(self, self.shared.monotonic_ms, at_once)
        self.set_timer(next_ms)
        self.complete_failed()

    cdef int complete_failed(self) except -1:
        """Sends the answers of waiting produce requests that have an error, as `on_produce_failed` has completed
        them."""
        cdef AwaitedProduce *failed
        cdef ConnectionState *connection
        while self.first_failed != NULL:
            failed = self.first_failed
            self.first_failed = failed.next_failed
            failed.is_listed = False
            connection = failed.deferred.connection
            if connection == NULL:
                free_awaited(self, failed)
                continue
            answer = failed.answer[4:failed.answer_size]
            if self.on_produce_failed is not None:
                errors = [failed.parts[index].error for index in range(failed.part_count)]
                chunks = self.on_produce_failed(<Connection> connection.connection, failed.version, answer, errors)
            else:
                chunks = [answer]
            write_answer(self.shared, connection, chunks)
            finish_first(self, connection)
        return 0

    cdef int set_timer(self, int64_t deadline_ms) except -1:
        """Makes the reactor call `expire_awaited` at this time of the monotonic clock; 0 means never."""
        self.wanted_timer_ms = 0
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.timer_ms = deadline_ms
        if deadline_ms:
            self.timer = self.reactor.schedule(max(0, deadline_ms - self.shared.monotonic_ms), self.expire_awaited)
        return 0

    @property
    def partition_count(self):
        return len(self.by_name)

    def counters(self):
        """Returns counters of appends and answers since the start by name, such as "session_fetches_gated"."""
        return {
            "batches_appended": self.batches_gated,
            "bytes_appended": self.bytes_gated,
            "fetches_answered": self.fetches_gated,
            "session_fetches_answered": self.session_fetches_gated,
            "follower_fetches_answered": self.follower_fetches_gated,
            "produces_awaited": self.produces_awaited,
            "produces_expired": self.expired_count,
            "rights_used": self.rights_used,
        }
