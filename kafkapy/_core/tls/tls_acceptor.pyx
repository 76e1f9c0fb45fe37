"""A thread that accepts the clients of a listener with TLS, and refuses those that do not speak TLS.

It looks at the first byte that a client sends, so that a flood of other clients takes no time of the reactor's thread.
It runs without the interpreter lock, at the niceness of the threads for handshakes:

    listening socket -> silent: nothing has arrived yet -> ready: TLS may begin, or it was silent too long -> reactor
                                                        -> refused: an alert was sent -> closed after a delay

Every queue has a fixed number of places. If all places of silent clients are occupied, the oldest of these clients
becomes ready. While the reactor does not take the ready clients, because a limit is reached, no client is accepted.
"""

import os
import threading

from libc.errno cimport EAGAIN, EINTR, EMFILE, ENFILE, ENOBUFS, ENOMEM, errno
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec
from posix.unistd cimport close, read, write

from kafkapy._core.tls.events cimport (
    EFD_CLOEXEC, EFD_NONBLOCK, EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLLIN, EPOLLRDHUP, epoll_create1,
    epoll_ctl, epoll_event, epoll_wait, eventfd,
)
from kafkapy._core.tls.threads cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock)
from kafkapy._core.tls.tls_session cimport (
    HANDSHAKE_RECORD, PLAINTEXT_ALERT_BYTES, tls_plaintext_alert, tls_plaintext_reason)

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
    LISTENING = SILENT_PLACES       # an event belongs to a silent client, whose place it names, or to one of these two
    WAKE = SILENT_PLACES + 1
    EVENTS = 32
    ACCEPTS_PER_TURN = 32
    DROPPED_BYTES = 16384           # read from a refused client, so that the end of its connection resets nothing
    HOST_BYTES = 128
    SERVICE_BYTES = 16
    SILENCE_MS = 300                # how long a client may be silent before the reactor has to watch it
    REFUSALS_MS = 100               # how often the reactor is notified of refusals
    EXHAUSTED_MS = 100              # how long no client is accepted when there are no descriptors

PLAINTEXT_REASON = tls_plaintext_reason().decode()


cdef class TlsAcceptor:
    """The clients of one listening socket. Its methods are called by the reactor's thread."""

    def __cinit__(self):
        memset(&self.native, 0, sizeof(AcceptorState))
        self.native.epoll_fd = self.native.event_fd = self.native.wake_fd = -1
        pthread_mutex_init(&self.native.lock, NULL)

    def __init__(self, int listening_fd, int64_t refusal_delay_ms):
        """Prepares to accept clients of a listening, non-blocking socket, which the caller closes after `stop`.

        The connection of a refused client is closed after `refusal_delay_ms`.
        """
        cdef epoll_event event
        if self.native.epoll_fd >= 0:
            raise RuntimeError("already initialized")
        self.native.listening_fd = listening_fd
        self.native.refusal_delay_ms = refusal_delay_ms
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

    @property
    def event_fd(self):
        """A descriptor that is readable while `take` or `take_report` may have something."""
        return self.native.event_fd

    def take(self):
        """Returns the next client that may speak TLS, or None if there is none.

        A client is a tuple: the socket's descriptor, which the caller then owns, the host and port of the peer, and the
        host and port of the broker.
        """
        cdef Client client
        cdef Address local
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
        read_local_address(client.fd, &local)
        return (client.fd, *address_text(&client.peer), *address_text(&local))

    cdef void settle(self) noexcept:
        """Makes `event_fd` unreadable until the next notification.

        The caller must hold the lock, and must have found that no client is ready.
        """
        cdef uint64_t count
        if self.native.is_notified:
            self.native.is_notified = False
            read(self.native.event_fd, &count, sizeof(count))

    def take_report(self):
        """Returns (number of refused clients, addresses of the first refused clients, errno), all since the last call.

        The errno is that of a failure to accept clients, or 0 if there was none.

        The addresses of a client are the host and port of the peer and of the broker.
        """
        cdef Refusal reports[REPORTS]
        cdef unsigned int index, count
        cdef int64_t refused_count
        cdef int error
        pthread_mutex_lock(&self.native.lock)
        reports = self.native.reports
        count = self.native.report_count
        refused_count = self.native.refused_count
        error = self.native.error
        self.native.report_count = 0
        self.native.refused_count = 0
        self.native.error = 0
        pthread_mutex_unlock(&self.native.lock)
        found = [(*address_text(&reports[index].peer), *address_text(&reports[index].local)) for index in range(count)]
        return refused_count, found, error


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
                silence_ended(state, &state.silent[events[index].data.u64], now)
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
    if state.first_silent != state.end_silent:
        due = state.silent[state.first_silent % SILENT_PLACES].due_ms
    if state.first_refused != state.end_refused:
        due = sooner(due, state.refused[state.first_refused % REFUSED_PLACES].due_ms)
    if state.paused_until_ms > now:
        due = sooner(due, state.paused_until_ms)
    if state.refused_count:
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
            receive(state, &client, now, False)
        elif errno == EAGAIN:
            return
        elif errno in (EMFILE, ENFILE, ENOBUFS, ENOMEM):
            pthread_mutex_lock(&state.lock)
            state.error = errno
            notify(state)
            pthread_mutex_unlock(&state.lock)
            state.paused_until_ms = now + EXHAUSTED_MS
            return


cdef void receive(AcceptorState *state, Client *client, int64_t now, bint is_last) noexcept nogil:
    """Makes a client ready, refuses it, or closes its connection if it has left, according to the first byte received.

    A client that has sent nothing has to wait. If `is_last` is set, such a client becomes ready instead, and the
    reactor checks its first byte later.
    """
    cdef uint8_t byte
    cdef ssize_t count = recv(client.fd, &byte, 1, MSG_PEEK)
    if count > 0 and byte != HANDSHAKE_RECORD:
        refuse(state, client, now)
    elif count > 0 or (is_last and count < 0 and errno == EAGAIN):
        make_ready(state, client)
    elif count < 0 and errno in (EAGAIN, EINTR):
        wait_for_bytes(state, client, now)
    else:
        close(client.fd)


cdef void wait_for_bytes(AcceptorState *state, Client *client, int64_t now) noexcept nogil:
    cdef unsigned int place
    cdef epoll_event event
    while state.end_silent - state.first_silent >= SILENT_PLACES:
        end_first_silence(state, now)
    place = state.end_silent % SILENT_PLACES
    client.due_ms = now + SILENCE_MS
    state.silent[place] = client[0]
    state.end_silent += 1
    event.events = <uint32_t> EPOLLIN | <uint32_t> EPOLLRDHUP
    event.data.u64 = place
    epoll_ctl(state.epoll_fd, EPOLL_CTL_ADD, client.fd, &event)


cdef void silence_ended(AcceptorState *state, Client *place, int64_t now) noexcept nogil:
    """Handles a silent client that has sent something, has left or was silent too long, and frees its place."""
    cdef Client client = place[0]
    if client.fd < 0:
        return
    place.fd = -1
    epoll_ctl(state.epoll_fd, EPOLL_CTL_DEL, client.fd, NULL)
    receive(state, &client, now, True)


cdef void end_first_silence(AcceptorState *state, int64_t now) noexcept nogil:
    silence_ended(state, &state.silent[state.first_silent % SILENT_PLACES], now)
    state.first_silent += 1


cdef void make_ready(AcceptorState *state, Client *client) noexcept nogil:
    pthread_mutex_lock(&state.lock)
    state.ready[state.end_ready % READY_PLACES] = client[0]
    state.end_ready += 1
    notify(state)
    pthread_mutex_unlock(&state.lock)


cdef void refuse(AcceptorState *state, Client *client, int64_t now) noexcept nogil:
    """Sends an alert to a client that does not speak TLS. Its connection is closed after the delay of refusals."""
    cdef uint8_t dropped[DROPPED_BYTES]
    cdef Refusal *reported
    recv(client.fd, dropped, DROPPED_BYTES, MSG_DONTWAIT)
    send(client.fd, tls_plaintext_alert(), PLAINTEXT_ALERT_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT)
    if state.end_refused - state.first_refused == REFUSED_PLACES:
        close_first_refused(state)
    client.due_ms = now + state.refusal_delay_ms
    state.refused[state.end_refused % REFUSED_PLACES] = client[0]
    state.end_refused += 1
    pthread_mutex_lock(&state.lock)
    state.refused_count += 1
    if state.report_count < REPORTS:
        reported = &state.reports[state.report_count]
        reported.peer = client.peer
        read_local_address(client.fd, &reported.local)
        state.report_count += 1
    pthread_mutex_unlock(&state.lock)


cdef void close_first_refused(AcceptorState *state) noexcept nogil:
    close(state.refused[state.first_refused % REFUSED_PLACES].fd)
    state.first_refused += 1


cdef void expire(AcceptorState *state, int64_t now) noexcept nogil:
    """Makes clients ready that were silent too long, and closes refused clients whose delay is over."""
    cdef Client *first
    while state.first_silent != state.end_silent:
        first = &state.silent[state.first_silent % SILENT_PLACES]
        if first.fd >= 0 and first.due_ms > now:
            break
        end_first_silence(state, now)
    while state.first_refused != state.end_refused:
        if state.refused[state.first_refused % REFUSED_PLACES].due_ms > now:
            break
        close_first_refused(state)


cdef void report(AcceptorState *state, int64_t now) noexcept nogil:
    """Notifies the reactor of refusals, unless it was notified a short time ago."""
    pthread_mutex_lock(&state.lock)
    if state.refused_count and now - state.reported_ms >= REFUSALS_MS:
        state.reported_ms = now
        notify(state)
    pthread_mutex_unlock(&state.lock)


cdef void close_all(AcceptorState *state) noexcept nogil:
    watch_listening(state, False)
    while state.first_silent != state.end_silent:
        if state.silent[state.first_silent % SILENT_PLACES].fd >= 0:
            close(state.silent[state.first_silent % SILENT_PLACES].fd)
        state.first_silent += 1
    while state.first_refused != state.end_refused:
        close_first_refused(state)
    while state.first_ready != state.end_ready:
        close(state.ready[state.first_ready % READY_PLACES].fd)
        state.first_ready += 1
