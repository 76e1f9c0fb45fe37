"""A client's end of an encrypted connection: frames over TLS, by Python's ssl module and buffers in memory.

The system calls are those of `FrameSocket`, so that one call receives many TLS records, which a socket of the ssl
module reads one by one.
"""
from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBUF_WRITE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.errno cimport EAGAIN, EINTR, errno
from libc.string cimport memcpy

from contextlib import suppress
from ssl import MemoryBIO, SSLError, SSLWantReadError, SSLZeroReturnError

from kafkapy._core.client.frame_socket cimport FrameSocket

cdef extern from "sys/socket.h" nogil:
    enum:
        MSG_DONTWAIT
        MSG_NOSIGNAL
    ssize_t c_send "send"(int fd, const void *data, size_t size, int flags)
    ssize_t c_recv "recv"(int fd, void *data, size_t size, int flags)

cdef enum:
    RECEIVE_BYTES = 262144               # of ciphertext, received by one system call
    ENCRYPT_BYTES = 131072               # of plaintext, encrypted and sent at a time
    CIPHER_TURN_BYTES = 4194304                 # of ciphertext, received in one call, as in FrameSocket
    MOST_BUFFERED = 18432                # more than the size of the largest TLS record


cdef class TlsFrameSocket(FrameSocket):
    """The client's end of a TLS connection. `handshake` has to return True before frames are sent or received.

    The methods that receive or send raise ssl.SSLError if the peer violates TLS or sends an alert.
    """

    cdef object tls                      # ssl.SSLObject
    cdef object incoming, outgoing_tls   # ssl.MemoryBIO: ciphertext received, and to be sent
    cdef bytearray received              # of one system call
    cdef bytearray plain                 # to be encrypted
    cdef bytes cipher                    # being sent
    cdef Py_ssize_t cipher_sent
    cdef Py_ssize_t encrypted            # bytes of plaintext of which `cipher` is the rest
    cdef Py_ssize_t turn                 # bytes that may still be received in this call
    cdef bint is_emptied                 # the socket had no more bytes
    cdef readonly bint has_received      # plaintext

    def __init__(self, int fd, Py_ssize_t max_frame_bytes, context, server_hostname):
        """Stores the socket's descriptor `fd`, and prepares TLS with `context`, an ssl.SSLContext.

        `context` checks the server's name if its `check_hostname` is set. A frame larger than `max_frame_bytes` is
        refused.
        """
        super().__init__(fd, max_frame_bytes)
        self.incoming, self.outgoing_tls = MemoryBIO(), MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing_tls, server_hostname=server_hostname)
        self.received = bytearray(RECEIVE_BYTES)
        self.plain = bytearray(ENCRYPT_BYTES)

    @property
    def is_sending(self):
        """True while bytes are waiting to be sent."""
        return bool(self.outgoing) or self.cipher is not None

    @property
    def tls_object(self):
        """The connection's ssl.SSLObject, for its version, cipher and the server's certificate."""
        return self.tls

    def handshake(self):
        """Continues the handshake as far as the socket allows; returns True when it is complete.

        Raises ssl.SSLError if it fails, OSError if the connection is broken, and ConnectionError at its end.
        """
        cdef Py_ssize_t got
        cdef bint is_done = False
        self.turn = CIPHER_TURN_BYTES
        self.is_emptied = False
        while True:
            try:
                self.tls.do_handshake()
                is_done = True
            except SSLWantReadError:
                pass
            except SSLError:
                with suppress(OSError):
                    self.send_cipher()   # the alert that says why the handshake failed
                raise
            self.send_cipher()
            if is_done:
                return True
            got = self.feed()
            if got == 0:
                raise ConnectionError("the broker closed the connection during the TLS handshake")
            if got < 0:
                if self.failure == EAGAIN:
                    return False
                raise OSError(self.failure, "receive failed in the TLS handshake")

    def send(self):
        """Encrypts and sends what the socket accepts; returns True if nothing is left to send, otherwise False.

        Raises OSError if the connection is broken.
        """
        if not self.send_cipher():
            return False
        return FrameSocket.send(self)

    def receive(self):
        """Returns the complete frames received, as bytes without their size.

        Raises ConnectionError at the end of the stream, OSError if the connection is broken, and ValueError for a frame
        of an impossible size.
        """
        cdef list frames
        self.turn = CIPHER_TURN_BYTES
        self.is_emptied = False
        frames = FrameSocket.receive(self)
        while self.incoming.pending or self.tls.pending():
            # No event of the socket announces bytes that have left the kernel.
            self.turn = 0
            frames += FrameSocket.receive(self)
        if self.outgoing_tls.pending:
            self.send_cipher()           # the answer to a key update
        return frames

    def send_close_notify(self):
        """Sends TLS's notice that no more data follow.

        Does nothing if the handshake is not complete, or the socket does not accept the bytes.
        """
        with suppress(OSError, ValueError):  # ssl.SSLError is an OSError
            self.send_cipher()
            self.tls.unwrap()
        with suppress(OSError):
            self.send_cipher()

    cdef Py_ssize_t read_some(self, char *at, Py_ssize_t room) except -2:
        cdef Py_ssize_t total = 0, got
        while total < room:
            if not self.incoming.pending and not self.tls.pending():
                got = self.feed()
                if got < 0:
                    break
                if got == 0:
                    return total
            try:
                got = self.tls.read(room - total, PyMemoryView_FromMemory(at + total, room - total, PyBUF_WRITE))
            except SSLWantReadError:
                continue                 # an incomplete record, or one without data
            except SSLZeroReturnError:
                return total             # the next call sees the end again
            if got == 0:
                return total
            self.has_received = True
            total += got
        return total or -1

    cdef Py_ssize_t feed(self) except -2:
        """Receives ciphertext for TLS; returns the number of bytes, 0 at the end of the stream.

        Returns -1 if nothing was received, and sets `failure` to the errno.
        """
        cdef Py_ssize_t got
        if self.turn <= 0 or self.is_emptied:
            self.failure = EAGAIN
            return -1
        while True:
            got = c_recv(self.fd, <char *>self.received, RECEIVE_BYTES, MSG_DONTWAIT)
            if got >= 0 or errno != EINTR:
                break
        if got < 0:
            self.failure = errno
            return -1
        self.is_emptied = 0 < got < RECEIVE_BYTES
        self.turn -= got
        if got:
            self.incoming.write(PyMemoryView_FromMemory(<char *>self.received, got, PyBUF_READ))
        return got

    cdef Py_ssize_t send_pieces(self) except -2:
        """Encrypts the next pieces and sends them; returns the number of bytes of plaintext that were sent.

        Returns -1 if nothing was sent, and sets `failure` to the errno.
        """
        cdef Py_ssize_t size = 0
        if not self.encrypted:
            size = self.gather()
            self.tls.write(PyMemoryView_FromMemory(<char *>self.plain, size, PyBUF_READ))
            self.encrypted = size
        if not self.send_cipher():
            self.failure = EAGAIN
            return -1
        size, self.encrypted = self.encrypted, 0
        return size

    cdef Py_ssize_t gather(self) except -1:
        """Copies the first bytes that are waiting to be sent into the buffer `plain`; returns their number."""
        cdef Py_buffer view
        cdef Py_ssize_t size = 0, start = self.sent, count
        for piece in self.outgoing:
            PyObject_GetBuffer(piece, &view, PyBUF_SIMPLE)
            count = min(view.len - start, <Py_ssize_t>ENCRYPT_BYTES - size)
            memcpy(<char *>self.plain + size, <char *>view.buf + start, count)
            PyBuffer_Release(&view)
            size += count
            start = 0
            if size == ENCRYPT_BYTES:
                break
        return size

    cdef bint send_cipher(self) except -1:
        """Sends the encrypted bytes that wait; returns whether all of them were sent. Raises OSError."""
        cdef Py_ssize_t written, size
        while True:
            if self.cipher is None:
                if not self.outgoing_tls.pending:
                    return True
                self.cipher, self.cipher_sent = self.outgoing_tls.read(), 0
            size = len(self.cipher)
            written = c_send(
                self.fd, PyBytes_AS_STRING(self.cipher) + self.cipher_sent, size - self.cipher_sent,
                MSG_DONTWAIT | MSG_NOSIGNAL,
            )
            if written < 0:
                if errno == EINTR:
                    continue
                if errno == EAGAIN:
                    return False
                raise OSError(errno, "send failed")
            self.cipher_sent += written
            if self.cipher_sent == size:
                self.cipher = None

    cdef int wait_for(self, int low_water) except -1:
        """Sets the low-water mark of the socket to `low_water` minus the size of the largest TLS record, at least 1.

        The low-water mark is the number of received bytes below which the socket is not readable. An incomplete TLS
        record that was received already may contain wanted bytes, up to the size of the largest record. The socket need
        not receive these bytes again.
        """
        return FrameSocket.wait_for(self, max(low_water - MOST_BUFFERED, 1))
