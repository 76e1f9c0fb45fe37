"""A thread that accepts the clients of a listener with TLS, runs their handshakes, and refuses those that fail.

Floods of clients that do not speak TLS, or whose handshakes fail, thus take almost no time of the reactor's thread. The
thread runs without the interpreter lock, at the niceness of the threads for handshakes:

    listening socket -> waiting: for bytes of the handshake -> ready: the handshake is complete, or took long -> reactor
                                                            -> refused: an alert was sent -> closed after a delay

Every queue has a fixed number of places. If all places of waiting clients are occupied, the oldest of these clients
becomes ready. The reactor continues the handshake of a client that was too slow, so that the limits on connections and
on idle time apply to it. While the reactor does not take the ready clients, because a limit is reached, no client is
accepted. It can also tell the thread to begin no handshake (`hold`): clients become ready when their first byte has
arrived.
"""

import threading
from collections import namedtuple

from libc.errno cimport EAGAIN, EINTR, EMFILE, ENFILE, ENOBUFS, ENOMEM, errno
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport memcpy, memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec
from posix.unistd cimport close, read, write

from kafkapy._core.tls.events cimport (
    EFD_CLOEXEC, EFD_NONBLOCK, EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLLIN, EPOLLRDHUP, epoll_create1,
    epoll_ctl, epoll_event, epoll_wait, eventfd,
)
from kafkapy._core.tls.threads cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock)
from kafkapy._core.tls.tls_context cimport BegunSession, TlsContext, begun_session
from kafkapy._core.tls.tls_session cimport (
    HANDSHAKE_RECORD, PLAINTEXT_ALERT_BYTES, TLS_BROKEN, TLS_OK, TLS_WANTS_INPUT, TlsSession, buffer_size,
    tls_exchange, tls_plaintext_alert, tls_plaintext_reason, tls_prepare_sessions, tls_session_create,
    tls_session_free,
)

from kafkapy._core.tls.handshake_pool import lower_priority

cdef extern from "<sys/socket.h>" nogil:
    enum: SOCK_NONBLOCK, SOCK_CLOEXEC, MSG_PEEK, MSG_DONTWAIT, MSG_NOSIGNAL
    cdef struct sockaddr:
        pass
    int accept4(int fd, sockaddr *address, unsigned int *size, int flags)
    int getsockname(int fd, sockaddr *address, unsigned int *size)
    ssize_t recv(int fd, void *buffer, size_t size, int flags)
    ssize_t send(int fd, const void *buffer, size_t size, int flags)

cdef extern from "<netdb.h>" nogil:
    enum: NI_NUMERICHOST, NI_NUMERICSERV
    int getnameinfo(const sockaddr *address, unsigned int size, char *host, unsigned int host_size, char *service,
                    unsigned int service_size, int flags)

cdef enum:
    LISTENING = WAITING_PLACES      # an event belongs to a waiting client, whose place it names, or to one of these two
    WAKE = WAITING_PLACES + 1
    EVENTS = 32
    ACCEPTS_PER_TURN = 32
    DROPPED_BYTES = 16384           # read from a refused client, so that the end of its connection resets nothing
    HOST_BYTES = 128
    SERVICE_BYTES = 16
    WAITING_MS = 300                # how long a handshake may take before the reactor has to continue it
    REFUSALS_MS = 100               # how often the reactor is notified of refusals
    SECOND_MS = 1000
    EXHAUSTED_MS = 100              # how long no client is accepted when there are no descriptors

# What becomes of a client that has sent something or left.
cdef enum Outcome:
    WAITS = 0                       # more bytes are needed
    READY = 1
    IS_STRANGER = 2                 # it does not speak TLS
    HAS_FAILED = 3
    HAS_LEFT = 4

PLAINTEXT_REASON = tls_plaintext_reason().decode()

# A refused client: why, and the host and port of the peer and of the broker.
Refused = namedtuple("Refused", "reason host port local_host local_port")
# The number of clients that were refused, and some of them.
RefusalReport = namedtuple("RefusalReport", "total first")


cdef class TlsAcceptor:
    """The clients of one listening socket. Its methods are called by the reactor's thread."""

    def __cinit__(self):
        memset(&self.native, 0, sizeof(AcceptorState))
        self.native.epoll_fd = self.native.event_fd = self.native.wake_fd = -1
        pthread_mutex_init(&self.native.lock, NULL)
        pthread_mutex_init(&self.native.context_lock, NULL)

    def __init__(self, int listening_fd, int64_t refusal_delay_ms, int64_t waiting_ms=WAITING_MS):
        """Prepares to accept clients of a listening, non-blocking socket, which the caller closes after `stop`.

        The connection of a refused client is closed after `refusal_delay_ms`. A client whose handshake is not complete
        after `waiting_ms` becomes ready.
        """
        cdef epoll_event event
        if self.native.epoll_fd >= 0:
            raise RuntimeError("already initialized")
        self.native.listening_fd = listening_fd
        self.native.refusal_delay_ms = refusal_delay_ms
        self.native.waiting_ms = waiting_ms
        self.native.epoll_fd = epoll_create1(EPOLL_CLOEXEC)
        self.native.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
        self.native.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
        event.events = EPOLLIN
        event.data.u64 = WAKE
        if (self.native.epoll_fd < 0 or self.native.event_fd < 0 or self.native.wake_fd < 0
                or epoll_ctl(self.native.epoll_fd, EPOLL_CTL_ADD, self.native.wake_fd, &event)):
            raise OSError(errno, "a listener with TLS cannot be set up")

    def __dealloc__(self):
        for fd in (self.native.epoll_fd, self.native.event_fd, self.native.wake_fd):
            if fd >= 0:
                close(fd)
        pthread_mutex_destroy(&self.native.lock)
        pthread_mutex_destroy(&self.native.context_lock)

    def start(self, str name):
        """Starts the thread, which is called `name`."""
        self.thread = threading.Thread(target=self.serve, name=name, daemon=True)
        self.thread.start()

    def serve(self):
        lower_priority()
        with nogil:
            serve_clients(&self.native)

    def stop(self):
        """Ends the thread, and closes the connections of all clients that were not taken. Does nothing before `start`.
        """
        if self.thread is None:
            return
        pthread_mutex_lock(&self.native.lock)
        self.native.stopping = True
        pthread_mutex_unlock(&self.native.lock)
        wake(&self.native)
        self.thread.join()
        self.thread = None

    def use(self, TlsContext context not None):
        """Runs the handshakes of later clients on the thread, with this context. Any thread may call it.

        Without a context, clients become ready when their first byte has arrived.
        """
        if not tls_prepare_sessions():
            raise MemoryError()
        previous = self.context  # which a session may be made of, until the lock is held
        pthread_mutex_lock(&self.native.context_lock)
        self.context = context
        self.native.context = context.native
        self.native.checks_peer = context.asks_for_certificates()
        pthread_mutex_unlock(&self.native.context_lock)

    def hold(self, bint is_held):
        """Says whether the thread begins no handshake, because a limit is reached and the reactor takes no client."""
        pthread_mutex_lock(&self.native.lock)
        self.native.is_held = is_held
        pthread_mutex_unlock(&self.native.lock)

    @property
    def event_fd(self):
        """A descriptor that is readable while `take` or `take_report` may have something."""
        return self.native.event_fd

    def take(self):
        """Returns the next client, or None if there is none.

        A client is its descriptor, which the caller owns, the host and port of the peer and of the broker, and the
        BegunSession of its handshake; None instead of a session if the handshake has not begun.
        """
        cdef Client client
        cdef Address local
        cdef BegunSession session
        cdef bint was_full
        pthread_mutex_lock(&self.native.lock)
        if self.native.first_ready == self.native.end_ready:
            self.settle()
            pthread_mutex_unlock(&self.native.lock)
            return None
        was_full = is_full(&self.native)
        client = self.native.ready[self.native.first_ready % READY_PLACES]
        self.native.first_ready += 1
        pthread_mutex_unlock(&self.native.lock)
        if was_full:
            wake(&self.native)
        session = None if client.session == NULL else begun_session(client.session)
        read_local_address(client.fd, &local)
        return (client.fd, *address_text(&client.peer), *address_text(&local), session)

    cdef void settle(self) noexcept:
        """Makes `event_fd` unreadable until the next notification.

        The caller must hold the lock, and must have found that no client is ready.
        """
        cdef uint64_t count
        if self.native.is_notified:
            self.native.is_notified = False
            read(self.native.event_fd, &count, sizeof(count))

    def take_report(self):
        """Returns what has happened since the last call: a RefusalReport of clients that did not speak TLS, one of
        failed handshakes, and the errno with which no client could be accepted, or 0."""
        cdef int error
        strangers = self.report_of(&self.native.strangers)
        failures = self.report_of(&self.native.failures)
        pthread_mutex_lock(&self.native.lock)
        error = self.native.error
        self.native.error = 0
        pthread_mutex_unlock(&self.native.lock)
        return strangers, failures, error

    cdef object report_of(self, Report *report):
        cdef Refusal first[NAMED_CLIENTS]
        cdef unsigned int index, named
        cdef int64_t count
        pthread_mutex_lock(&self.native.lock)
        count, named = report.count, report.named
        memcpy(first, report.first, named * sizeof(Refusal))
        report.count = 0
        report.named = 0
        pthread_mutex_unlock(&self.native.lock)
        return RefusalReport(count, [refused(&first[index]) for index in range(named)])


cdef object refused(Refusal *refusal):
    reason = (<bytes> refusal.reason).decode("utf-8", "replace")
    return Refused(reason, *address_text(&refusal.peer), *address_text(&refusal.local))


cdef tuple address_text(Address *address):
    cdef char host[HOST_BYTES]
    cdef char service[SERVICE_BYTES]
    if getnameinfo(<sockaddr *> address.bytes, address.size, host, HOST_BYTES, service, SERVICE_BYTES,
                   NI_NUMERICHOST | NI_NUMERICSERV):
        return "", 0
    return (<bytes> host).decode(), int(<bytes> service)


cdef void read_local_address(int fd, Address *address) noexcept nogil:
    address.size = ADDRESS_BYTES
    if getsockname(fd, <sockaddr *> address.bytes, &address.size):
        address.size = 0


# ---- the thread

cdef int64_t now_ms() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <int64_t> now.tv_sec * 1000 + now.tv_nsec // 1000000


cdef void wake(AcceptorState *state) noexcept nogil:
    cdef uint64_t one = 1
    write(state.wake_fd, &one, sizeof(one))


cdef void notify(AcceptorState *state) noexcept nogil:
    """Makes `event_fd` readable. The caller must hold the lock."""
    cdef uint64_t one = 1
    if not state.is_notified:
        state.is_notified = True
        write(state.event_fd, &one, sizeof(one))


cdef inline bint is_full(AcceptorState *state) noexcept nogil:
    """Returns whether no client may be accepted until the reactor has taken one. The caller must hold the lock.
    """
    return state.end_ready - state.first_ready >= READY_LIMIT


cdef void serve_clients(AcceptorState *state) noexcept nogil:
    cdef epoll_event events[EVENTS]
    cdef uint64_t number
    cdef int64_t now = now_ms()
    cdef int count, index
    while True:
        pthread_mutex_lock(&state.lock)
        if state.stopping:
            pthread_mutex_unlock(&state.lock)
            break
        watch_listening(state, not is_full(state) and now >= state.paused_until_ms)
        pthread_mutex_unlock(&state.lock)
        count = epoll_wait(state.epoll_fd, events, EVENTS, timeout_ms(state, now))
        now = now_ms()
        for index in range(count):
            if events[index].data.u64 == WAKE:
                read(state.wake_fd, &number, sizeof(number))
            elif events[index].data.u64 == LISTENING:
                accept_clients(state, now)
            else:
                continue_client(state, &state.waiting[events[index].data.u64], now, False)
        expire(state, now)
        report(state, now)
    close_all(state)


cdef void watch_listening(AcceptorState *state, bint is_wanted) noexcept nogil:
    cdef epoll_event event
    if is_wanted != state.is_watching:
        event.events = EPOLLIN
        event.data.u64 = LISTENING
        epoll_ctl(state.epoll_fd, EPOLL_CTL_ADD if is_wanted else EPOLL_CTL_DEL, state.listening_fd, &event)
        state.is_watching = is_wanted


cdef int timeout_ms(AcceptorState *state, int64_t now) noexcept nogil:
    """Returns how many ms the thread may wait for an event, or -1 for any time.

    It has to act when the time of the first silent or refused client ends, a pause of accepting ends, or the reactor is
    to be notified of refusals.
    """
    cdef int64_t due = -1
    if state.first_waiting != state.end_waiting:
        due = state.waiting[state.first_waiting % WAITING_PLACES].due_ms
    if state.first_refused != state.end_refused:
        due = sooner(due, state.refused[state.first_refused % REFUSED_PLACES].due_ms)
    if state.paused_until_ms > now:
        due = sooner(due, state.paused_until_ms)
    if has_report(state):
        due = sooner(due, state.reported_ms + REFUSALS_MS)
    if due < 0:
        return -1
    return 0 if due <= now else <int> (due - now)


cdef inline int64_t sooner(int64_t due, int64_t other) noexcept nogil:
    return other if due < 0 or other < due else due


cdef void accept_clients(AcceptorState *state, int64_t now) noexcept nogil:
    cdef Client client
    cdef bint has_place
    cdef int turn
    for turn in range(ACCEPTS_PER_TURN):
        pthread_mutex_lock(&state.lock)
        has_place = not is_full(state)
        pthread_mutex_unlock(&state.lock)
        if not has_place:
            return
        client.peer.size = ADDRESS_BYTES
        client.fd = accept4(state.listening_fd, <sockaddr *> client.peer.bytes, &client.peer.size,
                            SOCK_NONBLOCK | SOCK_CLOEXEC)
        if client.fd >= 0:
            client.session = NULL
            receive(state, &client, now)
        elif errno == EAGAIN:
            return
        elif errno in (EMFILE, ENFILE, ENOBUFS, ENOMEM):
            pthread_mutex_lock(&state.lock)
            state.error = errno
            notify(state)
            pthread_mutex_unlock(&state.lock)
            state.paused_until_ms = now + EXHAUSTED_MS
            return


cdef void receive(AcceptorState *state, Client *client, int64_t now) noexcept nogil:
    """Decides what becomes of a client that was just accepted."""
    cdef Outcome outcome = advance(state, client)
    if outcome == WAITS:
        wait_for_bytes(state, client, now)
    else:
        settle_client(state, client, outcome, now)


cdef Outcome advance(AcceptorState *state, Client *client) noexcept nogil:
    """Looks at the first byte of a client, or runs a step of its handshake, if something has arrived."""
    cdef uint8_t byte
    cdef ssize_t count
    cdef int status
    if client.session == NULL:
        count = recv(client.fd, &byte, 1, MSG_PEEK)
        if count <= 0:
            return WAITS if count < 0 and errno in (EAGAIN, EINTR) else HAS_LEFT
        if byte != HANDSHAKE_RECORD:
            return IS_STRANGER
        if not begin_handshake(state, client):
            return READY
    status = tls_exchange(client.session)
    if status == TLS_WANTS_INPUT:
        return READY if buffer_size(&client.session.output) else WAITS
    if status == TLS_OK:
        return READY
    return HAS_FAILED if status == TLS_BROKEN else HAS_LEFT


cdef bint begin_handshake(AcceptorState *state, Client *client) noexcept nogil:
    """Gives the client a session; returns False if the reactor has to do so."""
    cdef bint is_held
    pthread_mutex_lock(&state.lock)
    is_held = state.is_held
    pthread_mutex_unlock(&state.lock)
    if is_held:
        return False
    pthread_mutex_lock(&state.context_lock)
    if state.context != NULL:
        client.session = tls_session_create(state.context, True, client.fd, NULL)
        if client.session != NULL:
            client.session.checks_peer = state.checks_peer
    pthread_mutex_unlock(&state.context_lock)
    return client.session != NULL


cdef void settle_client(AcceptorState *state, Client *client, Outcome outcome, int64_t now) noexcept nogil:
    """Moves a client that no longer waits, and whose place is free, to another queue, or closes its connection."""
    if outcome == READY:
        make_ready(state, client)
    elif outcome == IS_STRANGER:
        note_refusal(state, &state.strangers, client, tls_plaintext_reason(), now)
        drop_input(client)
        send(client.fd, tls_plaintext_alert(), PLAINTEXT_ALERT_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT)
        close_later(state, client, now)
    elif outcome == HAS_FAILED:
        note_refusal(state, &state.failures, client, failure_of(client.session), now)
        tls_session_free(client.session)
        drop_input(client)
        close_later(state, client, now)
    else:
        close_client(client)


cdef const char *failure_of(TlsSession *session) noexcept nogil:
    if session.error == NULL:
        return "the TLS library reports no reason"
    return session.error


cdef void wait_for_bytes(AcceptorState *state, Client *client, int64_t now) noexcept nogil:
    cdef unsigned int place
    cdef epoll_event event
    while state.end_waiting - state.first_waiting >= WAITING_PLACES:
        end_first_wait(state, now)
    place = state.end_waiting % WAITING_PLACES
    client.due_ms = now + state.waiting_ms
    state.waiting[place] = client[0]
    state.end_waiting += 1
    event.events = <uint32_t> EPOLLIN | <uint32_t> EPOLLRDHUP
    event.data.u64 = place
    epoll_ctl(state.epoll_fd, EPOLL_CTL_ADD, client.fd, &event)


cdef void continue_client(AcceptorState *state, Client *place, int64_t now, bint is_last) noexcept nogil:
    """Handles a waiting client that has sent something or left; with `is_last` it waits no longer.

    Frees its place unless it has to wait further.
    """
    cdef Client client = place[0]
    cdef Outcome outcome
    if client.fd < 0:
        return
    outcome = advance(state, &client)
    if outcome == WAITS and not is_last:
        place.session = client.session
        return
    place.fd = -1
    epoll_ctl(state.epoll_fd, EPOLL_CTL_DEL, client.fd, NULL)
    settle_client(state, &client, READY if outcome == WAITS else outcome, now)


cdef void end_first_wait(AcceptorState *state, int64_t now) noexcept nogil:
    continue_client(state, &state.waiting[state.first_waiting % WAITING_PLACES], now, True)
    state.first_waiting += 1


cdef void make_ready(AcceptorState *state, Client *client) noexcept nogil:
    pthread_mutex_lock(&state.lock)
    state.ready[state.end_ready % READY_PLACES] = client[0]
    state.end_ready += 1
    notify(state)
    pthread_mutex_unlock(&state.lock)


cdef void drop_input(Client *client) noexcept nogil:
    cdef uint8_t dropped[DROPPED_BYTES]
    recv(client.fd, dropped, DROPPED_BYTES, MSG_DONTWAIT)


cdef void close_client(Client *client) noexcept nogil:
    tls_session_free(client.session)
    close(client.fd)


cdef void close_later(AcceptorState *state, Client *client, int64_t now) noexcept nogil:
    """Closes the connection of a refused client, which has no session, after the delay of refusals."""
    if state.end_refused - state.first_refused == REFUSED_PLACES:
        close_first_refused(state)
    client.due_ms = now + state.refusal_delay_ms
    client.session = NULL
    state.refused[state.end_refused % REFUSED_PLACES] = client[0]
    state.end_refused += 1


cdef void note_refusal(AcceptorState *state, Report *report, Client *client, const char *reason,
                       int64_t now) noexcept nogil:
    """Counts a refused client. Notes its address and the reason, if few clients were named in this second."""
    cdef Refusal *noted
    pthread_mutex_lock(&state.lock)
    report.count += 1
    if now - report.second_ms >= SECOND_MS:
        report.second_ms = now
        report.named_in_second = 0
    if report.named < NAMED_CLIENTS and report.named_in_second < NAMED_CLIENTS:
        noted = &report.first[report.named]
        noted.peer = client.peer
        read_local_address(client.fd, &noted.local)
        snprintf(noted.reason, ERROR_BYTES, "%s", reason)
        report.named += 1
        report.named_in_second += 1
    pthread_mutex_unlock(&state.lock)


cdef void close_first_refused(AcceptorState *state) noexcept nogil:
    close(state.refused[state.first_refused % REFUSED_PLACES].fd)
    state.first_refused += 1


cdef void expire(AcceptorState *state, int64_t now) noexcept nogil:
    """Makes clients ready that were silent too long, and closes refused clients whose delay is over."""
    cdef Client *first
    while state.first_waiting != state.end_waiting:
        first = &state.waiting[state.first_waiting % WAITING_PLACES]
        if first.fd >= 0 and first.due_ms > now:
            break
        end_first_wait(state, now)
    while state.first_refused != state.end_refused:
        if state.refused[state.first_refused % REFUSED_PLACES].due_ms > now:
            break
        close_first_refused(state)


cdef inline bint has_report(AcceptorState *state) noexcept nogil:
    return state.strangers.count or state.failures.count


cdef void report(AcceptorState *state, int64_t now) noexcept nogil:
    """Notifies the reactor of refusals, unless it was notified a short time ago."""
    pthread_mutex_lock(&state.lock)
    if has_report(state) and now - state.reported_ms >= REFUSALS_MS:
        state.reported_ms = now
        notify(state)
    pthread_mutex_unlock(&state.lock)


cdef void close_all(AcceptorState *state) noexcept nogil:
    watch_listening(state, False)
    while state.first_waiting != state.end_waiting:
        if state.waiting[state.first_waiting % WAITING_PLACES].fd >= 0:
            close_client(&state.waiting[state.first_waiting % WAITING_PLACES])
        state.first_waiting += 1
    while state.first_refused != state.end_refused:
        close_first_refused(state)
    while state.first_ready != state.end_ready:
        close_client(&state.ready[state.first_ready % READY_PLACES])
        state.first_ready += 1
