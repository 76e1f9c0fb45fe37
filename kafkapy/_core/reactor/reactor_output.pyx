"""Phase 3 of a pass of the reactor: writes the answers to the sockets, without the interpreter lock.

Memory is sent by `send`, or by `sendmsg` up to 32 pieces at once; file ranges by `sendfile`, straight from the page
cache. MSG_MORE delays a header before a file range, and TCP_CORK delays the bytes between ranges, so that a fetch
answer fills its packets. A short range is read into memory instead, which takes one system call instead of four. Bytes
that the socket does not accept stay in the output until EPOLLOUT. The output of a TLS connection is encrypted in one
piece (`reactor_tls`) and sent by one `send`.
"""

from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from kafkapy._core.reactor.reactor_state cimport (
    CLOSE_ERROR, CLOSE_NO_MEMORY, CLOSE_SHORT_FILE, WORK_WEIGHT, OutputChunk, connection_close, connection_touch,
    connection_want_input, connection_want_output, output_chunk_release, output_reserve, queue_take, work_count,
)
from kafkapy._core.bytes.slab cimport slab_retain
from kafkapy._core.reactor.reactor_tls cimport iovec, tls_encrypt, tls_output_sent
from kafkapy._core.tls.tls_session cimport TLS_OPEN, TlsSession, buffer_size

cdef extern from "<sys/socket.h>" nogil:
    cdef struct msghdr:
        iovec *msg_iov
        size_t msg_iovlen
    int MSG_MORE
    int MSG_NOSIGNAL
    ssize_t send(int fd, const void *buffer, size_t size, int flags)
    ssize_t sendmsg(int fd, const msghdr *message, int flags)
    int setsockopt(int fd, int level, int option, const void *value, unsigned int length)

cdef extern from "<netinet/tcp.h>" nogil:
    int TCP_CORK

cdef extern from "<netinet/in.h>" nogil:
    int IPPROTO_TCP

cdef extern from "<sys/sendfile.h>" nogil:
    ssize_t sendfile(int out_fd, int in_fd, int64_t *offset, size_t count)

cdef extern from "<unistd.h>" nogil:
    ssize_t pread(int fd, void *buffer, size_t count, int64_t offset)

cdef enum:
    VECTOR_LIMIT = 32
    FILE_COPY_LIMIT = 8192          # a range of at most this size is read, and not sent by `sendfile`
    BYTES_PER_TURN = 4194304        # bytes sent to one connection in one pass of the loop


cdef void set_cork(ConnectionState *connection, int corked) noexcept nogil:
    if connection.corked != corked:
        # On a socket that is not TCP this fails and changes nothing: the pieces are sent one by one.
        setsockopt(connection.fd, IPPROTO_TCP, TCP_CORK, &corked, sizeof(int))
        connection.corked = corked


cdef void drop_head(ReactorState *state, ConnectionState *connection) noexcept nogil:
    cdef OutputChunk *head = connection.output_head
    connection.output_head = head.next
    if head.next == NULL:
        connection.output_tail = NULL
    output_chunk_release(state, head)


cdef void consume(ReactorState *state, ConnectionState *connection, int64_t sent) noexcept nogil:
    """Removes the first `sent` bytes, which the kernel has accepted, from the connection's output."""
    cdef OutputChunk *head
    state.bytes_sent += sent
    work_count(state, connection, sent)
    connection.output_bytes -= sent
    while sent > 0:
        head = connection.output_head
        if sent < head.remaining:
            head.remaining -= sent
            if head.fd >= 0:
                head.position += sent
            else:
                head.data += sent
            return
        sent -= head.remaining
        drop_head(state, connection)


cdef int copy_short_range(ReactorState *state, OutputChunk *chunk) noexcept nogil:
    """Reads the bytes of an output chunk that is a short range of a file into memory. Returns 0, or a CloseReason if
    that fails."""
    cdef int64_t done = 0
    cdef ssize_t count
    cdef uint8_t *room = output_reserve(state, <size_t> chunk.remaining)
    if room == NULL:
        return CLOSE_NO_MEMORY
    while done < chunk.remaining:
        count = pread(chunk.fd, room + done, <size_t> (chunk.remaining - done), chunk.position + done)
        if count == 0:
            return CLOSE_SHORT_FILE
        if count > 0:
            done += count
        elif errno != EINTR:
            return CLOSE_ERROR
    slab_retain(state.shared_output)
    state.shared_output.used += <size_t> chunk.remaining
    chunk.slab = state.shared_output
    chunk.data = room
    chunk.fd = -1
    return 0


cdef ssize_t send_memory(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Sends the chunks in memory at the head of the output by one system call; returns its result."""
    cdef iovec vector[VECTOR_LIMIT]
    cdef msghdr message
    cdef OutputChunk *chunk = connection.output_head
    cdef size_t count = 0
    cdef int reason
    while chunk != NULL and count < VECTOR_LIMIT:
        if chunk.fd >= 0:
            if chunk.remaining > FILE_COPY_LIMIT:
                break
            reason = copy_short_range(state, chunk)
            if reason:
                connection_close(state, connection, reason, errno if reason == CLOSE_ERROR else chunk.remaining)
                return 0
        vector[count].iov_base = <void *> chunk.data
        vector[count].iov_len = <size_t> chunk.remaining
        count += 1
        chunk = chunk.next
    if chunk == NULL and count == 1:
        return send(connection.fd, vector[0].iov_base, vector[0].iov_len, MSG_NOSIGNAL)
    memset(&message, 0, sizeof(msghdr))
    message.msg_iov = vector
    message.msg_iovlen = count
    return sendmsg(connection.fd, &message, MSG_NOSIGNAL | (MSG_MORE if chunk != NULL else 0))


cdef ssize_t send_range(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Sends bytes of the output's first chunk, which is a range of a file, by one `sendfile`; returns its result."""
    cdef OutputChunk *head = connection.output_head
    cdef int64_t position = head.position
    cdef int64_t count = head.remaining if head.remaining < BYTES_PER_TURN else BYTES_PER_TURN
    cdef ssize_t sent
    if head.next != NULL:
        set_cork(connection, True)
    sent = sendfile(connection.fd, head.fd, &position, <size_t> count)
    if sent == 0:
        connection_close(state, connection, CLOSE_SHORT_FILE, head.remaining)
    return sent


cdef void drained(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Continues a connection whose whole output has been sent.

    Closes the connection if `connection_close` has postponed the close until its output is sent. Otherwise queues it to
    read its next request, if bytes have arrived and no request is in process.
    """
    if connection.corked:
        set_cork(connection, False)
    if connection.closing:
        connection_close(state, connection, connection.close_reason, connection.close_detail)
    elif not connection.in_process and (connection.readable or connection.input != NULL):
        connection_want_input(state, connection)


cdef void output_flush(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Sends output until it is empty, the socket accepts no more, or BYTES_PER_TURN bytes are sent."""
    cdef OutputChunk *head
    cdef ssize_t sent
    cdef int64_t total = 0
    if connection.tls != NULL:
        flush_tls(state, connection)
        return
    while connection.output_head != NULL:
        if total >= BYTES_PER_TURN:
            connection_want_output(state, connection)
            return
        head = connection.output_head
        if head.fd >= 0 and head.remaining > FILE_COPY_LIMIT:
            sent = send_range(state, connection)
        else:
            sent = send_memory(state, connection)
        if connection.closed:
            return
        if sent >= 0:
            total += sent
            consume(state, connection, sent)
        elif errno == EAGAIN:
            connection.blocked = True
            return
        elif errno != EINTR:
            connection_close(state, connection, CLOSE_ERROR, errno)
            return
        if sent > 0:
            connection_touch(state, connection)
    drained(state, connection)


cdef void output_flush_queued(ReactorState *state) noexcept nogil:
    cdef ConnectionState *connection
    cdef size_t waiting = queue_take(state, &state.output_queue)
    cdef size_t index
    for index in range(waiting):
        connection = state.spare_queue.items[index]
        connection.queued_output = False
        if not connection.closed:
            work_count(state, connection, WORK_WEIGHT)
            output_flush(state, connection)


cdef void flush_tls(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Sends the encrypted bytes of a TLS connection, then encrypts and sends more of the output.

    Ends when the output is empty, the socket accepts no more, BYTES_PER_TURN bytes are sent, or a thread of the
    handshake pool uses the session.
    """
    cdef TlsSession *session = connection.tls
    cdef int64_t total = 0
    cdef int64_t detail = 0
    cdef ssize_t sent
    cdef int reason
    while not session.in_pool:
        if buffer_size(&session.output):
            sent = send(connection.fd, session.output.data + session.output.start, buffer_size(&session.output),
                        MSG_NOSIGNAL)
            if sent >= 0:
                session.output.start += <size_t> sent
                total += sent
            elif errno == EAGAIN:
                connection.blocked = True
                return
            elif errno != EINTR:
                connection_close(state, connection, CLOSE_ERROR, errno)
                return
            continue
        if session.encrypted:
            consume(state, connection, session.encrypted)
            connection_touch(state, connection)
        tls_output_sent(state, connection)
        if session.phase != TLS_OPEN:
            return
        if connection.output_head == NULL:
            drained(state, connection)
            return
        if total >= BYTES_PER_TURN:
            connection_want_output(state, connection)
            return
        reason = tls_encrypt(state, connection, &detail)
        if reason:
            connection_close(state, connection, reason, detail)
            return
