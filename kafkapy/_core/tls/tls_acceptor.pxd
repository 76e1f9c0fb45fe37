# The thread that accepts the clients of a listener with TLS, and begins their handshakes.
from libc.stdint cimport int64_t

from kafkapy._core.tls.openssl cimport SSL_CTX
from kafkapy._core.tls.threads cimport pthread_mutex_t
from kafkapy._core.tls.tls_context cimport TlsContext
from kafkapy._core.tls.tls_session cimport ERROR_BYTES, TlsSession

cdef enum:
    ADDRESS_BYTES = 28              # of the longest address, sockaddr_in6
    WAITING_PLACES = 256            # clients that have to send more before their handshakes are complete
    READY_LIMIT = 256               # with so many clients that the reactor has not taken, none is accepted
    READY_PLACES = 512              # so many, since each waiting client may become ready in addition
    REFUSED_PLACES = 512            # refused clients whose connections are not closed yet
    NAMED_CLIENTS = 16              # refused clients in a second whose addresses are reported; others are only counted

cdef struct Address:
    char bytes[ADDRESS_BYTES]
    unsigned int size

cdef struct Client:
    int fd                          # -1: the place is free, because the client has left or was moved
    int64_t due_ms                  # when its time in this queue ends
    Address peer
    TlsSession *session             # owned; NULL: its handshake has not begun

cdef struct Refusal:
    Address peer
    Address local
    char reason[ERROR_BYTES]

# The clients that were refused for one kind of reason.
cdef struct Report:
    int64_t count                   # since the reactor took the last report
    unsigned int named
    Refusal first[NAMED_CLIENTS]
    int64_t second_ms               # when the present second began, and how many clients were named in it
    unsigned int named_in_second

cdef struct AcceptorState:
    int listening_fd                # borrowed
    int epoll_fd
    int event_fd                    # readable: there is a client, or a report
    int wake_fd                     # wakes the thread
    int64_t refusal_delay_ms
    int64_t waiting_ms
    # Of the thread alone.
    Client waiting[WAITING_PLACES]  # in the order of their arrival
    unsigned int first_waiting
    unsigned int end_waiting
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
    bint is_held                    # no handshake begins on the thread
    Report strangers                # clients that did not speak TLS
    Report failures                 # of handshakes
    int error                       # why no client could be accepted, such as EMFILE; 0: no error

    # Guarded by `context_lock`.
    pthread_mutex_t context_lock
    SSL_CTX *context                # borrowed from the TlsAcceptor's `context`; NULL: no handshake begins on the thread
    bint checks_peer

cdef class TlsAcceptor:
    cdef AcceptorState native
    cdef TlsContext context
    cdef object thread
    cdef object report_of(self, Report *report)
    cdef void settle(self) noexcept
