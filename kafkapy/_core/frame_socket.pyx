"""A client's end of a connection: frames out, frames in, over a non-blocking socket.

The system calls keep the interpreter lock on purpose. They never wait, and who gives the lock away while another thread
computes gets it back only after a switch interval (5 ms), many times what the call takes.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcpy, memmove, memset

from kafkapy._core.primitives cimport load_int32, store_int32

cdef extern from "sys/socket.h" nogil:
    enum:
        MSG_DONTWAIT
        MSG_NOSIGNAL
    struct iovec:
        void *iov_base
        size_t iov_len
    struct msghdr:
        iovec *msg_iov
        size_t msg_iovlen
    ssize_t c_sendmsg "sendmsg"(int fd, const msghdr *message, int flags)
    ssize_t c_recv "recv"(int fd, void *data, size_t size, int flags)

cdef enum:
    STAGING_BYTES = 65536
    SIZE_BYTES = 4
    TURN_BYTES = 4194304                 # read in one turn, so that one connection does not starve the others
    MOST_PIECES = 64                     # given to the kernel in one call


cdef class FrameSocket:
    """Owns the bytes on their way out, and the frame that is coming in. Not thread-safe; the socket stays the caller's.

    A frame that says it is larger than `max_frame_bytes` (or negative) is refused before anything is allocated.
    """

    cdef int fd
    cdef Py_ssize_t max_frame_bytes
    cdef list outgoing                   # bytes-like, the first one partly sent
    cdef Py_ssize_t sent                 # of the first
    cdef int failure                     # errno of the last call that sent nothing
    cdef bytearray staging
    cdef Py_ssize_t staged
    cdef bytes frame                     # being filled
    cdef Py_ssize_t filled
    cdef readonly Py_ssize_t bytes_sent, bytes_received

    def __init__(self, int fd, Py_ssize_t max_frame_bytes):
        self.fd = fd
        self.max_frame_bytes = max_frame_bytes
        self.outgoing = []
        self.staging = bytearray(STAGING_BYTES)

    @property
    def is_sending(self):
        """Whether bytes wait for the socket."""
        return bool(self.outgoing)

    def put(self, list chunks):
        """Queues one frame, made of bytes-like chunks; the size goes before it."""
        cdef Py_ssize_t size = 0
        for chunk in chunks:
            size += len(chunk)
        cdef bytes prefix = PyBytes_FromStringAndSize(NULL, SIZE_BYTES)
        store_int32(<uint8_t *>PyBytes_AS_STRING(prefix), <int32_t>size)
        self.outgoing.append(prefix)
        self.outgoing.extend(chunks)

    def send(self):
        """Gives the socket what it takes. True when nothing is left. OSError when the connection is broken."""
        cdef Py_ssize_t written
        while self.outgoing:
            written = self.send_pieces()
            if written < 0:
                if self.failure == EINTR:
                    continue
                if self.failure == EAGAIN:
                    break
                raise OSError(self.failure, "send failed")
            self.bytes_sent += written
            self.drop_sent(written)
        return not self.outgoing

    cdef Py_ssize_t send_pieces(self) except -2:
        """One call for as many pieces as it takes; the bytes that the socket took, or -1 and `failure` says why."""
        cdef Py_buffer views[MOST_PIECES]
        cdef iovec pieces[MOST_PIECES]
        cdef msghdr message
        cdef Py_ssize_t written = 0
        cdef int index, count = 0
        memset(&message, 0, sizeof(message))
        try:
            for index in range(<int>min(len(self.outgoing), <Py_ssize_t>MOST_PIECES)):
                PyObject_GetBuffer(self.outgoing[index], &views[index], PyBUF_SIMPLE)
                count += 1
                pieces[index].iov_base, pieces[index].iov_len = views[index].buf, <size_t>views[index].len
            pieces[0].iov_base = <uint8_t *>views[0].buf + self.sent
            pieces[0].iov_len = <size_t>(views[0].len - self.sent)
            message.msg_iov, message.msg_iovlen = pieces, <size_t>count
            written = c_sendmsg(self.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL)
            self.failure = errno
        finally:
            for index in range(count):
                PyBuffer_Release(&views[index])
        return written

    cdef int drop_sent(self, Py_ssize_t written) except -1:
        """Pieces that have gone whole are let go of."""
        cdef Py_ssize_t index = 0, size
        written += self.sent
        while index < len(self.outgoing):
            size = len(self.outgoing[index])
            if written < size:
                break
            written -= size
            index += 1
        self.sent = written
        del self.outgoing[:index]
        return 0

    def receive(self):
        """The frames that have come whole, as bytes without their size. ConnectionError at the end of the stream,
        OSError when the connection is broken, ValueError for a frame of an impossible size."""
        cdef list frames = []
        cdef Py_ssize_t got, turn = 0
        while turn < TURN_BYTES:
            if self.frame is not None:
                got = c_recv(self.fd, PyBytes_AS_STRING(self.frame) + self.filled,
                             len(self.frame) - self.filled, MSG_DONTWAIT)
            else:
                got = c_recv(self.fd, <char *>self.staging + self.staged, STAGING_BYTES - self.staged, MSG_DONTWAIT)
            if got < 0:
                if errno == EINTR:
                    continue
                if errno == EAGAIN:
                    break
                raise OSError(errno, "receive failed")
            if got == 0:
                if frames:
                    break                # the next turn meets the end again
                raise ConnectionError("the broker closed the connection")
            turn += got
            self.take(got, frames)
        self.bytes_received += turn
        return frames

    cdef int take(self, Py_ssize_t got, list frames) except -1:
        cdef Py_ssize_t pos = 0, size
        cdef uint8_t *at = <uint8_t *><char *>self.staging
        if self.frame is not None:
            self.filled += got
            if self.filled == len(self.frame):
                frames.append(self.frame)
                self.frame = None
            return 0
        self.staged += got
        while self.staged - pos >= SIZE_BYTES:
            size = load_int32(at + pos)
            if size < 0 or size > self.max_frame_bytes:
                raise ValueError(f"a frame of {size} bytes; at most {self.max_frame_bytes} are taken")
            got = min(size, self.staged - pos - SIZE_BYTES)
            frame = PyBytes_FromStringAndSize(NULL, size)
            memcpy(PyBytes_AS_STRING(frame), at + pos + SIZE_BYTES, got)
            pos += SIZE_BYTES + got
            if got < size:
                self.frame, self.filled = frame, got
                break
            frames.append(frame)
        memmove(at, at + pos, self.staged - pos)
        self.staged -= pos
        return 0
