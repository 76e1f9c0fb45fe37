# The threads on which handshakes run, and their queues.
from kafkapy._core.tls.threads cimport pthread_cond_t, pthread_mutex_t
from kafkapy._core.tls.tls_session cimport TlsSession

cdef struct HandshakeQueues:
    pthread_mutex_t lock            # guards everything below
    pthread_cond_t not_empty
    TlsSession *first               # waiting for a thread, in order
    TlsSession *last
    TlsSession *first_done          # whose step is complete, in order
    TlsSession *last_done
    bint stopping
    int event_fd                    # readable when a step is complete

cdef class HandshakePool:
    cdef HandshakeQueues native
    cdef list threads

# Passes the session to the pool until `pool_take_done` returns it.
cdef void pool_submit(HandshakeQueues *queues, TlsSession *session) noexcept nogil
# Return the sessions whose step is complete, or has not begun, as a list linked by `next`.
cdef TlsSession *pool_take_done(HandshakeQueues *queues) noexcept nogil
cdef TlsSession *pool_take_waiting(HandshakeQueues *queues) noexcept nogil
