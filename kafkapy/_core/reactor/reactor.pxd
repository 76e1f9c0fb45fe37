# The reactor: the loop over connections, watched descriptors and timers.
from libc.stdint cimport int64_t

from kafkapy._core.reactor.reactor_connection cimport Connection
from kafkapy._core.reactor.reactor_state cimport ReactorState
from kafkapy._core.reactor.reactor_watch cimport WatchState
from kafkapy._core.tls.events cimport epoll_event
from kafkapy._core.tls.handshake_pool cimport HandshakePool
from kafkapy._core.tls.tls_context cimport TlsSource
from kafkapy._core.tls.tls_session cimport TlsSession

cdef enum:
    EVENTS_PER_WAKEUP = 64

cdef class Reactor:
    cdef ReactorState native        # the state that the gate shares
    cdef WatchState wakeup
    cdef epoll_event events[EVENTS_PER_WAKEUP]
    cdef int64_t next_deadline_ms   # the timing wheel's; -1: none
    cdef int64_t stop_deadline_ms   # -1: not stopping
    cdef int64_t last_busy_ms       # time of the last wake-up that received something
    cdef int64_t seen_received      # bytes_received at that time
    cdef bint wakeup_sent           # the eventfd was written and not read yet; guarded by the interpreter lock
    cdef bint posted_here           # the reactor's thread itself posted
    cdef bint watch_ready
    cdef bint interrupted           # epoll_wait was interrupted: signal handlers are due
    cdef public object dispatch
    cdef public object on_close
    cdef public object on_handshake
    cdef object on_callback_error
    cdef object on_gate             # the gate's own callback; keeps the gate alive
    cdef object posted              # deque
    cdef object wheel
    cdef HandshakePool handshake_pool  # None until the first TLS connection
    cdef dict connections           # id -> Connection
    cdef list watches

    cdef int enter(self, Connection connection, int fd, str peer_host, int peer_port, str connection_id) except -1
    cdef TlsSession *open_session(self, TlsSource tls, Connection connection, int fd, str name,
                                  bint verifies) except? NULL
    cdef int stop_tls(self) except -1
    cdef int loop(self) except -1
    cdef bint handle_wakeup(self, int count) except -1 nogil
    cdef void end_wakeup(self) noexcept nogil
    cdef int timeout_ms(self) noexcept nogil
    cdef bint needs_python(self) noexcept nogil
    cdef void read_phase(self, int count) noexcept nogil
    cdef void take_event(self, epoll_event *event) noexcept nogil
    cdef bint python_phase(self) except -1
    cdef int settle(self) except -1
    cdef int run_watches(self) except -1
    cdef int run_handshakes(self) except -1
    cdef int run_posted(self) except -1
    cdef int run_timers(self) except -1
    cdef int call(self, callback) except -1
    cdef int expire_idle(self) except -1
    cdef int advance_answered(self) except -1
    cdef int dispatch_round(self) except -1
    cdef begin_stop(self, int64_t grace_ms)
    cdef bint stop_is_due(self) noexcept nogil
    cdef int check_owner(self) except -1
