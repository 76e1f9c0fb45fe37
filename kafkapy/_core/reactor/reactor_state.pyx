"""The life of connections, requests and answers as C structs, on the reactor's thread without the interpreter lock.

The module `reactor` describes the phases of a pass of its loop: 1 reads, 2 runs Python, 3 writes.

A connection is closed once: its descriptor is closed and its buffers are released at once, and it stays in
`closed_queue` until Python is notified. Its struct lives as long as the Connection object that owns it.
"""

from libc.errno cimport EAGAIN, errno
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset
from posix.unistd cimport close, usleep

from kafkapy._core.bytes.slab cimport (
    SHARED_SLAB_BYTES, Slab, slab_is_sole, slab_pool_create, slab_pool_destroy, slab_release, slab_retain, slab_take,
)
from kafkapy._core.tls.tls_session cimport buffer_free, buffer_size, tls_session_end

cdef extern from "<sys/socket.h>" nogil:
    enum: MSG_DONTWAIT
    enum: SHUT_WR
    enum: SOL_SOCKET
    enum: SO_ERROR
    ssize_t recv(int fd, void *buffer, size_t size, int flags)
    int shutdown(int fd, int how)
    int getsockopt(int fd, int level, int option, void *value, unsigned int *length)

cdef enum:
    LINGER_STEPS = 50
    LINGER_STEP_US = 4000
    LINGER_READS = 64                   # reads of 4 KiB from one connection in one step


cdef int state_initialize(ReactorState *state, size_t cache_limit) noexcept nogil:
    """Initializes `state`, whose memory `state_release` frees; at most `cache_limit` bytes of free slabs are cached.

    Returns 0, or -1 if memory is short.
    """
    memset(state, 0, sizeof(ReactorState))
    state.epoll_fd = -1
    state.wakeup_fd = -1
    state.pool = slab_pool_create(cache_limit)
    return -1 if state.pool == NULL else state_reserve_queues(state, 64)


cdef void state_release(ReactorState *state) noexcept nogil:
    cdef OutputChunk *chunk
    cdef int index
    if state.shared_input != NULL:
        slab_release(state.shared_input)
    if state.shared_output != NULL:
        slab_release(state.shared_output)
    while state.free_chunks != NULL:
        chunk = state.free_chunks
        state.free_chunks = chunk.next
        free(chunk)
    free(state.input_queue.items)
    free(state.python_queue.items)
    free(state.answered_queue.items)
    free(state.output_queue.items)
    free(state.closed_queue.items)
    free(state.handshake_queue.items)
    free(state.spare_queue.items)
    for index in range(METERS):
        free(state.meters[index])
    if state.tls != NULL:
        buffer_free(&state.tls.spare)
        free(state.tls.plaintext)
        free(state.tls)
    if state.pool != NULL:
        slab_pool_destroy(state.pool)
    memset(state, 0, sizeof(ReactorState))


cdef int reserve_queue(ConnectionQueue *queue, size_t capacity) noexcept nogil:
    cdef void *items = realloc(queue.items, capacity * sizeof(ConnectionState *))
    if items == NULL:
        return -1
    queue.items = <ConnectionState **> items
    return 0


cdef int state_reserve_queues(ReactorState *state, size_t connections) noexcept nogil:
    """Makes room for `connections` connections in every queue, so that adding one never allocates memory.

    Returns 0, or -1 if memory is short.
    """
    cdef size_t capacity = state.queue_capacity if state.queue_capacity else 64
    while capacity < connections:
        capacity *= 2
    if capacity == state.queue_capacity:
        return 0
    if (reserve_queue(&state.input_queue, capacity) or reserve_queue(&state.python_queue, capacity)
            or reserve_queue(&state.answered_queue, capacity) or reserve_queue(&state.output_queue, capacity)
            or reserve_queue(&state.closed_queue, capacity) or reserve_queue(&state.handshake_queue, capacity)
            or reserve_queue(&state.spare_queue, capacity)):
        return -1
    state.queue_capacity = capacity
    return 0


cdef Slab *shared_with_room(ReactorState *state, Slab *shared, size_t room) noexcept nogil:
    """Returns `shared` if it has `room` free bytes; otherwise releases it and returns another slab.

    If nothing but the caller pins `shared`, all of its bytes are free. Returns NULL if memory is short.
    """
    if shared != NULL:
        if slab_is_sole(shared):
            shared.used = 0
        if shared.capacity - shared.used >= room:
            return shared
        slab_release(shared)
    return slab_take(state.pool, room if room > SHARED_SLAB_BYTES else SHARED_SLAB_BYTES)


cdef int state_ensure_input_room(ReactorState *state) noexcept nogil:
    """Makes sure that the slab `shared_input` has room for a read. Returns 0, or -1 if memory is short."""
    state.shared_input = shared_with_room(state, state.shared_input, READ_ROOM_MINIMUM)
    return -1 if state.shared_input == NULL else 0


cdef bint state_is_drained(ReactorState *state) noexcept nogil:
    cdef ConnectionState *connection = state.oldest
    while connection != NULL:
        if not connection.is_outgoing and (
                connection.in_process or connection.deferred or connection.output_head != NULL):
            return False
        connection = connection.newer
    return True


cdef void unlink_order(ReactorState *state, ConnectionState *connection) noexcept nogil:
    if connection.older != NULL:
        connection.older.newer = connection.newer
    else:
        state.oldest = connection.newer
    if connection.newer != NULL:
        connection.newer.older = connection.older
    else:
        state.newest = connection.older
    connection.older = NULL
    connection.newer = NULL


cdef void link_newest(ReactorState *state, ConnectionState *connection) noexcept nogil:
    connection.older = state.newest
    connection.newer = NULL
    if state.newest != NULL:
        state.newest.newer = connection
    else:
        state.oldest = connection
    state.newest = connection
    connection.last_active_ms = state.monotonic_ms


cdef void connection_open(ReactorState *state, ConnectionState *connection, int fd) noexcept nogil:
    """Initializes a connection, which takes over `fd`. The caller has reserved room in the queues."""
    open_connection(state, connection, fd, state.max_request_bytes)
    state.connection_count += 1


cdef void open_connection(ReactorState *state, ConnectionState *connection, int fd,
                          int32_t max_frame_bytes) noexcept nogil:
    memset(connection, 0, sizeof(ConnectionState))
    connection.kind = WATCH_CONNECTION
    connection.fd = fd
    connection.max_frame_bytes = max_frame_bytes
    connection.gated_until_ms = INT64_MAX
    link_newest(state, connection)


cdef void connection_open_outgoing(ReactorState *state, ConnectionState *connection, int fd,
                                   int32_t max_response_bytes) noexcept nogil:
    """Initializes a connection to another node, which takes over `fd`, a socket that is connecting.

    The caller has reserved room in the queues.
    """
    open_connection(state, connection, fd, max_response_bytes)
    connection.is_outgoing = True
    connection.is_connecting = True
    connection.ungated = True
    connection.blocked = True


cdef void connection_established(ReactorState *state, ConnectionState *connection) noexcept nogil:
    cdef int error = 0
    cdef unsigned int length = sizeof(int)
    if getsockopt(connection.fd, SOL_SOCKET, SO_ERROR, &error, &length):
        error = errno
    if error:
        connection_close(state, connection, CLOSE_ERROR, error)
        return
    connection.is_connecting = False
    connection.blocked = False
    connection_want_output(state, connection)


cdef void connection_touch(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Makes the connection the most recently used one."""
    connection.last_active_ms = state.monotonic_ms
    if state.newest != connection:
        unlink_order(state, connection)
        link_newest(state, connection)


cdef void connection_release_input(ConnectionState *connection) noexcept nogil:
    if connection.input != NULL:
        slab_release(connection.input)
        connection.input = NULL
    connection.input_pos = 0
    connection.input_end = 0


cdef void connection_want_input(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Queues an open connection, so that phase 1 of the next pass reads from it and handles its frames."""
    if connection.closed or connection.queued_input:
        return
    connection.queued_input = True
    if connection.assembly != NULL or connection.is_outgoing:
        state.input_urgent = True
    queue_push(&state.input_queue, connection)


cdef inline bint has_ciphertext(ConnectionState *connection) noexcept nogil:
    """Returns whether TLS has bytes to send that are not part of the output: records of a handshake, or an alert."""
    return connection.tls != NULL and not connection.tls.in_pool and buffer_size(&connection.tls.output) > 0


cdef void connection_want_output(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Queues the connection, so that the next phase 3 writes its output; does nothing if no output can be written."""
    if connection.output_head == NULL and not has_ciphertext(connection):
        return
    if connection.blocked or connection.closed or connection.queued_output:
        return
    connection.queued_output = True
    queue_push(&state.output_queue, connection)


cdef void discard_output(ReactorState *state, ConnectionState *connection) noexcept nogil:
    cdef OutputChunk *chunk = connection.output_head
    cdef OutputChunk *following
    while chunk != NULL:
        following = chunk.next
        output_chunk_release(state, chunk)
        chunk = following
    connection.output_head = NULL
    connection.output_tail = NULL
    connection.output_bytes = 0


cdef void connection_close(ReactorState *state, ConnectionState *connection, int reason, int64_t detail) noexcept nogil:
    """Closes the connection; `reason` is a CloseReason, and `detail` a number that belongs to it, such as an errno.

    The answers that wait are sent before, if the socket accepts bytes now and the reason is CLOSE_BY_PEER,
    CLOSE_INVALID_SIZE, CLOSE_LOCAL or CLOSE_UNAUTHENTICATED; otherwise they are discarded.
    """
    if connection.closed:
        return
    if not connection.close_reason:
        connection.close_reason = reason
        connection.close_detail = detail
    if (connection.output_head != NULL and not connection.blocked and not connection.closing
            and reason in (CLOSE_BY_PEER, CLOSE_INVALID_SIZE, CLOSE_LOCAL, CLOSE_UNAUTHENTICATED)):
        connection.closing = True
        connection_want_output(state, connection)
        return
    connection.closed = True
    end_tls(connection)
    if connection.muted:
        connection.muted = False
        state.muted_count -= 1
    close(connection.fd)
    connection.fd = -1
    connection_release_input(connection)
    if connection.assembly != NULL:
        slab_release(connection.assembly)
        connection.assembly = NULL
    request_done(state, connection)
    forget_deferred(connection)
    discard_output(state, connection)
    unlink_order(state, connection)
    if not connection.is_outgoing:
        state.connection_count -= 1
        state.connections_closed += 1
    queue_push(&state.closed_queue, connection)


cdef inline void end_tls(ConnectionState *connection) noexcept nogil:
    """Sends close_notify to the peer of a TLS connection.

    If the handshake pool is using the session, instead detaches the session from the connection. The session is freed
    when the pool returns it.
    """
    if connection.tls == NULL:
        return
    if connection.tls.in_pool:
        connection.tls.owner = NULL
        connection.tls = NULL
    else:
        tls_session_end(connection.tls)


cdef void connections_linger(ReactorState *state) noexcept nogil:
    """Shuts down the clients' connections for writing, and discards what arrives until the peers have closed them, too.

    It takes 200 ms at most, and is called at a stop before the connections are closed. Closing a socket with unread
    bytes would reset the connection, and its peer would lose answers that are not delivered yet: a producer would
    repeat batches that the restarted broker may not recognise as duplicates.
    """
    cdef uint8_t dropped[4096]
    cdef ConnectionState *connection = state.oldest
    cdef ssize_t received
    cdef int reads
    cdef size_t waiting = state.connection_count
    cdef int step = 0
    while connection != NULL:
        if not connection.is_outgoing:
            end_tls(connection)
            shutdown(connection.fd, SHUT_WR)
        connection.hangup = connection.is_outgoing
        connection = connection.newer
    while waiting and step < LINGER_STEPS:
        waiting = 0
        connection = state.oldest
        while connection != NULL:
            if not connection.hangup:
                for reads in range(LINGER_READS):
                    received = recv(connection.fd, dropped, sizeof(dropped), MSG_DONTWAIT)
                    if received <= 0:
                        connection.hangup = received == 0 or errno != EAGAIN
                        break
                waiting += not connection.hangup
            connection = connection.newer
        if waiting:
            usleep(LINGER_STEP_US)
        step += 1


cdef void request_reserve(ReactorState *state, ConnectionState *connection, int64_t size) noexcept nogil:
    """Adds the `size` bytes of a request to the memory that requests occupy. The total of this memory is limited.

    Does nothing for the response to a request of an outgoing connection.
    """
    if not connection.is_outgoing:
        connection.reserved_bytes += size
        state.reserved_bytes += size


cdef void request_done(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Ends the request that is being processed, if any: releases its memory, and permits the connection's next request.

    On an outgoing connection this is the response that is being processed.
    """
    state.reserved_bytes -= connection.reserved_bytes
    connection.reserved_bytes = 0
    if connection.frame.slab != NULL:
        slab_release(connection.frame.slab)
        connection.frame.slab = NULL
    if connection.in_process:
        connection.in_process = False
        if not connection.is_outgoing:
            state.in_process_count -= 1


cdef void gathered_request_answered(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Ends a produce request that compiled code (the gate) has appended, and queues the connection for its output.

    The gate's `finish` calls it when the request is answered, needs no answer, or its connection was closed.
    """
    connection.gathered -= 1
    if not connection.closed:
        connection_want_output(state, connection)


cdef void answer_defer(ReactorState *state, ConnectionState *connection, DeferredAnswer *answer,
                       int api_key) noexcept nogil:
    """Appends `answer` to the connection's deferred answers, which are sent in the order of the requests.

    The answer is counted for the API `api_key`. Compiled code (the gate's `finish`) calls this function for a produce
    request that it has appended and will answer when the high watermark has risen.
    """
    cdef RequestMeter *meter = meter_of(state.meters, api_key)
    if meter != NULL:
        meter.postponed += 1
    answer.next = NULL
    answer.connection = connection
    if connection.last_deferred != NULL:
        connection.last_deferred.next = answer
    else:
        connection.first_deferred = answer
    connection.last_deferred = answer
    connection.deferred += 1


cdef void answer_sent(ReactorState *state, ConnectionState *connection, int api_key) noexcept nogil:
    """Removes the connection's first deferred answer, which the caller has copied to the output and will free.

    Counts the request's duration for the API `api_key`.
    """
    cdef DeferredAnswer *answer = connection.first_deferred
    cdef RequestMeter *meter = meter_of(state.meters, api_key)
    if meter != NULL:
        meter_add(meter, 1, monotonic_us() - answer.received_us)
    connection.first_deferred = answer.next
    connection.deferred -= 1
    connection_touch(state, connection)  # otherwise it may count as idle before the answer is sent
    connection_want_output(state, connection)
    if connection.first_deferred == NULL:
        connection.last_deferred = NULL
        if connection.held_back:
            connection.held_back = False
            connection.queued_python = True
            queue_push(&state.python_queue, connection)
    if connection.deferred == DEFERRED_LIMIT - 1 and not connection.in_process:
        connection_want_input(state, connection)


cdef void forget_deferred(ConnectionState *connection) noexcept nogil:
    """Detaches a closed connection from its deferred answers. The owner of an answer then frees it without sending it.
    """
    cdef DeferredAnswer *answer = connection.first_deferred
    while answer != NULL:
        answer.connection = NULL
        answer = answer.next
    connection.first_deferred = connection.last_deferred = NULL
    connection.deferred = 0
    connection.held_back = False


cdef uint8_t *output_reserve(ReactorState *state, size_t size) noexcept nogil:
    """Returns a pointer to room for `size` bytes of an answer, or NULL if memory is short.

    The caller writes the bytes and calls `output_commit`.
    """
    state.shared_output = shared_with_room(state, state.shared_output, size)
    if state.shared_output == NULL:
        return NULL
    return state.shared_output.data + state.shared_output.used


cdef int output_commit(ReactorState *state, ConnectionState *connection, size_t size) noexcept nogil:
    """Appends the `size` bytes that were written after `output_reserve` to the connection's output.

    Returns 0, or -1 if memory is short.
    """
    cdef Slab *slab = state.shared_output
    cdef uint8_t *data = slab.data + slab.used
    cdef OutputChunk *tail = connection.output_tail
    if tail != NULL and tail.slab == slab and tail.data + tail.remaining == data:
        tail.remaining += <int64_t> size
        connection.output_bytes += <int64_t> size
    else:
        tail = output_append(state, connection, <int64_t> size)
        if tail == NULL:
            return -1
        slab_retain(slab)
        tail.slab = slab
        tail.data = data
    slab.used += size
    return 0


cdef OutputChunk *output_append(ReactorState *state, ConnectionState *connection, int64_t size) noexcept nogil:
    """Appends a chunk of `size` bytes to the connection's output, and returns it; NULL if memory is short.

    The caller stores in the chunk where its bytes are: in memory, or in a file.
    """
    cdef OutputChunk *chunk = state.free_chunks
    if chunk != NULL:
        state.free_chunks = chunk.next
        memset(chunk, 0, sizeof(OutputChunk))
    else:
        chunk = <OutputChunk *> calloc(1, sizeof(OutputChunk))
        if chunk == NULL:
            return NULL
    chunk.fd = -1
    chunk.remaining = size
    if connection.output_tail != NULL:
        connection.output_tail.next = chunk
    else:
        connection.output_head = chunk
    connection.output_tail = chunk
    connection.output_bytes += size
    return chunk


cdef void output_chunk_release(ReactorState *state, OutputChunk *chunk) noexcept nogil:
    """Frees what a chunk refers to, after it was removed from the output.

    References to Python objects are stored in `garbage`, and released when the interpreter lock is held.
    """
    if chunk.slab != NULL:
        slab_release(chunk.slab)
        chunk.slab = NULL
    if chunk.pin != NULL:
        chunk.release(chunk.pin)
        chunk.pin = NULL
    if chunk.has_view or chunk.owner != NULL:
        chunk.next = state.garbage
        state.garbage = chunk
    else:
        chunk.next = state.free_chunks
        state.free_chunks = chunk
