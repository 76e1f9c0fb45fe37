"""The reactor: one thread that owns every connection and runs every handler that cannot block.

    one pass (a wake-up):  read all (no lock) -> gate -> Python code for all that need it -> write all (no lock)

Phase 1 (`reactor_input`) reads up to 64 ready sockets, splits frames and presents them to the gate, the compiled code
that serves usual Produce and Fetch requests. Phase 2 enters the interpreter once. It reports closed connections, and
runs the callbacks of watched descriptors, posted callbacks and expired timers. Then it calls `dispatch` with all
requests that the gate did not serve. It repeats the call for pipelined requests, a limited number of times. Phase 3
(`reactor_output`) writes all answers. Sockets are edge triggered: no system call is needed to stop reading from a
client over its quota (Kafka's muting). Phase 2 passes responses on outgoing connections to callbacks.

Other threads may call `post`, `stop` and `Connection.close`; everything else may be called only by the reactor's
thread, which runs `run`. Before `run`, the thread that sets up the broker may call all methods.
"""

import sys
from collections import deque

from cpython.exc cimport PyErr_CheckSignals
from cpython.pythread cimport PyThread_get_thread_ident
from cpython.ref cimport PyObject
from libc.errno cimport EINTR, errno
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from posix.unistd cimport close, read, write

from kafkapy._core.reactor.reactor_connection cimport Connection, OutgoingConnection, Request, release_garbage
from kafkapy._core.reactor.reactor_input cimport input_advance, input_serve, input_serve_queued, intake_is_blocked
from kafkapy._core.reactor.reactor_output cimport output_flush_queued
from kafkapy._core.reactor.reactor_tls cimport (
    tls_accept, tls_adopted, tls_begin, tls_continue, tls_prepare, tls_release_pool)
from kafkapy._core.reactor.reactor_state cimport (
    CLOSE_BY_PEER, CLOSE_ERROR, CLOSE_IDLE, CLOSE_INVALID_SIZE, CLOSE_LOCAL, CLOSE_NO_MEMORY, CLOSE_SHORT_FILE,
    CLOSE_SHUTDOWN, CLOSE_TLS, GATE_WAITS, WATCH_CALLBACK, WATCH_HANDSHAKES, WATCH_WAKEUP, ConnectionState,
    ReactorState, connection_close, connection_established, connection_open, connection_open_outgoing, connection_touch,
    connection_want_output, connections_linger, gather_end, monotonic_us, queue_push, queue_take, read_clock,
    state_initialize, state_is_drained, state_release, state_reserve_queues, work_begin, work_end,
)
from kafkapy._core.reactor.reactor_watch cimport Watch, WatchState, open_watch
from kafkapy._core.reactor.request_meter cimport (
    FOLLOWER_FETCH_METER, METER_BUCKETS, METERS, RequestMeter, meters_settle)
from kafkapy._core.bytes.slab cimport slab_pool_trim
from kafkapy._core.tls.events cimport (
    EFD_CLOEXEC, EFD_NONBLOCK, EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLLERR, EPOLLET, EPOLLHUP, EPOLLIN, EPOLLOUT, EPOLLRDHUP,
    epoll_create1, epoll_ctl, epoll_event, epoll_wait, eventfd,
)
from kafkapy._core.tls.handshake_pool cimport HandshakePool
from kafkapy._core.tls.session_facts cimport session_error
from kafkapy._core.tls.tls_context cimport TlsSource
from kafkapy._core.tls.tls_session cimport TlsSession

from kafkapy._core.reactor.timing_wheel import TimingWheel

cdef enum:
    DISPATCH_ROUNDS = 8             # calls of `dispatch` in one Python phase, for pipelined requests
    CACHE_BYTES = 33554432          # free slabs kept while requests arrive
    CACHE_IDLE_BYTES = 1048576      # free slabs kept after QUIET_MS without requests
    QUIET_MS = 1000
    HANDSHAKE_THREADS = 1

# Makes the classes importable from this module.
globals().update(Connection=Connection, OutgoingConnection=OutgoingConnection, Request=Request, Watch=Watch)

# The key of the fetches of followers in `request_meters`, where the key of Fetch counts them too.
FOLLOWER_FETCHES = FOLLOWER_FETCH_METER

# Why a connection was closed, for `on_close`.
CLOSED_BY_PEER = CLOSE_BY_PEER
CLOSED_BY_ERROR = CLOSE_ERROR
CLOSED_FOR_INVALID_SIZE = CLOSE_INVALID_SIZE
CLOSED_WHEN_IDLE = CLOSE_IDLE
CLOSED_LOCALLY = CLOSE_LOCAL
CLOSED_FOR_SHORT_FILE = CLOSE_SHORT_FILE
CLOSED_WITHOUT_MEMORY = CLOSE_NO_MEMORY
CLOSED_AT_SHUTDOWN = CLOSE_SHUTDOWN
CLOSED_BY_TLS = CLOSE_TLS


def bucket_bounds():
    """Returns the exclusive upper ends, in microseconds, of all buckets of `request_meters` except the last."""
    bounds = [1, 2, 3, 4]
    for exponent in range(2, METER_BUCKETS // 4 + 1):
        bounds += [(1 << exponent) // 4 * part for part in (5, 6, 7, 8)]
    return bounds[: METER_BUCKETS - 1]


def _print_callback_error(error):
    sys.excepthook(type(error), error, error.__traceback__)


cdef class Reactor:
    """Owns the epoll instance, all connections and the timing wheel. Used by one thread, except `post`, `stop`,
    `idle_us` and `request_meters`. Invariants: a connection in `connections` is open or waits in the queue of closed
    connections; every queue has room for all connections."""

    def __cinit__(self):
        self.native.epoll_fd = -1
        self.native.wakeup_fd = -1
        if state_initialize(&self.native, CACHE_BYTES):
            raise MemoryError()

    def __init__(self, dispatch, *, max_request_bytes=104857600, queued_max_request_bytes=-1,
                 connections_max_idle_ms=600000, on_close=None, on_handshake=None, on_callback_error=None):
        """Creates the epoll instance. `dispatch(requests)` is called with a list of requests, and must answer each, now
        or later, by `request.connection.respond`. `on_close(connection, kind)` is called once for each closed
        connection; `kind` is a CloseReason, such as CLOSED_BY_PEER. `on_callback_error(error)` is called with each
        exception of a posted callback or a timer. `on_handshake(connection, error)` is called when the TLS handshake of
        a client has ended, before any of its requests is read. After a success `error` is None. After a failure `error`
        is the reason, and the callee has to close the connection."""
        cdef epoll_event event
        if self.native.epoll_fd >= 0:
            raise RuntimeError("already initialized")
        self.dispatch = dispatch
        self.on_close = on_close
        self.on_handshake = on_handshake
        self.on_callback_error = on_callback_error or _print_callback_error
        self.native.max_request_bytes = max_request_bytes
        self.native.queued_max_request_bytes = queued_max_request_bytes
        self.native.max_idle_ms = connections_max_idle_ms
        read_clock(&self.native)
        self.posted = deque()
        self.connections = {}
        self.watches = []
        self.wheel = TimingWheel(start_ms=self.native.monotonic_ms)
        self.next_deadline_ms = -1
        self.stop_deadline_ms = -1
        self.native.epoll_fd = epoll_create1(EPOLL_CLOEXEC)
        self.native.wakeup_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
        self.wakeup.kind = WATCH_WAKEUP
        event.events = EPOLLIN
        event.data.ptr = &self.wakeup
        if (self.native.epoll_fd < 0 or self.native.wakeup_fd < 0
                or epoll_ctl(self.native.epoll_fd, EPOLL_CTL_ADD, self.native.wakeup_fd, &event)):
            raise OSError(errno, "the reactor's epoll instance cannot be set up")

    def __dealloc__(self):
        if self.native.epoll_fd >= 0:
            close(self.native.epoll_fd)
        if self.native.wakeup_fd >= 0:
            close(self.native.wakeup_fd)
        state_release(&self.native)

    # ---- any thread

    def post(self, callback):
        """Calls `callback()` on the reactor's thread in the next pass of its loop, in the order of posting.
        Any thread may call `post`."""
        cdef uint64_t one = 1
        self.posted.append(callback)
        if self.native.thread == <unsigned long> PyThread_get_thread_ident():
            self.posted_here = True
        elif not self.wakeup_sent:
            self.wakeup_sent = True
            write(self.native.wakeup_fd, &one, sizeof(one))

    def stop(self, int64_t grace_ms=0):
        """Makes `run` return when no request is in process and all answers are sent, after `grace_ms` at the latest. No
        more requests are read. Any thread may call it."""
        self.post(lambda: self.begin_stop(grace_ms))

    # ---- owner thread

    @property
    def monotonic_ms(self):
        """The monotonic clock at the start of this pass of the loop, in milliseconds."""
        return self.native.monotonic_ms

    def schedule(self, int64_t delay_ms, callback):
        """Calls `callback()` after `delay_ms` ms. Returns a TimerEntry, whose `cancel()` prevents the call."""
        cdef int64_t deadline
        self.check_owner()
        if self.native.thread == 0:
            read_clock(&self.native)
        deadline = self.native.monotonic_ms + delay_ms
        entry = self.wheel.add(deadline, callback)
        if self.next_deadline_ms < 0 or deadline < self.next_deadline_ms:
            self.next_deadline_ms = deadline
        return entry

    def watch(self, int fd, callback):
        """Calls `callback()` in each pass of the loop while `fd` is readable. The `close` of the result ends this."""
        self.check_owner()
        return open_watch(self.native.epoll_fd, self.watches, fd, callback)

    def adopt(self, int fd, listener, str peer_host, int peer_port, str connection_id, bint is_gated=True,
              TlsSource tls=None):
        """Takes over the descriptor of a connected, non-blocking socket and returns its Connection. `listener`, any
        object, becomes an attribute of the connection. If `is_gated` is False, all requests go to `dispatch`. If `tls`
        is given, the client must begin with a TLS handshake, or has begun it if `tls` is a BegunSession."""
        cdef Connection connection = Connection.__new__(Connection)
        cdef TlsSession *session = self.open_session(tls, connection, fd, None, False)
        self.enter(connection, fd, peer_host, peer_port, connection_id)
        connection.listener = listener
        connection_open(&self.native, connection.native, fd)
        connection.native.tls = session
        connection.native.ungated = not is_gated
        connection.native.connection = <PyObject *> connection
        if session != NULL:
            tls_adopted(&self.native, connection.native)
        return connection

    def adopt_outgoing(self, int fd, str peer_host, int peer_port, str connection_id, *, on_response, on_closed,
                       int32_t max_response_bytes, TlsSource tls=None, str tls_server_name=None,
                       bint tls_verifies_name=True):
        """Takes over the descriptor of a non-blocking socket that is connecting, and returns its OutgoingConnection.
        The loop calls `on_response` with each response, as an object of the class Request (any received frame). It
        calls `on_closed` once with the connection, whose `close_errno` is not 0 if it was refused or broken. A response
        that is larger than `max_response_bytes` closes the connection. If `tls` is given, the connection is encrypted.
        If `tls_verifies_name` is set, the server's certificate has to be for `tls_server_name`, a host name or an IP
        address."""
        cdef OutgoingConnection connection = OutgoingConnection.__new__(OutgoingConnection)
        cdef TlsSession *session = self.open_session(tls, connection, fd, tls_server_name, tls_verifies_name)
        self.enter(connection, fd, peer_host, peer_port, connection_id)
        connection.on_response = on_response
        connection.on_closed = on_closed
        connection_open_outgoing(&self.native, connection.native, fd, max_response_bytes)
        connection.native.tls = session
        connection.native.connection = <PyObject *> connection
        return connection

    cdef TlsSession *open_session(self, TlsSource tls, Connection connection, int fd, str name,
                                  bint verifies) except? NULL:
        """Returns a TLS session, which the connection owns; NULL if `tls` is None. The first call starts the handshake
        threads. If `verifies`, a server's certificate has to be for `name`."""
        cdef epoll_event event
        cdef HandshakePool pool
        self.check_owner()
        if tls is None:
            return NULL
        if self.native.tls == NULL:
            pool = HandshakePool()
            if tls_prepare(&self.native, &pool.native):
                raise MemoryError()
            self.handshake_pool = pool
            event.events = EPOLLIN
            event.data.ptr = self.native.tls
            if epoll_ctl(self.native.epoll_fd, EPOLL_CTL_ADD, pool.native.event_fd, &event):
                raise OSError(errno, "epoll_ctl")
        self.native.reports_handshakes = self.on_handshake is not None
        self.handshake_pool.start(HANDSHAKE_THREADS)
        connection.native.tls = tls.open_session(fd, connection.native, name, verifies)
        return connection.native.tls

    cdef int stop_tls(self) except -1:
        if self.handshake_pool is not None:
            self.handshake_pool.stop()
            tls_release_pool(&self.native)
        return 0

    cdef int enter(self, Connection connection, int fd, str peer_host, int peer_port, str connection_id) except -1:
        """Adds a connected socket to epoll and to `connections`, and reserves its room in the reactor's queues. Raises
        an error if one of these fails, before the connection counts as open."""
        cdef epoll_event event
        self.check_owner()
        if connection_id in self.connections:
            raise ValueError(f"connection id {connection_id} is in use")
        if state_reserve_queues(&self.native, <size_t> len(self.connections) + 1):
            raise MemoryError()
        connection.reactor = self
        connection.shared = &self.native
        connection.id = connection_id
        connection.peer_host = peer_host
        connection.peer_port = peer_port
        event.events = <uint32_t> EPOLLIN | <uint32_t> EPOLLOUT | <uint32_t> EPOLLRDHUP | <uint32_t> EPOLLET
        event.data.ptr = connection.native
        if epoll_ctl(self.native.epoll_fd, EPOLL_CTL_ADD, fd, &event):
            raise OSError(errno, "epoll_ctl")
        self.connections[connection_id] = connection
        return 0

    def pause_intake(self):
        """Stops reading and dispatching requests until `resume_intake`; partly received ones may be completed."""
        self.native.intake_paused = True

    def resume_intake(self):
        self.native.intake_paused = False

    def idle_order(self):
        """Returns the open connections of clients, not outgoing ones, least recently used first."""
        cdef ConnectionState *native = self.native.oldest
        cdef list order = []
        while native != NULL:
            if not native.is_outgoing:
                order.append(<Connection> native.connection)
            native = native.newer
        return order

    def counters(self):
        """Returns counters since the start, and some present values, by name, such as "requests_received" and
        "connections"."""
        return {
            "requests_received": self.native.requests_received,
            "requests_gated": self.native.requests_gated,
            "responses_received": self.native.responses_received,
            "bytes_received": self.native.bytes_received,
            "bytes_sent": self.native.bytes_sent,
            "connections": self.native.connection_count,
            "connections_closed": self.native.connections_closed,
            "connections_muted": self.native.muted_count,
            "requests_in_process": self.native.in_process_count,
            "request_bytes": self.native.reserved_bytes,
            "slab_bytes": self.native.pool.allocated_bytes,
            "wakeups": self.native.wakeups, "python_phases": self.native.python_phases,
        }

    def idle_us(self):
        """Returns the µs that the reactor has spent waiting since its start, including the present wait; any thread may
        call it."""
        cdef int64_t waiting_since_us = self.native.waiting_since_us
        return self.native.idle_us + (monotonic_us() - waiting_since_us if waiting_since_us else 0)

    def request_meters(self):
        """Returns the counts and times of the requests answered since the start, by API. Any thread may call it. The
        result is a list of (API key, number of requests, bytes of the requests, microseconds, numbers of requests by
        bucket of duration). `bucket_bounds` returns the bounds of the buckets. The key 127 means requests without a
        known API, and FOLLOWER_FETCHES fetches of followers."""
        cdef RequestMeter *meter
        cdef int key, bucket
        cdef list found = []
        for key in range(METERS):
            meter = self.native.meters[key]
            if meter != NULL:
                buckets = [meter.buckets[bucket] for bucket in range(METER_BUCKETS)]
                found.append((key, meter.requests, meter.request_bytes, meter.time_us, buckets))
        return found

    def run(self):
        """Serves until `stop`, then closes all connections. The calling thread is the owner during the call."""
        if self.native.thread != 0:
            raise RuntimeError("the reactor runs already")
        self.native.thread = <unsigned long> PyThread_get_thread_ident()
        try:
            self.loop()
        finally:
            with nogil:
                connections_linger(&self.native)
            self.close_connections()
            self.native.draining = False
            self.stop_deadline_ms = -1
            self.native.thread = 0

    def step(self, int64_t monotonic_ms):
        """Runs one pass of the loop at this time of a simulated clock, without waiting; returns whether another is due.

        Simulations call it instead of `run`, and override `schedule`, whose timers follow the machine's clock.
        """
        cdef int count
        self.native.now_us = monotonic_ms * 1000
        self.native.monotonic_ms = monotonic_ms
        with nogil:
            count = epoll_wait(self.native.epoll_fd, self.events, EVENTS_PER_WAKEUP, 0)
            self.handle_wakeup(count)
        return self.timeout_ms() == 0

    def close_connections(self):
        """Closes all connections without sending the answers that wait to be sent."""
        while self.native.oldest != NULL:
            connection_close(&self.native, self.native.oldest, CLOSE_SHUTDOWN, 0)
        queue_take(&self.native, &self.native.input_queue)
        queue_take(&self.native, &self.native.python_queue)
        queue_take(&self.native, &self.native.answered_queue)
        queue_take(&self.native, &self.native.output_queue)
        queue_take(&self.native, &self.native.handshake_queue)
        self.stop_tls()
        for connection in self.connections.values():
            (<Connection> connection).forget_queues()
        self.settle()

    cdef int check_owner(self) except -1:
        if self.native.thread != 0 and self.native.thread != <unsigned long> PyThread_get_thread_ident():
            raise RuntimeError("only the reactor's thread may do this: post() it")
        return 0

    # ---- the loop

    cdef int loop(self) except -1:
        cdef int count
        cdef bint finished = False
        with nogil:
            self.native.waiting_since_us = monotonic_us()
            while not finished:
                count = epoll_wait(self.native.epoll_fd, self.events, EVENTS_PER_WAKEUP, self.timeout_ms())
                read_clock(&self.native)
                self.native.idle_us += self.native.now_us - self.native.waiting_since_us
                finished = self.handle_wakeup(count)
        return 0

    cdef bint handle_wakeup(self, int count) except -1 nogil:
        """Runs one pass of the loop for `count` events of epoll (-1: failed). Returns whether the loop has to end."""
        cdef bint finished = False
        self.native.waiting_since_us = 0
        self.native.wakeups += 1
        if count < 0:
            self.interrupted = errno == EINTR
            count = 0
        self.read_phase(count)
        if self.needs_python():
            with gil:
                finished = self.python_phase()
            work_begin(&self.native)
        output_flush_queued(&self.native)
        self.end_wakeup()
        return finished

    cdef void end_wakeup(self) noexcept nogil:
        """Ends a pass of the loop: adds its duration to the meters, for each request that compiled code (the gate) has
        answered. The answers to these requests have been sent now."""
        cdef int64_t ended_us = monotonic_us()
        self.native.waiting_since_us = ended_us
        meters_settle(&self.native.pending_meters, ended_us - self.native.now_us)
        work_end(&self.native, ended_us)

    cdef int timeout_ms(self) noexcept nogil:
        """Returns how many ms epoll may wait: 0 when there is work, otherwise the time until the next deadline, -1
        without one."""
        cdef ReactorState *native = &self.native
        cdef int64_t deadline = self.next_deadline_ms
        cdef int64_t idle
        if native.input_queue.count and (native.input_urgent or not intake_is_blocked(native)) and not native.draining:
            return 0
        if (native.python_queue.count or native.output_queue.count or native.closed_queue.count
                or native.answered_queue.count or native.garbage != NULL or native.gate_due or self.posted_here
                or self.stop_is_due()):
            return 0
        if native.max_idle_ms >= 0 and native.oldest != NULL:
            idle = native.oldest.last_active_ms + native.max_idle_ms
            if deadline < 0 or idle < deadline:
                deadline = idle
        if self.stop_deadline_ms >= 0 and (deadline < 0 or self.stop_deadline_ms < deadline):
            deadline = self.stop_deadline_ms
        if native.pool.cached_bytes > CACHE_IDLE_BYTES:
            idle = self.last_busy_ms + QUIET_MS
            if deadline < 0 or idle < deadline:
                deadline = idle
        if deadline < 0:
            return -1
        deadline -= native.monotonic_ms
        return 0 if deadline < 0 else <int> deadline if deadline < 0x7fffffff else 0x7fffffff

    cdef bint needs_python(self) noexcept nogil:
        cdef ReactorState *native = &self.native
        return (native.python_queue.count or native.closed_queue.count or native.garbage != NULL or native.gate_due
                or native.handshake_queue.count or self.watch_ready or self.posted_here or self.interrupted
                or self.wakeup.ready or self.stop_deadline_ms >= 0
                or (self.next_deadline_ms >= 0 and native.monotonic_ms >= self.next_deadline_ms)
                or (native.max_idle_ms >= 0 and native.oldest != NULL
                    and native.monotonic_ms - native.oldest.last_active_ms >= native.max_idle_ms))

    cdef void read_phase(self, int count) noexcept nogil:
        """Runs phase 1: serves queued connections, handles `count` events of epoll, and appends produced batches."""
        cdef ReactorState *native = &self.native
        cdef int event
        input_serve_queued(native)
        for event in range(count):
            self.take_event(&self.events[event])
        gather_end(native)
        if native.bytes_received != self.seen_received:
            self.seen_received = native.bytes_received
            self.last_busy_ms = native.monotonic_ms
        elif native.pool.cached_bytes > CACHE_IDLE_BYTES and native.monotonic_ms - self.last_busy_ms >= QUIET_MS:
            slab_pool_trim(native.pool, CACHE_IDLE_BYTES)

    cdef void take_event(self, epoll_event *event) noexcept nogil:
        """Handles one event of epoll, for a watched descriptor or a connection. The struct to which `event` points
        begins with a field that says which of them it is."""
        cdef int kind = (<int *> event.data.ptr)[0]
        cdef ConnectionState *connection
        cdef uint64_t posted
        if kind == WATCH_CALLBACK:
            (<WatchState *> event.data.ptr).ready = True
            self.watch_ready = True
        elif kind == WATCH_WAKEUP:
            read(self.native.wakeup_fd, &posted, sizeof(posted))
            self.wakeup.ready = True
        elif kind == WATCH_HANDSHAKES:
            read(self.native.tls.pool.event_fd, &posted, sizeof(posted))
            tls_continue(&self.native)
        else:
            connection = <ConnectionState *> event.data.ptr
            if connection.closed:
                return
            if event.events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP):
                connection.readable = True
            if event.events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP):
                connection.hangup = True
            if connection.is_outgoing:
                # A broken connection is found by the read, which also returns what arrived before.
                if connection.is_connecting and event.events & (EPOLLOUT | EPOLLERR | EPOLLHUP):
                    connection_established(&self.native, connection)
                    if connection.tls != NULL and not connection.closed:
                        tls_begin(&self.native, connection)
            elif event.events & (EPOLLERR | EPOLLHUP) and (connection.in_process or connection.output_head != NULL):
                connection_close(&self.native, connection, CLOSE_BY_PEER if event.events & EPOLLHUP else CLOSE_ERROR, 0)
                return
            if event.events & EPOLLOUT and connection.blocked:
                connection.blocked = False
                connection_want_output(&self.native, connection)
            input_serve(&self.native, connection)

    # ---- phase 2

    cdef bint python_phase(self) except -1:
        """Runs phase 2, all Python code of a pass: callbacks, timers and dispatch. Returns whether the loop has to
        end."""
        cdef int rounds = 0
        self.native.python_phases += 1
        if self.interrupted:
            self.interrupted = False
            PyErr_CheckSignals()
        self.settle()
        if self.native.gate_due:
            self.native.gate_due = False
            self.call(self.on_gate)
        if self.watch_ready:
            self.run_watches()
        if self.native.handshake_queue.count:
            self.run_handshakes()
        self.run_posted()
        if self.next_deadline_ms >= 0 and self.native.monotonic_ms >= self.next_deadline_ms:
            self.run_timers()
        self.expire_idle()
        self.advance_answered()
        while self.native.python_queue.count and rounds < DISPATCH_ROUNDS:
            self.dispatch_round()
            self.advance_answered()
            rounds += 1
        return self.stop_is_due()

    cdef int settle(self) except -1:
        """Releases the Python objects whose bytes were sent, and calls `on_close` for closed connections."""
        cdef ReactorState *native = &self.native
        cdef ConnectionState *closed
        cdef Connection connection
        cdef size_t waiting
        cdef size_t index
        release_garbage(native)
        if not native.closed_queue.count:
            return 0
        waiting = queue_take(native, &native.closed_queue)
        gone = []
        for index in range(waiting):
            closed = native.spare_queue.items[index]
            if (closed.queued_input or closed.queued_python or closed.queued_answered or closed.queued_output
                    or closed.queued_handshake):
                queue_push(&native.closed_queue, closed)  # it stays until the other queues have skipped it
            else:
                connection = <Connection> closed.connection
                del self.connections[connection.id]
                gone.append(connection)
        for connection in gone:
            try:
                if connection.native.is_outgoing:
                    (<OutgoingConnection> connection).on_closed(connection)
                elif self.on_close is not None:
                    self.on_close(connection, connection.native.close_reason)
            except Exception as error:
                self.on_callback_error(error)
        return 0

    cdef int call(self, callback) except -1:
        try:
            callback()
        except Exception as error:
            self.on_callback_error(error)
        return 0

    cdef int run_watches(self) except -1:
        cdef Watch watch
        self.watch_ready = False
        for watch in self.watches.copy():
            if watch.native.ready:
                watch.native.ready = False
                self.call(watch.callback)
        return 0

    cdef int run_handshakes(self) except -1:
        """Calls `on_handshake` for the clients' TLS handshakes that have ended, and begins to read from connections
        whose handshake succeeded."""
        cdef ReactorState *native = &self.native
        cdef Connection connection
        cdef list ended = []
        cdef size_t index
        for index in range(queue_take(native, &native.handshake_queue)):
            native.spare_queue.items[index].queued_handshake = False
            ended.append(<Connection> native.spare_queue.items[index].connection)
        for connection in ended:
            error = session_error(connection.native.tls)
            if connection.native.closed and error is None:
                continue
            try:
                self.on_handshake(connection, error)
            except Exception as raised:
                self.on_callback_error(raised)
                connection.close("the end of its TLS handshake could not be handled")
            if not connection.native.closed and not connection.native.closing and error is None:
                tls_accept(native, connection.native)
        return 0

    cdef int run_posted(self) except -1:
        """Runs the callbacks posted so far. Callbacks that these post run in the next pass of the loop."""
        cdef Py_ssize_t waiting
        self.wakeup.ready = False
        self.wakeup_sent = False
        self.posted_here = False
        waiting = len(self.posted)
        while waiting > 0:
            self.call(self.posted.popleft())
            waiting -= 1
        return 0

    cdef int run_timers(self) except -1:
        self.next_deadline_ms = -1
        for callback in self.wheel.advance(self.native.monotonic_ms):
            self.call(callback)
        self.next_deadline_ms = self.wheel.next_deadline_ms()
        return 0

    cdef int expire_idle(self) except -1:
        """Closes connections that were idle for longer than connections_max_idle_ms, and have no request in process."""
        cdef ReactorState *native = &self.native
        cdef ConnectionState *oldest = native.oldest
        while (native.max_idle_ms >= 0 and oldest != NULL
               and native.monotonic_ms - oldest.last_active_ms >= native.max_idle_ms):
            if (oldest.in_process or oldest.deferred) and oldest.output_head == NULL and not oldest.closing:
                connection_touch(native, oldest)
            else:
                connection_close(native, oldest, CLOSE_IDLE, 0)
            oldest = native.oldest
        return 0

    cdef int advance_answered(self) except -1:
        """Continues each connection whose request Python has answered: presents the next frames to the compiled code
        that serves usual requests (the gate). Must not be called by a Python callback."""
        cdef ReactorState *native = &self.native
        cdef ConnectionState *answered
        cdef size_t count = queue_take(native, &native.answered_queue)
        cdef size_t index
        if count == 0:
            return 0
        work_begin(native)
        for index in range(count):
            answered = native.spare_queue.items[index]
            answered.queued_answered = False
            input_advance(native, answered)
        gather_end(native)
        return 0

    cdef int dispatch_round(self) except -1:
        """Calls `dispatch` with the requests that wait for Python, and `on_response` with each response; one frame at
        most from each connection."""
        cdef ReactorState *native = &self.native
        cdef ConnectionState *waiting
        cdef Request request
        cdef list requests = []
        cdef list responses = []
        cdef size_t count = queue_take(native, &native.python_queue)
        cdef size_t index
        for index in range(count):
            waiting = native.spare_queue.items[index]
            waiting.queued_python = False
            if waiting.closed:
                continue
            if waiting.first_deferred != NULL:
                waiting.held_back = True
                continue
            request = Request.__new__(Request)
            request.connection = <Connection> waiting.connection
            request.slab = waiting.frame.slab
            request.data = waiting.frame.data
            request.size = waiting.frame.size
            request.received_ms = waiting.frame.received_us // 1000
            request.has_invalid_size = waiting.frame.has_invalid_size
            request.waits = waiting.frame.verdict == GATE_WAITS
            waiting.frame.slab = NULL  # the slab's pin now belongs to the request
            (responses if waiting.is_outgoing else requests).append(request)
        for request in responses:
            try:
                (<OutgoingConnection> request.connection).deliver(request)
            except Exception as error:
                self.on_callback_error(error)
                request.connection.close("its response could not be handled")
        if not requests:
            return 0
        try:
            self.dispatch(requests)
        except Exception as error:
            self.on_callback_error(error)
            for request in requests:
                if request.connection.native.in_process:
                    request.connection.close("its request could not be dispatched")
        return 0

    cdef begin_stop(self, int64_t grace_ms):
        if self.stop_deadline_ms < 0:
            self.stop_deadline_ms = self.native.monotonic_ms + grace_ms
            self.native.draining = True

    cdef bint stop_is_due(self) noexcept nogil:
        """Returns whether `stop` was called, and all requests are answered and sent or the grace period is over."""
        return self.stop_deadline_ms >= 0 and (
            self.native.monotonic_ms >= self.stop_deadline_ms or state_is_drained(&self.native))
