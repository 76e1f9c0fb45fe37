# TLS connections of the reactor: handshakes, and the ciphertext of the output.
from libc.stdint cimport int64_t, uint8_t

from kafkapy._core.reactor.reactor_state cimport ConnectionState, ReactorState
from kafkapy._core.tls.handshake_pool cimport HandshakeQueues
from kafkapy._core.tls.tls_session cimport TlsSession

cdef extern from "<sys/uio.h>" nogil:
    cdef struct iovec:
        void *iov_base
        size_t iov_len
    ssize_t readv(int fd, const iovec *vector, int count)

# Prepares the reactor for TLS connections. Returns 0, or -1 if memory is short.
cdef int tls_prepare(ReactorState *state, HandshakeQueues *pool) noexcept nogil
# Begins the handshake of an outgoing connection, which has been established.
cdef void tls_begin(ReactorState *state, ConnectionState *connection) noexcept nogil
# Continues the handshake of a client's new connection, which may have begun on another thread, or have ended there.
cdef void tls_adopted(ReactorState *state, ConnectionState *connection) noexcept nogil
# Continues the connections whose step in the pool is complete.
cdef void tls_continue(ReactorState *state) noexcept nogil
# Permits a connection whose handshake is complete to exchange frames.
cdef void tls_accept(ReactorState *state, ConnectionState *connection) noexcept nogil
cdef void tls_release_pool(ReactorState *state) noexcept nogil
cdef ssize_t tls_receive(ReactorState *state, ConnectionState *connection, iovec *vector, int count) noexcept nogil
cdef int tls_encrypt(ReactorState *state, ConnectionState *connection, int64_t *detail) noexcept nogil
cdef void tls_output_sent(ReactorState *state, ConnectionState *connection) noexcept nogil
