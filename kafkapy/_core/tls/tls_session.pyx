"""TLS sessions: handshake, reading and writing with OpenSSL, without the interpreter lock.

Each session has a BIO (OpenSSL's interface for input and output) that this module implements. OpenSSL reads ciphertext
through the BIO from the socket into its own buffer, several records at once, and decrypts into the reactor's memory.
What OpenSSL writes is collected in memory, so that many records need one system call. The BIO never reads more than
`budget` bytes in one turn, because OpenSSL would otherwise continue as long as a peer sends records without data.
"""

from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport uint8_t
from libc.stdio cimport snprintf
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memmove

from kafkapy._core.tls.openssl cimport (
    BIO, BIO_CTRL_FLUSH, BIO_FLAGS_READ, BIO_FLAGS_SHOULD_RETRY, BIO_FLAGS_WRITE, BIO_METHOD, BIO_TYPE_SOURCE_SINK,
    ERR_REASON_MASK, SSL_ERROR_WANT_READ, SSL_ERROR_ZERO_RETURN, SSL_R_HTTP_REQUEST, SSL_R_UNSUPPORTED_PROTOCOL,
    SSL_R_WRONG_VERSION_NUMBER, X509, X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_OK, OpenSslFunctions, openssl_functions,
)

cdef extern from "<sys/socket.h>" nogil:
    int MSG_NOSIGNAL
    int MSG_DONTWAIT
    ssize_t recv(int fd, void *buffer, size_t size, int flags)
    ssize_t send(int fd, const void *buffer, size_t size, int flags)

cdef enum:
    SUBJECT_BYTES = 256
    BUFFER_MINIMUM = 4096
    CIPHERTEXT_LIMIT = 1 << 21          # unsent ciphertext of one session
    HANDSHAKE_LIMIT = 524288            # received from one peer before its handshake is complete

cdef OpenSslFunctions *openssl = openssl_functions()
cdef BIO_METHOD *bio_method = NULL

# A fatal alert, internal_error, which Apache Kafka sends to a client that does not speak TLS.
cdef uint8_t *PLAINTEXT_ALERT = b"\x15\x03\x03\x00\x02\x02\x50"


# ---- buffers

cdef uint8_t *buffer_reserve(TlsBuffer *buffer, size_t room) noexcept nogil:
    """Makes room for `room` bytes after the bytes in the buffer.

    Returns a pointer to the room, or NULL if memory is short.
    """
    cdef size_t capacity
    cdef void *grown
    if buffer.start == buffer.end:
        buffer.start = buffer.end = 0
    if buffer.capacity - buffer.end < room and buffer.start:
        memmove(buffer.data, buffer.data + buffer.start, buffer.end - buffer.start)
        buffer.end -= buffer.start
        buffer.start = 0
    if buffer.capacity - buffer.end < room:
        capacity = buffer.capacity * 2
        if capacity < BUFFER_MINIMUM:
            capacity = BUFFER_MINIMUM
        if capacity < buffer.end + room:
            capacity = buffer.end + room
        grown = realloc(buffer.data, capacity)
        if grown == NULL:
            return NULL
        buffer.data = <uint8_t *> grown
        buffer.capacity = capacity
    return buffer.data + buffer.end


cdef void buffer_free(TlsBuffer *buffer) noexcept nogil:
    free(buffer.data)
    buffer.data = NULL
    buffer.start = buffer.end = buffer.capacity = 0


cdef int append_output(TlsSession *session, const uint8_t *data, size_t size) noexcept nogil:
    cdef uint8_t *place
    if buffer_size(&session.output) + size > CIPHERTEXT_LIMIT:
        return -1
    place = buffer_reserve(&session.output, size)
    if place == NULL:
        return -1
    memcpy(place, data, size)
    session.output.end += size
    session.has_written = True
    return 0


# ---- the BIO

cdef int bio_create(BIO *bio) noexcept nogil:
    openssl.BIO_set_init(bio, 1)
    return 1


cdef long bio_control(BIO *bio, int command, long number, void *pointer) noexcept nogil:
    return 1 if command == BIO_CTRL_FLUSH else 0


cdef int bio_write(BIO *bio, const char *data, int size) noexcept nogil:
    cdef TlsSession *session = <TlsSession *> openssl.BIO_get_data(bio)
    openssl.BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
    return -1 if append_output(session, <const uint8_t *> data, <size_t> size) else size


cdef int bio_read(BIO *bio, char *room, int size) noexcept nogil:
    cdef TlsSession *session = <TlsSession *> openssl.BIO_get_data(bio)
    cdef size_t held = buffer_size(&session.received)
    cdef ssize_t count
    openssl.BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
    if held:
        if held > <size_t> size:
            held = <size_t> size
        memcpy(room, session.received.data + session.received.start, held)
        session.received.start += held
        return <int> held
    if session.may_receive:
        if session.budget <= 0:
            session.has_more = True
            session.may_receive = False
        else:
            count = recv(session.fd, room, <size_t> size, MSG_DONTWAIT)
            if count > 0:
                session.budget -= count
                if count < size and not session.hangup:
                    session.may_receive = False  # all bytes were read: the next arrival is a new edge
                return <int> count
            session.may_receive = False
            if count == 0:
                session.at_end = True
                return 0
            if errno == EINTR:
                session.has_more = True
            elif errno != EAGAIN:
                session.socket_errno = errno
                return -1
    openssl.BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
    return -1


cdef BIO_METHOD *method() noexcept nogil:
    """Returns the type of our BIOs; the first call, which has the interpreter lock, creates it."""
    global bio_method
    cdef BIO_METHOD *made
    if bio_method == NULL:
        made = openssl.BIO_meth_new(openssl.BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "kafkapy")
        if made == NULL:
            return NULL
        openssl.BIO_meth_set_create(made, bio_create)
        openssl.BIO_meth_set_ctrl(made, bio_control)
        openssl.BIO_meth_set_read(made, bio_read)
        openssl.BIO_meth_set_write(made, bio_write)
        bio_method = made
    return bio_method


# ---- the life of a session

cdef bint tls_prepare_sessions() noexcept:
    return method() != NULL


cdef TlsSession *tls_session_create(SSL_CTX *context, bint is_server, int fd, void *owner) noexcept nogil:
    """Returns a session whose handshake has not begun; NULL if memory is short."""
    cdef TlsSession *session = <TlsSession *> calloc(1, sizeof(TlsSession))
    cdef BIO_METHOD *kind = method()
    cdef BIO *bio
    if session == NULL or kind == NULL:
        free(session)
        return NULL
    session.is_server = is_server
    session.fd = fd
    session.owner = owner
    session.ssl = openssl.SSL_new(context)
    bio = openssl.BIO_new(kind) if session.ssl != NULL else NULL
    if bio == NULL:
        tls_session_free(session)
        return NULL
    openssl.BIO_set_data(bio, session)
    openssl.SSL_set_bio(session.ssl, bio, bio)
    openssl.SSL_set_ex_data(session.ssl, 0, session)
    if is_server:
        openssl.SSL_set_accept_state(session.ssl)
    else:
        openssl.SSL_set_connect_state(session.ssl)
    return session


cdef void release_all_but_texts(TlsSession *session) noexcept nogil:
    if session.ssl != NULL:
        openssl.SSL_free(session.ssl)
        session.ssl = NULL
    buffer_free(&session.received)
    buffer_free(&session.output)


cdef void tls_session_free(TlsSession *session) noexcept nogil:
    if session != NULL:
        release_all_but_texts(session)
        free(session.error)
        free(session)


cdef void tls_session_end(TlsSession *session) noexcept nogil:
    if session.ssl == NULL:
        return
    if session.phase in (TLS_ESTABLISHED, TLS_OPEN) and session.status != TLS_BROKEN:
        openssl.ERR_clear_error()
        openssl.SSL_shutdown(session.ssl)
    if buffer_size(&session.output):
        send(session.fd, session.output.data + session.output.start, buffer_size(&session.output),
             MSG_NOSIGNAL | MSG_DONTWAIT)
    release_all_but_texts(session)


# ---- steps

cdef int tls_handshake(TlsSession *session) noexcept nogil:
    """Continues the handshake with the bytes in `received`. Returns a TlsStatus, and stores it in the session.

    When the handshake has ended, sets `session.phase` to TLS_ESTABLISHED or TLS_FAILED.
    """
    cdef int result
    openssl.ERR_clear_error()
    result = openssl.SSL_do_handshake(session.ssl)
    if result == 1:
        if session.checks_peer and openssl.SSL_session_reused(session.ssl) and certificate_has_expired(session):
            session.status = tls_refuse(session, "the certificate of the resumed session has expired")
        else:
            session.phase = TLS_ESTABLISHED
            session.status = TLS_OK
    else:
        session.status = classify(session, result)
    if session.status not in (TLS_OK, TLS_WANTS_INPUT):
        session.phase = TLS_FAILED
        if not session.has_written:
            # OpenSSL sends no alert to a peer that does not speak TLS.
            append_output(session, PLAINTEXT_ALERT, PLAINTEXT_ALERT_BYTES)
    return session.status


cdef bint tls_step_is_cheap(TlsSession *session) noexcept nogil:
    cdef char room
    return session.is_server and not session.checks_peer and openssl.SSL_get_finished(session.ssl, &room, 1) > 0


cdef bint certificate_has_expired(TlsSession *session) noexcept nogil:
    cdef X509 *certificate = openssl.SSL_get1_peer_certificate(session.ssl)
    cdef bint has_expired = False
    if certificate != NULL:
        has_expired = openssl.X509_cmp_current_time(openssl.X509_get0_notAfter(certificate)) < 0
        openssl.X509_free(certificate)
    return has_expired


cdef int tls_read(TlsSession *session, void *room, size_t size, size_t *count) noexcept nogil:
    """Decrypts up to `size` bytes to `room`.

    Returns TLS_OK and sets `count` to the number of bytes, or returns another TlsStatus.
    """
    if session.status in (TLS_CLOSED, TLS_BROKEN, TLS_SOCKET_ERROR):
        return session.status
    openssl.ERR_clear_error()
    if openssl.SSL_read_ex(session.ssl, room, size, count):
        return TLS_OK
    session.status = classify(session, 0)
    return session.status


cdef int tls_write(TlsSession *session, const uint8_t *data, size_t size) noexcept nogil:
    """Encrypts `size` bytes, and appends the result to `output`. Returns a TlsStatus."""
    cdef size_t written = 0
    cdef size_t done = 0
    while done < size:
        openssl.ERR_clear_error()
        if not openssl.SSL_write_ex(session.ssl, data + done, size - done, &written):
            classify(session, 0)
            session.status = TLS_BROKEN
            return TLS_BROKEN
        done += written
    return TLS_OK


cdef int tls_check_first_bytes(TlsSession *session) noexcept nogil:
    if session.received.data[session.received.start] == HANDSHAKE_RECORD:
        return TLS_OK
    append_output(session, PLAINTEXT_ALERT, PLAINTEXT_ALERT_BYTES)
    session.phase = TLS_FAILED
    return tls_refuse(session, tls_plaintext_reason())


cdef int tls_handshake_received(TlsSession *session, size_t count) noexcept nogil:
    session.received.end += count
    session.handshake_bytes += <int64_t> count
    if session.handshake_bytes <= HANDSHAKE_LIMIT:
        return TLS_OK
    session.phase = TLS_FAILED
    return tls_refuse(session, "the handshake has too many bytes")


cdef int tls_exchange(TlsSession *session) noexcept nogil:
    cdef uint8_t *room = buffer_reserve(&session.received, HANDSHAKE_ROOM)
    cdef ssize_t count
    if room == NULL:
        session.status = TLS_SOCKET_ERROR
        return session.status
    count = recv(session.fd, room, HANDSHAKE_ROOM, MSG_DONTWAIT)
    if count == 0:
        session.status = TLS_CLOSED
    elif count < 0:
        session.status = TLS_WANTS_INPUT if errno in (EAGAIN, EINTR) else TLS_SOCKET_ERROR
    elif tls_handshake_received(session, <size_t> count) == TLS_OK:
        tls_handshake(session)
    if buffer_size(&session.output):
        count = send(session.fd, session.output.data + session.output.start, buffer_size(&session.output),
                     MSG_NOSIGNAL | MSG_DONTWAIT)
        if count > 0:
            session.output.start += <size_t> count
        if not buffer_size(&session.output):
            buffer_free(&session.output)
    return session.status


cdef const uint8_t *tls_plaintext_alert() noexcept nogil:
    return PLAINTEXT_ALERT


cdef const char *tls_plaintext_reason() noexcept nogil:
    return "the client does not speak TLS: it may be configured with security.protocol=PLAINTEXT"


# ---- errors

cdef int tls_refuse(TlsSession *session, const char *reason) noexcept nogil:
    set_error(session, reason, NULL, NULL)
    session.status = TLS_BROKEN
    return TLS_BROKEN


cdef int classify(TlsSession *session, int result) noexcept nogil:
    """Returns the TlsStatus for `result`, the result of an OpenSSL function that failed; stores the error's text."""
    cdef int kind = openssl.SSL_get_error(session.ssl, result)
    if kind == SSL_ERROR_WANT_READ:
        return TLS_WANTS_INPUT
    if kind == SSL_ERROR_ZERO_RETURN or session.at_end:
        return TLS_CLOSED
    if session.socket_errno:
        return TLS_SOCKET_ERROR
    describe_error(session)
    return TLS_BROKEN


cdef void describe_error(TlsSession *session) noexcept nogil:
    cdef unsigned long code = openssl.ERR_peek_error()
    cdef const char *reason = openssl.ERR_reason_error_string(code) if code else NULL
    cdef const char *detail = NULL
    if session.error != NULL:
        return  # the verification has stored a more exact text
    if (code & ERR_REASON_MASK) == SSL_R_HTTP_REQUEST:
        detail = "the client sent an HTTP request"
    elif (code & ERR_REASON_MASK) == SSL_R_WRONG_VERSION_NUMBER:
        detail = "the peer may not speak TLS"
    elif (code & ERR_REASON_MASK) == SSL_R_UNSUPPORTED_PROTOCOL:
        detail = "the peer offers no protocol of ssl.enabled.protocols"
    if reason == NULL:
        reason = "the TLS library reports no reason"
    set_error(session, reason, detail, NULL)


cdef void set_error(TlsSession *session, const char *reason, const char *detail, const char *subject) noexcept nogil:
    """Stores the text of the session's error, made of those arguments that are not NULL.

    The text is `reason`, `reason: detail`, or `reason: detail in the certificate of subject`.
    """
    if session.error == NULL:
        session.error = <char *> malloc(ERROR_BYTES)
    if session.error == NULL:
        return
    if detail == NULL:
        snprintf(session.error, ERROR_BYTES, "%s", reason)
    elif subject == NULL:
        snprintf(session.error, ERROR_BYTES, "%s: %s", reason, detail)
    else:
        snprintf(session.error, ERROR_BYTES, "%s: %s in the certificate of %s", reason, detail, subject)


cdef int verify_peer(int is_valid, void *context) noexcept nogil:
    """Accepts or refuses a certificate of the peer's chain; OpenSSL calls it for each certificate and each fault.

    If only the revocation list for an authority's certificate is missing, the certificate is accepted. An operator who
    has a revocation list of the authority that issues the clients' certificates therefore need not have a list of each
    authority above it. A certificate with any other fault is refused, and the text of the fault is stored.
    """
    cdef int code
    cdef char subject[SUBJECT_BYTES]
    cdef X509 *certificate
    cdef TlsSession *session
    cdef void *ssl
    if is_valid:
        return 1
    code = openssl.X509_STORE_CTX_get_error(context)
    if code == X509_V_ERR_UNABLE_TO_GET_CRL and openssl.X509_STORE_CTX_get_error_depth(context) > 0:
        openssl.X509_STORE_CTX_set_error(context, X509_V_OK)
        return 1
    ssl = openssl.X509_STORE_CTX_get_ex_data(context, openssl.SSL_get_ex_data_X509_STORE_CTX_idx())
    session = <TlsSession *> openssl.SSL_get_ex_data(ssl, 0) if ssl != NULL else NULL
    if session != NULL:
        subject[0] = 0
        certificate = openssl.X509_STORE_CTX_get_current_cert(context)
        if certificate != NULL:
            openssl.X509_NAME_oneline(openssl.X509_get_subject_name(certificate), subject, SUBJECT_BYTES)
        session.verify_code = code
        set_error(session, "certificate verify failed", openssl.X509_verify_cert_error_string(code),
                  subject)
    return 0
