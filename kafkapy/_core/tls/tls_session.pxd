# One side of a TLS connection without Python objects: ciphertext of a socket <-> plaintext.
#
# A session belongs to the reactor's thread, except while `in_pool`: then only a thread of the handshake pool may use
# it. Received bytes come from `received`, and then from the socket if `may_receive`. Ciphertext is appended to
# `output`, which the reactor sends.
from libc.stdint cimport int64_t, uint8_t

from kafkapy._core.tls.openssl cimport SSL, SSL_CTX

cdef enum:
    # Received at once: four records of the largest size. Freed whenever the session waits for the peer.
    READ_BUFFER_BYTES = 65664
    HANDSHAKE_RECORD = 0x16         # the first byte from every client that speaks TLS
    PLAINTEXT_ALERT_BYTES = 7
    ERROR_BYTES = 512               # of an error's text
    HANDSHAKE_ROOM = 16384          # received from one peer for one step of its handshake

cdef enum TlsPhase:
    TLS_HANDSHAKE = 0
    TLS_ESTABLISHED = 1             # the handshake is complete, and Python has not been notified yet
    TLS_OPEN = 2
    TLS_FAILED = 3                  # the handshake has failed: `error` has the reason

cdef enum TlsStatus:
    TLS_OK = 0
    TLS_WANTS_INPUT = 1
    TLS_CLOSED = 2                  # by close_notify, or by the end of the stream
    TLS_BROKEN = 3                  # `error` has the reason; an alert for the peer is in `output`
    TLS_SOCKET_ERROR = 4            # `socket_errno`

cdef struct TlsBuffer:              # owned; allocated bytes between `start` and `end` wait
    uint8_t *data
    size_t start
    size_t end
    size_t capacity

cdef struct TlsSession:
    SSL *ssl                        # owned; NULL once ended
    bint is_server
    bint checks_peer                # a server that asks for certificates
    int fd                          # borrowed
    int phase
    int status                      # of the last step or read
    bint in_pool
    void *owner                     # the connection; NULL once it is closed
    TlsSession *next                # in a list of the pool
    bint was_readable               # the socket may hold bytes that are not read while the handshake waits
    bint may_receive                # the socket may be read
    bint hangup                     # the peer ended its stream: a short read does not mean "drained"
    bint at_end                     # the stream has ended
    bint has_more                   # a read stopped at its budget
    bint has_written                # at least one record was sent
    int socket_errno
    int64_t budget                  # bytes that may still be received in this turn
    int64_t handshake_bytes         # received before the handshake was complete
    TlsBuffer received              # read from the socket, and not yet taken by OpenSSL
    TlsBuffer output                # ciphertext to send
    int64_t encrypted               # bytes of the connection's output whose ciphertext is in `output`
    int verify_code                 # why the peer's certificate was refused; 0: not refused
    char *error                     # owned text; NULL: none

# Prepares the creation of sessions by several threads. Needs the interpreter lock. Returns whether memory sufficed.
cdef bint tls_prepare_sessions() noexcept
cdef TlsSession *tls_session_create(SSL_CTX *context, bint is_server, int fd, void *owner) noexcept nogil
# Releases everything. The caller alone uses the session.
cdef void tls_session_free(TlsSession *session) noexcept nogil
# Ends an open session by close_notify, which is sent as far as the socket accepts it, and releases all but the texts.
cdef void tls_session_end(TlsSession *session) noexcept nogil

cdef int tls_handshake(TlsSession *session) noexcept nogil
# Returns whether the next step only checks the client's Finished message: no signature, key exchange or certificate.
cdef bint tls_step_is_cheap(TlsSession *session) noexcept nogil
cdef int tls_read(TlsSession *session, void *room, size_t size, size_t *count) noexcept nogil
cdef int tls_write(TlsSession *session, const uint8_t *data, size_t size) noexcept nogil
# Checks the first bytes from a client. Returns TLS_BROKEN, with an alert in the output, if they cannot be TLS.
cdef int tls_check_first_bytes(TlsSession *session) noexcept nogil
# Return what is sent to a client whose first byte is another one, and the reason for the log.
cdef const uint8_t *tls_plaintext_alert() noexcept nogil
cdef const char *tls_plaintext_reason() noexcept nogil
# Counts bytes that were read from the socket into `received`. Returns TLS_BROKEN if the handshake has too many.
cdef int tls_handshake_received(TlsSession *session, size_t count) noexcept nogil
# Reads from the socket, runs a step of the handshake and sends its records, on a thread that owns the session. Returns
# the TlsStatus; with TLS_WANTS_INPUT, records that the socket did not accept may be left in `output`.
cdef int tls_exchange(TlsSession *session) noexcept nogil
cdef int tls_refuse(TlsSession *session, const char *reason) noexcept nogil

cdef uint8_t *buffer_reserve(TlsBuffer *buffer, size_t room) noexcept nogil
cdef void buffer_free(TlsBuffer *buffer) noexcept nogil
cdef inline size_t buffer_size(TlsBuffer *buffer) noexcept nogil:
    return buffer.end - buffer.start

cdef int verify_peer(int is_valid, void *context) noexcept nogil
