"""The Python classes of connections and frames, and the writing of a frame into a connection's output."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, Py_buffer, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.memoryview cimport PyMemoryView_FromObject
from cpython.pythread cimport PyThread_get_thread_ident
from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject
from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, strerror

from kafkapy._core.bytes.frame cimport FRAME_PREFIX_BYTES
from kafkapy._core.bytes.primitives cimport store_uint32
from kafkapy._core.reactor.reactor_output cimport output_flush
from kafkapy._core.reactor.request_meter cimport (
    FOLLOWER_FETCH_METER, RequestMeter, meter_add, meter_at, meter_of)
from kafkapy._core.reactor.reactor_state cimport (
    CLOSE_BY_PEER, CLOSE_ERROR, CLOSE_IDLE, CLOSE_INVALID_SIZE, CLOSE_LOCAL, CLOSE_NO_MEMORY, CLOSE_SHORT_FILE,
    CLOSE_SHUTDOWN, CLOSE_TLS, CLOSE_UNAUTHENTICATED, ConnectionState, OutputChunk, ReactorState, RequestFrame,
    connection_close, connection_touch, connection_want_input, connection_want_output, monotonic_us, output_append,
    output_commit, output_reserve, queue_push, request_done,
)
from kafkapy._core.bytes.segment_file cimport FileRange
from kafkapy._core.bytes.slab cimport slab_release
from kafkapy._core.tls.session_facts cimport (
    release_session, session_certificate, session_cipher, session_error, session_is_resumed, session_protocol)

cdef enum:
    COPY_LIMIT = 8192               # a chunk of at most this size is copied, a longer one is pinned
    GATHER_LIMIT = 65536            # the most bytes of frames that wait to be written together


cdef int write_answer(ReactorState *shared, ConnectionState *connection, chunks) except -1:
    cdef uint8_t *prefix = output_reserve(shared, FRAME_PREFIX_BYTES)
    cdef int64_t total = 0
    if prefix == NULL or output_commit(shared, connection, FRAME_PREFIX_BYTES):
        connection_close(shared, connection, CLOSE_NO_MEMORY, 0)
        raise MemoryError()
    try:
        for chunk in chunks:
            append_chunk(shared, connection, chunk, &total)
        if total > 0x7fffffff:
            raise ValueError(f"an answer of {total} bytes does not fit a frame")
    except BaseException:
        connection_close(shared, connection, CLOSE_NO_MEMORY, 0)
        raise
    store_uint32(prefix, <uint32_t> total)
    return 0


cdef int append_chunk(ReactorState *shared, ConnectionState *connection, chunk, int64_t *total) except -1:
    """Appends a chunk to the connection's output, and adds its length in bytes to `total`.

    A short chunk is copied. A long chunk and a FileRange are not copied, and are *pinned*: they are not freed before
    they are sent.
    """
    cdef OutputChunk *piece
    cdef Py_buffer view
    cdef uint8_t *room
    cdef FileRange file_range
    if isinstance(chunk, FileRange):
        file_range = <FileRange> chunk
        if file_range.length > 0:
            piece = output_append(shared, connection, file_range.length)
            if piece == NULL:
                raise MemoryError()
            piece.fd = file_range.file.descriptor.fd
            piece.position = file_range.position
            Py_INCREF(chunk)
            piece.owner = <PyObject *> chunk
            total[0] += file_range.length
        return 0
    PyObject_GetBuffer(chunk, &view, PyBUF_SIMPLE)
    total[0] += view.len
    if view.len > COPY_LIMIT:
        piece = output_append(shared, connection, view.len)
        if piece == NULL:
            PyBuffer_Release(&view)
            raise MemoryError()
        piece.view = view
        piece.has_view = True
        piece.data = <const uint8_t *> view.buf
        return 0
    room = output_reserve(shared, <size_t> view.len)
    if room != NULL:
        memcpy(room, view.buf, <size_t> view.len)
    failed = room == NULL or (view.len and output_commit(shared, connection, <size_t> view.len))
    PyBuffer_Release(&view)
    if failed:
        raise MemoryError()
    return 0


cdef void count_answered(ReactorState *shared, RequestFrame *frame) noexcept nogil:
    cdef int64_t elapsed_us = monotonic_us() - frame.received_us
    count_in_meter(meter_of(shared.meters, frame.api_key), frame.size, elapsed_us)
    if frame.is_from_follower:
        count_in_meter(meter_at(shared.meters, FOLLOWER_FETCH_METER), frame.size, elapsed_us)


cdef inline void count_in_meter(RequestMeter *meter, int32_t size, int64_t elapsed_us) noexcept nogil:
    if meter != NULL:
        meter.request_bytes += size
        meter_add(meter, 1, elapsed_us)


cdef int release_garbage(ReactorState *shared) except -1:
    cdef OutputChunk *chunk
    cdef PyObject *owner
    while shared.garbage != NULL:
        chunk = shared.garbage
        shared.garbage = chunk.next
        if chunk.has_view:
            PyBuffer_Release(&chunk.view)
        owner = chunk.owner
        chunk.next = shared.free_chunks
        shared.free_chunks = chunk
        Py_XDECREF(owner)
    return 0


cdef class Connection:
    """One client's connection. Owns its C state. Only the thread that owns it may use it, except for `close`.

    At most one of its requests is in process, from the call of `dispatch` with it to `respond`.
    """

    def __cinit__(self):
        self.native = <ConnectionState *> calloc(1, sizeof(ConnectionState))
        if self.native == NULL:
            raise MemoryError()
        self.native.closed = True
        self.native.fd = -1

    def __dealloc__(self):
        if self.native != NULL and self.native.tls != NULL:
            release_session(self.native.tls)
        free(self.native)

    @property
    def is_closed(self):
        return self.native.closed

    @property
    def fd(self):
        """The socket's descriptor; -1 once the connection is closed."""
        return self.native.fd

    cpdef respond(self, chunks):
        """Answers the request that is being processed. Does nothing if the connection is closed.

        `chunks` are the parts of the answer, without the size prefix: bytes-like objects and FileRanges, which are
        *pinned*: they are not freed before they are sent. None sends no answer.
        """
        cdef ConnectionState *native = self.native
        if native.closed or native.closing:
            return
        if self.shared.thread != 0 and self.shared.thread != <unsigned long> PyThread_get_thread_ident():
            raise RuntimeError("only the reactor's thread may answer: post() it")
        if not native.in_process:
            raise RuntimeError(f"connection {self.id} has no request in process")
        if chunks is not None:
            write_answer(self.shared, native, chunks)
        count_answered(self.shared, &native.frame)
        request_done(self.shared, native)
        connection_touch(self.shared, native)  # otherwise it may count as idle before the answer is sent
        connection_want_output(self.shared, native)
        if not native.queued_answered:
            native.queued_answered = True
            queue_push(&self.shared.answered_queue, native)

    cdef void forget_queues(self) noexcept:
        self.native.queued_input = False
        self.native.queued_python = False
        self.native.queued_answered = False
        self.native.queued_output = False
        self.native.queued_handshake = False

    def mute(self, int64_t delay_ms):
        """Reads and handles no request of the connection for `delay_ms`, because its client has exceeded a quota.

        Answers are still sent. If the connection is muted already, the later one of the two ends counts.
        """
        cdef int64_t until_ms = self.shared.monotonic_ms + delay_ms
        if self.native.closed or delay_ms <= 0:
            return
        if self.native.muted and self.muted_until_ms >= until_ms:
            return
        if self.native.muted:
            self.unmute_timer.cancel()
        else:
            self.native.muted = True
            self.shared.muted_count += 1
        self.muted_until_ms = until_ms
        self.unmute_timer = self.reactor.schedule(delay_ms, self.unmute)

    def unmute(self):
        """Ends the mute, and handles the requests that have arrived.

        Must be called for a muted connection that is closed, too, so that the mute's timer does not keep it alive.
        """
        if self.unmute_timer is not None:
            self.unmute_timer.cancel()
            self.unmute_timer = None
        if self.native.muted:
            self.native.muted = False
            self.shared.muted_count -= 1
            connection_want_input(self.shared, self.native)

    @property
    def is_muted(self):
        return self.native.muted

    def note_follower_fetch(self):
        """Marks the request that is being processed as a follower's fetch.

        It is then counted by the meter FOLLOWER_FETCHES, too, and no quota limits its time.
        """
        self.native.frame.is_from_follower = True
        self.native.frame.is_exempt = True

    @property
    def is_exempt(self):
        """True if the request in process is known to be exempt from the quota of request time (KIP-124).

        It is set for fetches of followers and for Produce with acks=0: by the compiled request path (the gate) if that
        has read the request, and by `note_follower_fetch`.
        """
        return self.native.frame.is_exempt

    @property
    def is_encrypted(self):
        return self.native.tls != NULL

    @property
    def tls_protocol(self):
        """The version of TLS, such as "TLSv1.3"; None if the connection is closed, not encrypted or still in its
        handshake."""
        return session_protocol(self.native.tls)

    @property
    def tls_cipher(self):
        """IANA's name of the cipher suite; None if the connection is closed, not encrypted or in its handshake."""
        return session_cipher(self.native.tls)

    @property
    def tls_is_resumed(self):
        """True if the TLS handshake resumed an earlier session, without a certificate or signature."""
        return session_is_resumed(self.native.tls)

    def peer_certificate(self):
        """Returns the peer's certificate in DER, or None if the peer has none, or the connection is closed or not
        encrypted."""
        return session_certificate(self.native.tls)

    def begin_authentication(self, int32_t max_frame_bytes):
        """Passes every later frame to Python, and none to the compiled request path, until `end_authentication`.

        A frame may have 0 to `max_frame_bytes` bytes, since it may be a token of SASL instead of a request. A frame of
        another size becomes a Request whose `has_invalid_size` is True; no frame follows it.
        """
        self.native.is_authenticating = True
        self.native.max_frame_bytes = max_frame_bytes

    def end_authentication(self, int64_t lifetime_ms):
        """Restores the limit of a request's size, and presents later requests to the compiled request path (the gate).

        This applies to a connection that was adopted with `is_gated`. After `lifetime_ms`, all requests are passed to
        Python, because the client has to authenticate again; -1 means that it never has to.
        """
        cdef ConnectionState *native = self.native
        native.is_authenticating = False
        native.max_frame_bytes = self.shared.max_request_bytes
        native.gated_until_ms = INT64_MAX if lifetime_ms < 0 else self.shared.monotonic_ms + lifetime_ms

    @property
    def unsent_bytes(self):
        """The number of bytes that the kernel has not accepted yet."""
        return self.native.output_bytes

    def close_unauthenticated(self, str reason):
        """Closes the connection as `close` does, but `on_close` is called with CLOSE_UNAUTHENTICATED as the kind.

        Only the thread that owns it may use it.
        """
        if not self.native.closed and not self.native.closing:
            self.close_text = reason
            connection_close(self.shared, self.native, CLOSE_UNAUTHENTICATED, 0)

    def close(self, str reason):
        """Closes the connection after its pending answers are sent. `describe_close` returns `reason`. Any thread may
        call it.
        """
        if self.shared.thread != 0 and self.shared.thread != <unsigned long> PyThread_get_thread_ident():
            self.reactor.post(lambda: self.close(reason))
            return
        if not self.native.closed and not self.native.closing:
            self.close_text = reason
            connection_close(self.shared, self.native, CLOSE_LOCAL, 0)

    def describe_close(self):
        """Returns the reason why the connection was closed, as text; "open" for an open connection."""
        cdef ConnectionState *native = self.native
        cdef int reason = native.close_reason
        if reason in (CLOSE_LOCAL, CLOSE_UNAUTHENTICATED):
            return self.close_text
        if reason == CLOSE_INVALID_SIZE:
            limit = native.max_frame_bytes
            more = f" larger than {limit}" if native.close_detail > limit else ""
            return f"Invalid receive (size = {native.close_detail}{more})"
        if reason == CLOSE_ERROR:
            return strerror(<int> native.close_detail).decode()
        if reason == CLOSE_TLS:
            return f"TLS failed: {session_error(native.tls)}"
        return {
            CLOSE_BY_PEER: "closed by the peer",
            CLOSE_IDLE: "idle for too long",
            CLOSE_NO_MEMORY: "out of memory",
            CLOSE_SHORT_FILE: f"a file ended {native.close_detail} bytes before the answer did",
            CLOSE_SHUTDOWN: "shutting down",
        }.get(reason, "open")


cdef class OutgoingConnection(Connection):
    """A connection that this process opened. Only the thread that owns it may use it, except for `close`.

    Frames may be sent at any time, and `on_response` is called with each response. Frames that are passed to `send`
    before the connection is established are transmitted as soon as it is. The caller has to limit the number of frames
    that wait for a response.
    """

    @property
    def close_errno(self):
        """The errno with which the connection was refused or broken; 0 if it is open, or closed for another reason."""
        return self.native.close_detail if self.native.close_reason == CLOSE_ERROR else 0

    def send(self, chunks, bint at_once=True):
        """Sends one frame. Does nothing if the connection is closed.

        `chunks` are the parts of the frame, without the size prefix: bytes-like objects and FileRanges, which are
        *pinned*: they are not freed before they are sent. If `at_once` is set, or if more than GATHER_LIMIT bytes wait,
        all waiting frames are written immediately, so that the peer can begin to work. Otherwise the frame waits until
        the reactor writes all answers (phase 3), so that one system call writes several frames. Bytes that the socket
        does not accept wait, too.
        """
        cdef ConnectionState *native = self.native
        if native.closed or native.closing:
            return
        if self.shared.thread != 0 and self.shared.thread != <unsigned long> PyThread_get_thread_ident():
            raise RuntimeError("only the reactor's thread may send: post() it")
        write_answer(self.shared, native, chunks)
        connection_touch(self.shared, native)
        if native.blocked:
            return
        if at_once or native.output_bytes > GATHER_LIMIT:
            with nogil:
                output_flush(self.shared, native)
        else:
            connection_want_output(self.shared, native)

    cdef int deliver(self, Request response) except -1:
        """Calls `on_response` with the response, and allows the connection's next one to be handled.

        The response's bytes exist as long as the Request, or a slice of its payload, is referenced.
        """
        cdef ConnectionState *native = self.native
        self.on_response(response)
        if not native.closed:
            request_done(self.shared, native)
            if not native.queued_answered:
                native.queued_answered = True
                queue_push(&self.shared.answered_queue, native)
        return 0


@cython.freelist(64)
cdef class Request:
    """One frame in process, header and body without the size prefix.

    It is a client's request, or the response to a request of an OutgoingConnection. It *pins* its bytes, and so does
    every slice of `payload`, which may outlive the request and may be modified in place. The request itself supports
    the buffer protocol.
    """

    def __dealloc__(self):
        if self.slab != NULL:
            slab_release(self.slab)
        if self.owns_data:
            free(self.data)

    def detach(self):
        """Copies the bytes to memory of the request's own, so that the receive buffer (slab) can be used again.

        A request that is kept for long needs this, because all connections share the receive buffer.

        Must be called before any slice of `payload` exists.
        """
        cdef uint8_t *copy
        if self.slab != NULL:
            copy = <uint8_t *> malloc(<size_t> self.size)
            if copy == NULL:
                raise MemoryError()
            memcpy(copy, self.data, <size_t> self.size)
            slab_release(self.slab)
            self.slab = NULL
            self.data = copy
            self.owns_data = True

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, self.size, 0, flags)

    def __len__(self):
        return self.size

    @property
    def size_in_bytes(self):
        return self.size

    @property
    def payload(self):
        """A writable memoryview of the frame's bytes."""
        return PyMemoryView_FromObject(self)
