"""Phase 1 of a pass of the reactor: reads the sockets without the interpreter lock, and splits the bytes into frames.

    socket -> slab (a receive buffer) -> frame -> gate, or the queue for Python

The gate is the compiled code that serves usual Produce and Fetch requests. A request that it declines is queued for
Python. The frames of an outgoing connection are responses, which are always queued for Python.

All connections share a slab. Complete frames stay in it. An incomplete frame at the end is copied: up to three bytes of
a size prefix into the connection, a longer part into a slab of its own, which grows as bytes arrive, to at most four
times the bytes received. TLS decrypts into the same memory (`reactor_tls`).

A client's connection is not read while its request is being processed or its client has exceeded a quota (Kafka's
muting). The socket's buffer then becomes full and makes the client wait. Responses on outgoing connections are read
even if the output is full or the limits on requests are reached.
"""

from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from kafkapy._core.bytes.frame cimport FRAME_PREFIX_BYTES, frame_size_is_valid, response_size_is_valid
from kafkapy._core.bytes.primitives cimport load_int16, load_int32
from kafkapy._core.reactor.reactor_state cimport (
    CLOSE_BY_PEER, CLOSE_ERROR, CLOSE_INVALID_SIZE, CLOSE_NO_MEMORY, DEFERRED_LIMIT, GATE_ANSWERED, GATE_DECLINED,
    GATE_GATHERED, GATE_WAITS, OUTPUT_LIMIT, WORK_WEIGHT, connection_close, connection_release_input, connection_touch,
    connection_want_input, connection_want_output, prefetch, queue_push, queue_take, request_done, request_reserve,
    state_ensure_input_room, work_count,
)
from kafkapy._core.reactor.reactor_tls cimport iovec, readv, tls_receive
from kafkapy._core.reactor.request_meter cimport (
    FOLLOWER_FETCH_METER, RequestMeter, meter_add_pending, meter_at, meter_of)
from kafkapy._core.tls.tls_session cimport READ_BUFFER_BYTES
from kafkapy._core.bytes.slab cimport Slab, slab_grow, slab_release, slab_retain, slab_take, slab_take_cached

cdef extern from "<sys/socket.h>" nogil:
    int SOL_SOCKET
    int SO_RCVLOWAT
    ssize_t recv(int fd, void *buffer, size_t size, int flags)
    int setsockopt(int fd, int level, int option, const void *value, unsigned int length)

cdef enum:
    READS_PER_TURN = 8              # reads from one connection in one pass of the loop
    LEAST_LOW_WATER = 65536         # fewer missing bytes of a frame are not waited for together
    MOST_LOW_WATER = 262144
    ASSEMBLY_MINIMUM = 16384        # first capacity of a slab for a frame that is still arriving


cdef bint intake_is_blocked(ReactorState *state) noexcept nogil:
    """Returns whether no new request may be read, because intake is paused or requests occupy too much memory."""
    return state.intake_paused or (
        state.queued_max_request_bytes >= 0 and state.reserved_bytes >= state.queued_max_request_bytes)


cdef bint may_take(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Returns whether the connection's next frame may be handled now.

    The connection must be open and not muted, and have no frame in process; the reactor must not be stopping. The
    unsent bytes and deferred answers of a client's connection must also be below their limits.
    """
    if connection.is_outgoing:
        return not (connection.closed or connection.closing or connection.in_process or connection.is_connecting
                    or connection.muted or state.draining)
    return not (connection.closed or connection.closing or connection.in_process or connection.blocked
                or connection.muted or state.draining or connection.output_bytes > OUTPUT_LIMIT
                or connection.deferred >= DEFERRED_LIMIT)


cdef inline bint is_held_back(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Returns True if this is a client's connection and `intake_is_blocked` is true, so that no further request may
    begin."""
    return not connection.is_outgoing and intake_is_blocked(state)


cdef inline bint may_gate(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Returns whether the requests of the connection may be given to the compiled request path (the gate).

    The connection must have been adopted with `is_gated` (`Reactor.adopt`). Its client must be authenticated, and the
    authentication must not have expired.
    """
    return (state.gate != NULL and not connection.ungated and not connection.is_authenticating
            and state.monotonic_ms < connection.gated_until_ms)


cdef inline bint size_is_valid(ConnectionState *connection, int32_t size) noexcept nogil:
    if connection.is_outgoing:
        return response_size_is_valid(size, connection.max_frame_bytes)
    if connection.is_authenticating:  # a token may have any size
        return 0 <= size <= connection.max_frame_bytes
    return frame_size_is_valid(size, connection.max_frame_bytes)


cdef void begin_assembly(ReactorState *state, ConnectionState *connection, int32_t size, const uint8_t *data,
                         size_t available) noexcept nogil:
    """Begins to collect a frame of `size` bytes in a slab of its own; copies the first `available` bytes, at `data`."""
    cdef size_t capacity = available * 4
    cdef Slab *slab = slab_take_cached(state.pool, <size_t> size)
    if slab == NULL:
        if capacity < ASSEMBLY_MINIMUM:
            capacity = ASSEMBLY_MINIMUM
        slab = slab_take(state.pool, capacity if capacity < <size_t> size else <size_t> size)
    if slab == NULL:
        connection_close(state, connection, CLOSE_NO_MEMORY, size)
        return
    memcpy(slab.data, data, available)
    slab.used = available
    connection.assembly = slab
    connection.assembly_size = size
    request_reserve(state, connection, size)


cdef void set_frame(ReactorState *state, ConnectionState *connection, Slab *slab, uint8_t *data,
                    int32_t size) noexcept nogil:
    """Makes the `size` bytes at `data` the frame in process of the connection.

    The frame takes over one of the caller's pins on `slab`, which contains the bytes.
    """
    connection.frame.connection = connection
    connection.frame.slab = slab
    connection.frame.data = data
    connection.frame.size = size
    connection.frame.received_us = state.now_us
    connection.frame.api_key = load_int16(data) if size >= 2 else -1
    connection.frame.is_from_follower = False
    connection.frame.is_exempt = False
    connection.frame.has_invalid_size = False
    connection.in_process = True
    if connection.is_outgoing:
        state.responses_received += 1
    else:
        state.in_process_count += 1
        state.requests_received += 1


cdef bint take_frame(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Makes the connection's next frame the frame in process, if it has arrived completely; returns whether it has.

    Stores the bytes of an incomplete frame in memory of its own.
    """
    cdef uint8_t *at
    cdef size_t available
    cdef size_t taken
    cdef int32_t size
    if connection.assembly != NULL:
        if connection.assembly.used < <size_t> connection.assembly_size:
            return False
        set_frame(state, connection, connection.assembly, connection.assembly.data, connection.assembly_size)
        connection.assembly = NULL
        return True
    if connection.input == NULL:
        return False
    at = connection.input.data + connection.input_pos
    available = connection.input_end - connection.input_pos
    taken = <size_t> (FRAME_PREFIX_BYTES - connection.prefix_size)
    if available < taken:
        memcpy(connection.prefix + connection.prefix_size, at, available)
        connection.prefix_size += <int> available
        connection_release_input(connection)
        return False
    memcpy(connection.prefix + connection.prefix_size, at, taken)
    connection.prefix_size = 0
    size = load_int32(connection.prefix)
    if not size_is_valid(connection, size):
        connection_release_input(connection)
        if connection.is_authenticating:  # Python delays the close
            set_frame(state, connection, NULL, NULL, 0)
            connection.frame.has_invalid_size = True
            return True
        connection_close(state, connection, CLOSE_INVALID_SIZE, size)
        return False
    at += taken
    available -= taken
    if available < <size_t> size:
        begin_assembly(state, connection, size, at, available)
        connection_release_input(connection)
        return False
    slab_retain(connection.input)
    request_reserve(state, connection, size)
    set_frame(state, connection, connection.input, at, size)
    connection.input_pos += taken + <size_t> size
    if connection.input_pos == connection.input_end:
        connection_release_input(connection)
    return True


cdef inline void count_gated(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Counts a request that compiled code (the gate) has served. Its duration is added at the end of this pass."""
    count_pending(state, meter_of(state.meters, connection.frame.api_key), connection.frame.size)
    if connection.frame.is_from_follower:
        count_pending(state, meter_at(state.meters, FOLLOWER_FETCH_METER), connection.frame.size)


cdef inline void count_pending(ReactorState *state, RequestMeter *meter, int32_t size) noexcept nogil:
    if meter != NULL:
        meter_add_pending(&state.pending_meters, meter)
        meter.request_bytes += size


cdef void input_advance(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Presents the connection's complete frames, in order, to the compiled code that serves usual requests (the gate).

    Stops at the first frame that the gate declines, or a fetch that has to wait for data, and queues it for Python.
    Several produce requests that arrive together need only one write to the log and one to the socket.
    """
    cdef int verdict
    while may_take(state, connection):
        if is_held_back(state, connection) and connection.assembly == NULL:
            break
        if not take_frame(state, connection):
            break
        verdict = GATE_DECLINED
        if may_gate(state, connection):
            verdict = state.gate(state.gate_context, &connection.frame)
            work_count(state, connection, WORK_WEIGHT)
        if verdict == GATE_DECLINED or verdict == GATE_WAITS:
            connection.frame.verdict = verdict
            connection.queued_python = True
            queue_push(&state.python_queue, connection)
            return
        state.requests_gated += 1
        count_gated(state, connection)
        request_done(state, connection)
        if verdict == GATE_GATHERED:
            connection.gathered += 1
        elif verdict == GATE_ANSWERED:
            connection_want_output(state, connection)
    if may_take(state, connection) and (connection.readable or connection.input != NULL):
        connection_want_input(state, connection)


cdef int fill_vector(ReactorState *state, ConnectionState *connection, iovec *vector) noexcept nogil:
    """Sets `vector` to the memory into which the next bytes are read; returns the number of its entries.

    They are the rest of a frame that is arriving, if any, and free bytes of the shared slab. Returns -1 if memory is
    short.
    """
    cdef Slab *slab = connection.assembly
    cdef size_t missing
    cdef size_t room
    cdef int count = 0
    if slab != NULL:
        missing = <size_t> connection.assembly_size - slab.used
        if slab.used == slab.capacity:
            room = slab.capacity * 4
            if slab_grow(slab, room if room < <size_t> connection.assembly_size else <size_t> connection.assembly_size):
                return -1
        room = slab.capacity - slab.used
        vector[0].iov_base = slab.data + slab.used
        vector[0].iov_len = room if room < missing else missing
        count = 1
        # While intake is blocked, only partly received frames may be completed.
        if room < missing or is_held_back(state, connection):
            return count
    if state_ensure_input_room(state):
        return -1
    slab = state.shared_input
    vector[count].iov_base = slab.data + slab.used
    vector[count].iov_len = slab.capacity - slab.used
    return count + 1


cdef void distribute(ReactorState *state, ConnectionState *connection, size_t received) noexcept nogil:
    """Assigns the `received` bytes that were just read: first to the frame that is arriving, as far as it has memory.

    The rest, which is in the shared slab, becomes the connection's input.
    """
    cdef Slab *slab = connection.assembly
    cdef size_t missing
    if slab != NULL:
        missing = <size_t> connection.assembly_size - slab.used
        if missing > slab.capacity - slab.used:
            missing = slab.capacity - slab.used
        if received <= missing:
            slab.used += received
            return
        slab.used += missing
        received -= missing
    slab = state.shared_input
    slab_retain(slab)
    connection.input = slab
    connection.input_pos = slab.used
    connection.input_end = slab.used + received
    slab.used += (received + 15) & ~<size_t> 15
    if slab.used > slab.capacity:
        slab.used = slab.capacity


cdef inline void note_received(ReactorState *state, ConnectionState *connection, size_t received) noexcept nogil:
    state.bytes_received += <int64_t> received
    work_count(state, connection, <int64_t> received)
    connection_touch(state, connection)
    distribute(state, connection, received)


cdef inline bint may_read_on(ConnectionState *connection) noexcept nogil:
    """Returns whether to read again: the frame that is arriving is incomplete, and the socket may have more bytes."""
    return (connection.readable and connection.input == NULL and connection.assembly != NULL
            and connection.assembly.used < <size_t> connection.assembly_size)


cdef bint receive(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Reads from the socket once. Returns whether to read again before frames are handled."""
    cdef iovec vector[2]
    cdef size_t room
    cdef ssize_t received
    cdef int count = fill_vector(state, connection, vector)
    if count < 0:
        connection_close(state, connection, CLOSE_NO_MEMORY, 0)
        return False
    if connection.tls != NULL:
        received = tls_receive(state, connection, vector, count)
        if received > 0:
            note_received(state, connection, <size_t> received)
        return may_read_on(connection)
    room = vector[0].iov_len + (vector[1].iov_len if count == 2 else 0)
    prefetch(connection.gate_limits)  # the gate reads the limits after the system call; NULL is harmless
    if count == 1:
        received = recv(connection.fd, vector[0].iov_base, vector[0].iov_len, 0)
    else:
        received = readv(connection.fd, vector, count)
    if received > 0:
        note_received(state, connection, <size_t> received)
        if <size_t> received < room and not connection.hangup:
            connection.readable = False  # all bytes were read: the next arrival is a new edge
        return may_read_on(connection)
    if received == 0:
        connection.readable = False
        connection_close(state, connection, CLOSE_BY_PEER, 0)
    elif errno == EAGAIN:
        connection.readable = False
    elif errno != EINTR:
        connection_close(state, connection, CLOSE_ERROR, errno)
    return False


cdef void set_low_water(ConnectionState *connection) noexcept nogil:
    """Sets how many bytes the socket must hold before the connection is readable again.

    While a long frame is arriving, the socket becomes readable only when it holds many bytes of the frame, so that the
    reactor does not wake up for each segment. The end of the stream wakes the reactor up at once.
    """
    cdef int64_t missing = 0
    cdef int wanted = 0             # the system's default
    if connection.assembly != NULL and not connection.readable:
        missing = <int64_t> connection.assembly_size - <int64_t> connection.assembly.used
        if connection.tls != NULL:
            missing -= READ_BUFFER_BYTES  # the session may hold so many bytes that are not decrypted yet
        if missing >= LEAST_LOW_WATER:
            wanted = <int> missing if missing < MOST_LOW_WATER else MOST_LOW_WATER
    if wanted != connection.low_water:
        connection.low_water = wanted
        setsockopt(connection.fd, SOL_SOCKET, SO_RCVLOWAT, &wanted, sizeof(int))


cdef void input_serve(ReactorState *state, ConnectionState *connection) noexcept nogil:
    """Serves one connection in phase 1: handles frames that were read before, reads from the socket, and handles the
    frames just read."""
    cdef int turns = 0
    if connection.closed:
        return
    if connection.input != NULL:
        input_advance(state, connection)
    if not (may_take(state, connection) and connection.readable and connection.input == NULL):
        return
    if connection.assembly == NULL and is_held_back(state, connection):
        connection_want_input(state, connection)
        return
    while receive(state, connection):
        turns += 1
        if turns == READS_PER_TURN:
            break
    input_advance(state, connection)
    if not connection.closed:
        set_low_water(connection)


cdef void input_serve_queued(ReactorState *state) noexcept nogil:
    cdef ConnectionState *connection
    cdef size_t waiting = queue_take(state, &state.input_queue)
    cdef size_t index
    state.input_urgent = False
    for index in range(waiting):
        connection = state.spare_queue.items[index]
        connection.queued_input = False
        input_serve(state, connection)
