# The thread that accepts the clients of a listener with TLS.
from libc.stdint cimport int64_t

from kafkapy._core.tls.threads cimport pthread_mutex_t

cdef enum:
    ADDRESS_BYTES = 28              # of the longest address, sockaddr_in6
    SILENT_PLACES = 256             # clients that have sent nothing yet
    READY_LIMIT = 256               # with so many clients that the reactor has not taken, none is accepted
    READY_PLACES = 512              # so many, since each silent client may become ready in addition
    REFUSED_PLACES = 512            # refused clients whose connections are not closed yet
    REPORTS = 8                     # refused clients whose addresses are reported at once; others are only counted

cdef struct Address:
    char bytes[ADDRESS_BYTES]
    unsigned int size

cdef struct Client:
    int fd                          # -1: the place is free, because the client has left or was moved
    int64_t due_ms                  # when its time in this queue ends
    Address peer

cdef struct Refusal:
    Address peer
    Address local

cdef struct AcceptorState:
    int listening_fd                # borrowed
    int epoll_fd
    int event_fd                    # readable: there is a client, or a report
    int wake_fd                     # wakes the thread
    int64_t refusal_delay_ms
    # Of the thread alone.
    Client silent[SILENT_PLACES]    # have sent nothing yet, in the order of their arrival
    unsigned int first_silent
    unsigned int end_silent
    Client refused[REFUSED_PLACES]  # wait to be closed
    unsigned int first_refused
    unsigned int end_refused
    bint is_watching                # the listening socket is in the epoll instance
    int64_t paused_until_ms         # after an error for want of descriptors
    int64_t reported_ms             # when the reactor was last notified of refusals
    # Guarded by `lock`.
    pthread_mutex_t lock
    bint stopping
    bint is_notified                # `event_fd` is readable
    Client ready[READY_PLACES]      # wait for the reactor
    unsigned int first_ready
    unsigned int end_ready
    Refusal reports[REPORTS]
    unsigned int report_count
    int64_t refused_count           # since the last report
    int error                       # why no client could be accepted, such as EMFILE; 0: no error

cdef class TlsAcceptor:
    cdef AcceptorState native
    cdef object thread
    cdef void settle(self) noexcept
