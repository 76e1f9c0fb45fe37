cdef class FrameSocket:
    cdef int fd
    cdef Py_ssize_t max_frame_bytes
    cdef list outgoing                   # bytes-like, the first one partly sent
    cdef Py_ssize_t sent                 # of the first
    cdef int failure                     # errno of the last call that sent or received nothing
    cdef bytearray staging
    cdef Py_ssize_t staged
    cdef bytes frame                     # being filled
    cdef Py_ssize_t filled
    cdef int low_water                   # bytes that make the socket readable
    cdef readonly Py_ssize_t queued      # bytes that wait to be sent
    cdef readonly Py_ssize_t bytes_sent, bytes_received

    cdef Py_ssize_t send_pieces(self) except -2
    cdef int drop_sent(self, Py_ssize_t written) except -1
    cdef Py_ssize_t read_some(self, char *at, Py_ssize_t room) except -2
    cdef int wait_for(self, int low_water) except -1
    cdef int take(self, Py_ssize_t got, list frames) except -1
