"""A client's end of a connection: sends and receives frames over a non-blocking socket.

The system calls hold the interpreter lock on purpose. They never block. A thread that releases the lock while another
thread computes gets it back only after a switch interval (5 ms), which is many times the duration of the call.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memcpy, memmove, memset

from kafkapy._core.bytes.primitives cimport load_int32, store_int32

cdef extern from "sys/socket.h" nogil:
    enum:
        MSG_DONTWAIT
        MSG_NOSIGNAL
        SOL_SOCKET
        SO_RCVLOWAT
    int setsockopt(int fd, int level, int option, const void *value, unsigned int size)
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
    TURN_BYTES = 4194304                 # read in one call, so that one connection does not starve the others
    MOST_PIECES = 64                     # passed to the kernel in one call
    LARGEST_LOW_WATER = 1048576          # of a large frame, waited for at a time
    AHEAD_BYTES = 8388608                # received by the system between calls of `receive`


cdef class FrameSocket:
    """The client's end of a connection: the bytes to send, and the frame that is being received. Not thread-safe.

    The caller owns the socket. A frame whose size prefix is negative or exceeds `max_frame_bytes` is refused before
    memory is allocated.
    """

    def __init__(self, int fd, Py_ssize_t max_frame_bytes):
        self.fd = fd
        self.max_frame_bytes = max_frame_bytes
        self.outgoing = []
        self.staging = bytearray(STAGING_BYTES)
        self.low_water = 1

    @property
    def is_sending(self):
        """True while bytes are waiting to be sent."""
        return bool(self.outgoing)

    def put(self, list chunks):
        """Queues one frame, which consists of its size and these bytes-like chunks."""
        cdef Py_ssize_t size = 0
        for chunk in chunks:
            size += len(chunk)
        cdef bytes prefix = PyBytes_FromStringAndSize(NULL, SIZE_BYTES)
        store_int32(<uint8_t *>PyBytes_AS_STRING(prefix), <int32_t>size)
        self.queued += size + SIZE_BYTES
        self.outgoing.append(prefix)
        self.outgoing.extend(chunks)

    def send(self):
        """Sends what the socket accepts; returns True if nothing is left to send, otherwise False.

        Raises OSError if the connection is broken.
        """
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
            self.queued -= written
            self.drop_sent(written)
        return not self.outgoing

    cdef Py_ssize_t send_pieces(self) except -2:
        """Sends as many pieces as fit one call; returns the number of bytes sent.

        Returns -1 if nothing was sent, and sets `failure` to the errno.
        """
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
        """Removes the next `written` bytes, which were just sent, from the pieces to send.

        A piece that was sent in part stays until its rest is sent.
        """
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
        """Returns the complete frames received, as bytes without their size.

        Raises ConnectionError at the end of the stream, OSError if the connection is broken, and ValueError for a frame
        of an impossible size.
        """
        cdef list frames = []
        cdef Py_ssize_t room, got, turn = 0
        while turn < TURN_BYTES:
            if self.frame is not None:
                room = len(self.frame) - self.filled
                got = self.read_some(PyBytes_AS_STRING(self.frame) + self.filled, room)
            else:
                room = STAGING_BYTES - self.staged
                got = self.read_some(<char *>self.staging + self.staged, room)
            if got < 0:
                if self.failure == EINTR:
                    continue
                if self.failure == EAGAIN:
                    break
                raise OSError(self.failure, "receive failed")
            if got == 0:
                if frames:
                    break                # the next call sees the end again
                raise ConnectionError("the broker closed the connection")
            turn += got
            self.take(got, frames)
            if got < room:
                break                    # nothing more has arrived
        self.bytes_received += turn
        cdef Py_ssize_t missing = 1 if self.frame is None else len(self.frame) - self.filled
        self.wait_for(<int>min(missing, <Py_ssize_t>LARGEST_LOW_WATER))
        return frames

    cdef Py_ssize_t read_some(self, char *at, Py_ssize_t room) except -2:
        """Reads at most `room` bytes, fewer only if no more have arrived; returns 0 at the end of the stream.

        Returns -1 if nothing was read, and sets `failure` to the errno.
        """
        cdef Py_ssize_t got = c_recv(self.fd, at, room, MSG_DONTWAIT)
        if got < 0:
            self.failure = errno
        return got

    def take_ahead(self):
        """Increases the low-water mark, so that the kernel receives more before the next `receive`.

        The mark is the number of received bytes below which the kernel does not wake a reader. While fewer bytes than
        the mark are unread, the kernel acknowledges data at once. When more are unread, it acknowledges data only after
        the next read. A broker with a small send buffer, which is the default of Apache Kafka, stops sending while 256
        KB are not acknowledged.
        """
        self.wait_for(AHEAD_BYTES)

    cdef int wait_for(self, int low_water) except -1:
        """Sets the low-water mark of the socket: the number of received bytes below which it is not readable.

        Does nothing on a system without this option, where any byte makes the socket readable.
        """
        if low_water != self.low_water and setsockopt(
                self.fd, SOL_SOCKET, SO_RCVLOWAT, &low_water, sizeof(int)) == 0:
            self.low_water = low_water
        return 0

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
