# The reactor's C state: connections, requests and answers without Python objects.
#
# Everything here belongs to the reactor thread. A gate (see `Gate`) is called with these structs in phase 1, without
# the interpreter lock, and writes its answers by `output_reserve`, `output_commit` and `output_append`.
from cpython.buffer cimport Py_buffer
from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from kafkapy._core.reactor.request_meter cimport METERS, RequestMeter, meter_add, meter_of
from kafkapy._core.bytes.slab cimport Slab, SlabPool
from kafkapy._core.tls.handshake_pool cimport HandshakeQueues
from kafkapy._core.tls.tls_session cimport TlsBuffer, TlsSession

cdef enum:
    WATCH_CONNECTION = 0            # first field of every struct that an epoll event points to
    WATCH_CALLBACK = 1
    WATCH_WAKEUP = 2
    WATCH_HANDSHAKES = 3

cdef enum CloseReason:
    CLOSE_NONE = 0
    CLOSE_BY_PEER = 1               # end of stream
    CLOSE_ERROR = 2                 # detail: errno
    CLOSE_INVALID_SIZE = 3          # detail: the size prefix
    CLOSE_IDLE = 4
    CLOSE_LOCAL = 5                 # Connection.close(): its text is kept in Python
    CLOSE_SHORT_FILE = 6            # a file range ended before its length
    CLOSE_NO_MEMORY = 7
    CLOSE_SHUTDOWN = 8
    CLOSE_TLS = 9                   # the session's `error` has the reason
    CLOSE_UNAUTHENTICATED = 10      # Connection.close_unauthenticated(), with its text

# The verdict of a gate on one request. A gate that gathers copies the frame and retains its slab: the connection may be
# closed before `finish`, which then skips it. While requests of a connection are gathered, a gate must not answer
# another one at once: it gathers it, or sends it to Python, whose answer follows theirs.
cdef enum GateVerdict:
    GATE_DECLINED = 0               # Python has to serve the request
    GATE_ANSWERED = 1               # the answer is in the connection's output
    # The gate's `finish` executes it at the end of phase 1, in the order of arrival. It is answered then, or after the
    # fetches of the followers that have to copy its records first.
    GATE_GATHERED = 2
    GATE_WAITS = 3                  # Python has to hold the request and present it to the gate again

cdef struct RequestFrame:
    ConnectionState *connection
    Slab *slab                      # pinned by the frame; NULL when no frame is in process
    uint8_t *data                   # header and body, without the size prefix; may be modified in place
    int32_t size
    int64_t received_us             # monotonic
    int api_key                     # as the client wrote it; -1 if the header is too short
    bint is_from_follower           # a fetch of a follower, once the gate or Python has read it
    bint is_exempt                  # the gate has found that no quota limits the time of the request
    bint has_invalid_size           # the size prefix, sent by an unauthenticated client, is invalid: there are no bytes
    int verdict                     # of a request for Python: GATE_DECLINED or GATE_WAITS

# One piece of an answer. Memory: data, remaining. File: fd, position, remaining. At most one of slab, has_view, owner
# and pin says who keeps the bytes alive.
cdef struct OutputChunk:
    OutputChunk *next
    Slab *slab                      # pinned
    Py_buffer view                  # if has_view: a large Python buffer that is sent without copying
    PyObject *owner                 # owned reference to the FileRange behind fd
    void *pin                       # what a gate pinned, released by release(pin)
    void (*release)(void *pin) noexcept nogil
    const uint8_t *data             # next byte to send
    int64_t position                # next byte of the file
    int64_t remaining
    int fd                          # -1: memory
    bint has_view

# An answer that a gate sends in a later wake-up than that of its request. The gate owns it, as the first field of a
# struct of its own. While a connection has a deferred answer, no other request of the connection is answered
# before it, and none goes to Python.
cdef struct DeferredAnswer:
    DeferredAnswer *next            # the next answer of the connection
    ConnectionState *connection     # NULL once the connection is closed
    int64_t received_us             # when the request arrived

# Invariants: in_process => no other frame of this connection is taken; input holds complete frames only while
# in_process or output is full, otherwise its incomplete tail has moved to prefix or assembly. The frames of an outgoing
# connection are responses: they go to Python without the gate, and count neither as requests nor against their bounds.
cdef struct ConnectionState:
    int kind                        # WATCH_CONNECTION
    int fd                          # -1 once closed
    bint is_outgoing                # this process opened the connection
    bint is_connecting              # outgoing, and not established yet; `blocked` is set too
    TlsSession *tls                 # owned; NULL: the connection is not encrypted
    # The kernel, or the TLS session, may hold bytes; remembered, since the socket is edge triggered. False while a TLS
    # handshake waits for its pool or for Python.
    bint readable
    bint hangup                     # the peer ended its stream: a short read does not mean "drained"
    bint blocked                    # the socket accepted no more bytes; EPOLLOUT resets it
    bint corked
    bint ungated                    # no request of this connection is offered to the gate
    bint is_authenticating          # the client has to prove its identity: every frame goes to Python, of any size
    int64_t gated_until_ms          # the authentication expires then, and no request is offered to the gate any more
    bint muted                      # a quota is exceeded: no further request is taken
    PyObject *gate_rights           # what the gate knows about the client; borrowed from the Connection
    PyObject *gate_limits
    bint in_process                 # one frame is with the gate, Python or a purgatory
    int gathered                    # requests that the gate has gathered; 0 outside phase 1
    int deferred                    # number of deferred answers
    DeferredAnswer *first_deferred
    DeferredAnswer *last_deferred
    bint held_back                  # its frame is for Python, and waits for the deferred answers
    bint closing                    # to be closed as soon as the output is sent
    bint closed
    bint queued_input               # membership of the queues of ReactorState
    bint queued_python
    bint queued_answered
    bint queued_output
    bint queued_handshake
    int32_t max_frame_bytes         # the largest frame that the peer may send
    uint8_t prefix[4]               # the incomplete size prefix of a frame
    int prefix_size                 # 0..3 between reads
    Slab *input                     # pinned; received and not parsed: data[input_pos:input_end]
    size_t input_pos
    size_t input_end
    Slab *assembly                  # sole pin; a frame that is still arriving, `used` bytes of it are here
    int32_t assembly_size           # the whole size of that frame
    int low_water                   # the bytes that the socket gathers before it is readable; 0: the system's default
    RequestFrame frame              # in process
    int64_t reserved_bytes          # its share of ReactorState.reserved_bytes
    OutputChunk *output_head
    OutputChunk *output_tail
    int64_t output_bytes            # not yet accepted by the kernel
    int64_t last_active_ms
    ConnectionState *older          # least recently used order
    ConnectionState *newer
    PyObject *connection            # borrowed: the Connection that owns this struct
    int close_reason
    int64_t close_detail

cdef struct ConnectionQueue:
    ConnectionState **items         # room for every open connection: pushing never allocates
    size_t count

# What the TLS connections of a reactor share.
cdef struct TlsShared:
    int kind                        # WATCH_HANDSHAKES
    HandshakeQueues *pool           # borrowed from the reactor's HandshakePool
    uint8_t *plaintext              # GATHER_BYTES: what is encrypted next
    TlsBuffer spare                 # lent to the session that is written to, so that others need no memory

# Both are called on the reactor's thread, with or without the interpreter lock, after the reads of phase 1 and between
# callbacks of phase 2, but never while a Python callback runs. `finish` follows each gathering, so that Python never
# sees a partition whose gathered batches are not written yet.
ctypedef int (*Gate)(void *context, RequestFrame *frame) noexcept nogil
ctypedef void (*GateFinish)(void *context) noexcept nogil

# The time of a wake-up is divided among connections in proportion to the work for them, because reading the clock for
# each request would cost too much. A span of work lasts from the wake-up to `finish`, from `finish` or the end of phase
# 2 to the end of phase 3, or from `work_begin` to the next `finish`. `note` counts work for a connection, without the
# interpreter lock; `settle` divides the span and begins the next one. The span ends at `now_us`; if that is 0, `settle`
# reads the clock, unless there is nothing to divide.
ctypedef void (*WorkNote)(void *context, ConnectionState *connection, int64_t weight) noexcept nogil
ctypedef void (*WorkSettle)(void *context, int64_t now_us) noexcept nogil

cdef struct ReactorState:
    unsigned long thread            # identity of the thread in Reactor.run; 0: none
    int epoll_fd
    int wakeup_fd
    int64_t now_us                  # monotonic, read once per wake-up
    int64_t monotonic_ms                  # the same in milliseconds
    int64_t waiting_since_us        # when the wait for events began; 0 while there is none
    int32_t max_request_bytes
    int64_t queued_max_request_bytes  # -1: no bound
    int64_t reserved_bytes          # bytes of frames that are arriving or in process
    int64_t max_idle_ms             # -1: never
    bint input_urgent               # a queued connection may read although intake is blocked
    bint intake_paused              # no new frame is read or taken
    bint draining                   # shutting down: answers are sent, nothing is read
    size_t in_process_count
    size_t connection_count
    size_t muted_count              # connections whose clients have exceeded a quota
    size_t queue_capacity
    SlabPool *pool
    Slab *shared_input              # the slab that sockets are read into; pinned once
    Slab *shared_output             # the slab that small answers are written into; pinned once
    OutputChunk *free_chunks
    OutputChunk *garbage            # sent; their Python references wait for the interpreter lock
    ConnectionState *oldest         # least recently used order
    ConnectionState *newest
    ConnectionQueue input_queue     # to be read or parsed in the next phase 1
    ConnectionQueue python_queue    # their frame waits for phase 2
    ConnectionQueue answered_queue  # answered by Python: their next request is taken when the callback has returned
    ConnectionQueue output_queue    # to be written in phase 3
    ConnectionQueue closed_queue    # closed; to be reported to Python
    ConnectionQueue handshake_queue  # their TLS handshake has ended; to be reported to Python
    ConnectionQueue spare_queue     # swapped with the queue that is being processed
    TlsShared *tls                  # NULL until the first TLS connection
    bint reports_handshakes         # Python is notified of the end of each handshake of a client
    Gate gate                       # NULL: every request goes to Python
    GateFinish gate_finish          # NULL: the gate gathers nothing
    void *gate_context
    WorkNote work_note              # NULL: the time of connections is not measured
    WorkSettle work_settle
    int64_t span_from_us            # when the present span of work began
    int64_t span_weight             # of the work for all connections since then
    bint gate_due                   # the gate has to notify Python
    int64_t requests_received       # counters since the start
    int64_t requests_gated
    int64_t responses_received      # on outgoing connections
    int64_t bytes_received
    int64_t bytes_sent
    int64_t connections_closed
    int64_t wakeups
    int64_t python_phases
    int64_t idle_us                 # spent waiting in epoll
    RequestMeter *meters[METERS]    # by API key; NULL until the first request of the API
    RequestMeter *pending_meters    # the meters of the requests that the gate answered in this wake-up

cdef extern from *:
    void __builtin_prefetch(const void *address, int for_write) noexcept nogil


cdef inline void prefetch(const void *address) noexcept nogil:
    """Begins to load the first 128 bytes of an object into the processor's cache. The address may be NULL."""
    __builtin_prefetch(address, 1)
    __builtin_prefetch(<const char *> address + 64, 1)


# Moves the queued entries to spare_queue, which the caller processes while new entries are added to `queue`.
cdef inline size_t queue_take(ReactorState *state, ConnectionQueue *queue) noexcept nogil:
    cdef ConnectionQueue taken = queue[0]
    queue[0] = state.spare_queue
    queue.count = 0
    state.spare_queue = taken
    return taken.count

cdef inline void queue_push(ConnectionQueue *queue, ConnectionState *connection) noexcept nogil:
    queue.items[queue.count] = connection
    queue.count += 1

cdef enum:
    DEFERRED_LIMIT = 64             # with so many deferred answers, no further request of the connection is taken
    OUTPUT_LIMIT = 131072           # with more unsent bytes than this, no further request of the connection is taken
    READ_ROOM_MINIMUM = 16384       # a shared slab with less room than this is replaced before a read

cdef enum:
    # The weight of a request that is served, or of a write to a socket: as much as that of the bytes that are received
    # or sent in the same time.
    WORK_WEIGHT = 16384

cdef inline int64_t monotonic_us() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <int64_t> now.tv_sec * 1000000 + now.tv_nsec // 1000

cdef inline void read_clock(ReactorState *state) noexcept nogil:
    """Reads the clock at the beginning of a wake-up, one pass of the reactor's loop."""
    state.now_us = monotonic_us()
    state.monotonic_ms = state.now_us // 1000
    state.span_from_us = state.now_us
    state.span_weight = 0


cdef inline void work_begin(ReactorState *state) noexcept nogil:
    """Begins a span of work now; the time of the Python code that ran before is not divided among connections."""
    if state.work_note != NULL:
        state.span_from_us = monotonic_us()
        state.span_weight = 0


cdef inline void work_count(ReactorState *state, ConnectionState *connection, int64_t weight) noexcept nogil:
    if state.work_note != NULL:
        state.span_weight += weight
        state.work_note(state.gate_context, connection, weight)


cdef inline void work_end(ReactorState *state, int64_t now_us) noexcept nogil:
    """Divides the time of a span of work among connections. The span ends at `now_us`, or now if it is 0."""
    if state.work_settle != NULL:
        state.work_settle(state.gate_context, now_us)


cdef inline void gather_end(ReactorState *state) noexcept nogil:
    """Makes the gate answer the gathered requests, and divides the time of the span of work among connections."""
    if state.gate_finish != NULL:
        state.gate_finish(state.gate_context)
    work_end(state, 0)


cdef int state_initialize(ReactorState *state, size_t cache_limit) noexcept nogil
cdef void state_release(ReactorState *state) noexcept nogil
cdef int state_reserve_queues(ReactorState *state, size_t connections) noexcept nogil
# Returns whether no client waits for an answer.
cdef bint state_is_drained(ReactorState *state) noexcept nogil
cdef int state_ensure_input_room(ReactorState *state) noexcept nogil

cdef void connection_open(ReactorState *state, ConnectionState *connection, int fd) noexcept nogil
cdef void connection_open_outgoing(ReactorState *state, ConnectionState *connection, int fd,
                                   int32_t max_response_bytes) noexcept nogil
# Ends the wait for the connection to be established, or closes it with the socket's error.
cdef void connection_established(ReactorState *state, ConnectionState *connection) noexcept nogil
cdef void connection_close(ReactorState *state, ConnectionState *connection, int reason, int64_t detail) noexcept nogil
cdef void connections_linger(ReactorState *state) noexcept nogil
cdef void connection_touch(ReactorState *state, ConnectionState *connection) noexcept nogil
cdef void connection_release_input(ConnectionState *connection) noexcept nogil
cdef void connection_want_input(ReactorState *state, ConnectionState *connection) noexcept nogil
cdef void connection_want_output(ReactorState *state, ConnectionState *connection) noexcept nogil

cdef void request_reserve(ReactorState *state, ConnectionState *connection, int64_t size) noexcept nogil
cdef void request_done(ReactorState *state, ConnectionState *connection) noexcept nogil
cdef void gathered_request_answered(ReactorState *state, ConnectionState *connection) noexcept nogil
cdef void answer_defer(ReactorState *state, ConnectionState *connection, DeferredAnswer *answer,
                       int api_key) noexcept nogil
cdef void answer_sent(ReactorState *state, ConnectionState *connection, int api_key) noexcept nogil

cdef uint8_t *output_reserve(ReactorState *state, size_t size) noexcept nogil
cdef int output_commit(ReactorState *state, ConnectionState *connection, size_t size) noexcept nogil
cdef OutputChunk *output_append(ReactorState *state, ConnectionState *connection, int64_t size) noexcept nogil
cdef void output_chunk_release(ReactorState *state, OutputChunk *chunk) noexcept nogil
