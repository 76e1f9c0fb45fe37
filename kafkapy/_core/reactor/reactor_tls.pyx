"""TLS connections of the reactor. The functions run on the reactor's thread, without the interpreter lock.

    socket -> session -> slab -> frames          phase 1, where a plaintext connection is read
    output -> plaintext -> session -> socket     phase 3, where a plaintext connection is written

The steps of a handshake run on the handshake pool, except the last step if it is cheap. While a step runs there, and
until Python has been notified of the end of the handshake, the connection is neither read nor written. The connection's
field `readable` is false, and an event that arrives is stored in the session's field `was_readable`. After the
handshake, `readable` stays true until OpenSSL wants more bytes and the socket has none, because the session of a muted
connection may still hold decrypted bytes, for which epoll reports no event.

The chunks of the output stay in place until their ciphertext is sent, so that a connection with unsent ciphertext also
counts as a connection with output.
"""

from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, malloc
from libc.string cimport memcpy, memset

from kafkapy._core.reactor.reactor_state cimport (
    CLOSE_BY_PEER, CLOSE_ERROR, CLOSE_NO_MEMORY, CLOSE_SHORT_FILE, CLOSE_TLS, WATCH_HANDSHAKES, OutputChunk, TlsShared,
    connection_close, connection_want_input, connection_want_output, queue_push,
)
from kafkapy._core.tls.handshake_pool cimport pool_submit, pool_take_done, pool_take_waiting
from kafkapy._core.tls.tls_session cimport (
    HANDSHAKE_ROOM, TLS_BROKEN, TLS_CLOSED, TLS_ESTABLISHED, TLS_FAILED, TLS_HANDSHAKE, TLS_OK, TLS_OPEN,
    TLS_SOCKET_ERROR, TLS_WANTS_INPUT, TlsBuffer, buffer_free, buffer_reserve, buffer_size, tls_check_first_bytes,
    tls_handshake, tls_handshake_received, tls_read, tls_session_free, tls_step_is_cheap, tls_write,
)

cdef extern from "<sys/socket.h>" nogil:
    ssize_t recv(int fd, void *buffer, size_t size, int flags)

cdef extern from "<unistd.h>" nogil:
    ssize_t pread(int fd, void *buffer, size_t count, int64_t offset)

cdef enum:
    GATHER_BYTES = 245760           # of the output that are encrypted at once; the records take less than 256 KiB
    CIPHERTEXT_PER_TURN = 131072             # received from one connection in one turn, at most


cdef int tls_prepare(ReactorState *state, HandshakeQueues *pool) noexcept nogil:
    cdef TlsShared *shared = <TlsShared *> calloc(1, sizeof(TlsShared))
    if shared == NULL:
        return -1
    shared.kind = WATCH_HANDSHAKES
    shared.pool = pool
    shared.plaintext = <uint8_t *> malloc(GATHER_BYTES)
    state.tls = shared
    return -1 if shared.plaintext == NULL else 0


# ---- handshakes

cdef void tls_begin(ReactorState *state, ConnectionState *connection) noexcept nogil:
    step(state, connection)


cdef void tls_adopted(ReactorState *state, ConnectionState *connection) noexcept nogil:
    if connection.tls.phase == TLS_HANDSHAKE:
        connection_want_output(state, connection)
    else:
        stepped(state, connection)


cdef void step(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Runs the next step of the handshake if it takes little time; otherwise passes it to the handshake pool."""
    connection.tls.was_readable = connection.readable
    connection.readable = False
    if tls_step_is_cheap(connection.tls):
        tls_handshake(connection.tls)
        stepped(state, connection)
    else:
        pool_submit(state.tls.pool, connection.tls)


cdef void tls_continue(ReactorState *state) noexcept nogil:
    cdef TlsSession *session = pool_take_done(state.tls.pool)
    cdef TlsSession *following
    while session != NULL:
        following = session.next
        session.in_pool = False
        if session.owner == NULL:
            tls_session_free(session)
        else:
            stepped(state, <ConnectionState *> session.owner)
        session = following


cdef void stepped(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Continues a connection after a step of its TLS handshake, according to the result of the step.

    Queues TLS's output to be sent. If the handshake needs more bytes, reads. If the handshake of a client has ended and
    the reactor has `on_handshake`, queues the connection so that Python is notified; otherwise opens the connection
    after a success, and closes it after a failure.
    """
    cdef TlsSession *session = connection.tls
    cdef int status = session.status
    connection_want_output(state, connection)
    if status == TLS_WANTS_INPUT:
        read_again(state, connection)
    elif session.phase == TLS_ESTABLISHED and (connection.is_outgoing or not state.reports_handshakes):
        tls_accept(state, connection)
    elif status == TLS_CLOSED:
        connection_close(state, connection, CLOSE_BY_PEER, 0)
    elif session.phase == TLS_FAILED and (connection.is_outgoing or not state.reports_handshakes):
        connection_close(state, connection, CLOSE_TLS, 0)
    elif not connection.queued_handshake:
        connection.queued_handshake = True
        queue_push(&state.handshake_queue, connection)


cdef void read_again(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Queues the connection to be read, if bytes or the end of the stream have arrived during a step of the
    handshake."""
    if connection.tls.was_readable or connection.readable or connection.hangup:
        connection.tls.was_readable = False
        connection.readable = True
        connection_want_input(state, connection)


cdef void tls_accept(ReactorState *state, ConnectionState *connection) noexcept nogil:
    connection.tls.phase = TLS_OPEN
    connection.readable = True
    connection_want_input(state, connection)
    connection_want_output(state, connection)


cdef void tls_release_pool(ReactorState *state) noexcept nogil:
    """Takes all TLS sessions back from the handshake pool, whose threads have ended.

    A session whose connection was closed during its step of the handshake has no owner, and is released.
    """
    cdef TlsSession *session
    cdef TlsSession *following
    cdef int turn
    for turn in range(2):
        session = pool_take_done(state.tls.pool) if turn == 0 else pool_take_waiting(state.tls.pool)
        while session != NULL:
            following = session.next
            session.in_pool = False
            if session.owner == NULL:
                tls_session_free(session)
            session = following


cdef void receive_handshake(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Reads bytes of the handshake and starts its next step.

    Reads nothing while the handshake pool has the session, while handshake records are not sent yet, or after the
    handshake; the arrived bytes are then read later.
    """
    cdef TlsSession *session = connection.tls
    cdef uint8_t *room
    cdef ssize_t count
    cdef bint is_first
    cdef int status
    if session.phase == TLS_FAILED and connection.hangup:
        connection_close(state, connection, CLOSE_BY_PEER, 0)
        return
    if session.in_pool or session.phase != TLS_HANDSHAKE or buffer_size(&session.output):
        session.was_readable = True
        connection.readable = False
        return
    room = buffer_reserve(&session.received, HANDSHAKE_ROOM)
    if room == NULL:
        connection_close(state, connection, CLOSE_NO_MEMORY, 0)
        return
    count = recv(connection.fd, room, HANDSHAKE_ROOM, 0)
    if count > 0:
        is_first = session.handshake_bytes == 0
        status = tls_handshake_received(session, <size_t> count)
        if is_first and session.is_server:
            status = tls_check_first_bytes(session)
        if status != TLS_OK:
            connection.readable = False
            stepped(state, connection)
            return
        if count < HANDSHAKE_ROOM and not connection.hangup:
            connection.readable = False
        step(state, connection)
    elif count == 0:
        connection.readable = False
        connection_close(state, connection, CLOSE_BY_PEER, 0)
    elif errno == EAGAIN:
        connection.readable = False
    elif errno != EINTR:
        connection_close(state, connection, CLOSE_ERROR, errno)


# ---- open connections

cdef ssize_t tls_receive(ReactorState *state, ConnectionState *connection, iovec *vector, int count) noexcept nogil:
    """Fills the memory in `vector`, in order, with decrypted bytes; returns their number, and updates `readable`.

    If the stream has ended or is broken, the bytes that precede the end are returned first. The next call, which has no
    bytes to return, closes the connection.
    """
    cdef TlsSession *session = connection.tls
    cdef size_t total = 0
    cdef size_t filled
    cdef size_t part
    cdef int status = TLS_OK
    cdef int index = 0
    if session.phase != TLS_OPEN:
        receive_handshake(state, connection)
        return 0
    session.may_receive = True
    session.has_more = False
    session.hangup = connection.hangup
    session.budget = CIPHERTEXT_PER_TURN
    while index < count and status == TLS_OK:
        filled = 0
        while filled < vector[index].iov_len:
            status = tls_read(session, <uint8_t *> vector[index].iov_base + filled, vector[index].iov_len - filled,
                              &part)
            if status != TLS_OK:
                break
            filled += part
        total += filled
        index += 1
    connection_want_output(state, connection)
    if status == TLS_WANTS_INPUT:
        connection.readable = session.has_more
    elif status != TLS_OK and total == 0:
        connection.readable = False
        if status == TLS_CLOSED:
            connection_close(state, connection, CLOSE_BY_PEER, 0)
        elif status == TLS_SOCKET_ERROR:
            connection_close(state, connection, CLOSE_ERROR, session.socket_errno)
        else:
            connection_close(state, connection, CLOSE_TLS, 0)
    return <ssize_t> total


cdef int read_range(OutputChunk *chunk, uint8_t *room, size_t size) noexcept nogil:
    """Reads the first `size` bytes of a chunk, which is a range of a file, to `room`.

    Returns 0, or a CloseReason if that fails.
    """
    cdef size_t done = 0
    cdef ssize_t count
    while done < size:
        count = pread(chunk.fd, room + done, size - done, chunk.position + <int64_t> done)
        if count == 0:
            return CLOSE_SHORT_FILE
        if count > 0:
            done += <size_t> count
        elif errno != EINTR:
            return CLOSE_ERROR
    return 0


cdef int tls_encrypt(ReactorState *state, ConnectionState *connection, int64_t *detail) noexcept nogil:
    """Encrypts the beginning of the output. The encrypted bytes have to be sent before more is encrypted.

    Returns 0 on success. Otherwise returns the CloseReason with which the caller has to close the connection, and sets
    `detail` to a number: the errno for CLOSE_ERROR, 0 for CLOSE_TLS, and for CLOSE_SHORT_FILE (a file ends before the
    range of it that is in the output) the number of bytes of this range that are not sent yet.
    """
    cdef TlsSession *session = connection.tls
    cdef TlsShared *shared = state.tls
    cdef OutputChunk *chunk = connection.output_head
    cdef int64_t total = 0
    cdef int64_t size
    cdef int reason
    if session.output.data == NULL:
        session.output = shared.spare
        memset(&shared.spare, 0, sizeof(TlsBuffer))
    while chunk != NULL and total < GATHER_BYTES:
        size = chunk.remaining if chunk.remaining < GATHER_BYTES - total else GATHER_BYTES - total
        if chunk.fd >= 0:
            reason = read_range(chunk, shared.plaintext + total, <size_t> size)
            if reason:
                detail[0] = errno if reason == CLOSE_ERROR else chunk.remaining
                return reason
        else:
            memcpy(shared.plaintext + total, chunk.data, <size_t> size)
        total += size
        chunk = chunk.next
    detail[0] = 0
    if tls_write(session, shared.plaintext, <size_t> total) != TLS_OK:
        return CLOSE_TLS
    session.encrypted = total
    return 0


cdef void tls_output_sent(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Frees or reuses the memory of encrypted bytes that were sent. Continues a handshake that had to wait until
    then."""
    cdef TlsSession *session = connection.tls
    session.encrypted = 0
    if state.tls.spare.data == NULL:
        session.output.start = session.output.end = 0
        state.tls.spare = session.output
        memset(&session.output, 0, sizeof(TlsBuffer))
    else:
        buffer_free(&session.output)
    if session.phase == TLS_HANDSHAKE:
        read_again(state, connection)
