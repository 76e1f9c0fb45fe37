"""The open file of a log segment, and slices of it that a response may hold until it is sent.

    append (the log's thread) --pwritev--> file <--pread / sendfile-- any thread, through FileRange

Leaf functions return a negative errno instead of raising; the gate's data path calls them.
"""
from libc.stdint cimport int64_t


cdef extern from "<sys/uio.h>" nogil:
    struct iovec:
        void *iov_base
        size_t iov_len


# Writes all vectors at `position`, retrying short writes and EINTR. Modifies the vectors. Returns 0 or -errno.
# *Borrows*.
cdef int write_vectors(int fd, iovec *vectors, Py_ssize_t count, int64_t position) noexcept nogil
# Reads up to `length` bytes at `position` until the end of the file. Returns bytes read or -errno. *Borrows*.
cdef int64_t read_at(int fd, char *target, int64_t length, int64_t position) noexcept nogil
# Sends up to `length` bytes to a socket (one sendfile). Returns bytes sent (0: the file ends early) or -errno.
cdef int64_t send_range(int socket_fd, int fd, int64_t position, int64_t length) noexcept nogil


# A descriptor that may outlive its SegmentFile while responses are being sent. The counters are atomic, so that any
# thread may use it.
cdef struct FileDescriptor:
    int fd                               # -1 after it is closed, when the last pin has been released
    int pins                             # held by the open SegmentFile, each FileRange and each response of the gate
    int holders                          # references to this memory: the pins and the SegmentFile object

cdef void descriptor_pin(FileDescriptor *descriptor) noexcept nogil
# Releases a FileDescriptor; has the type of an OutputChunk's release function.
cdef void descriptor_unpin(void *descriptor) noexcept nogil


cdef class SegmentFile:
    cdef FileDescriptor *descriptor      # pinned until close()
    cdef readonly int64_t size           # end of the valid bytes; a preallocated file is longer
    cdef public str path                 # the present path; the caller sets it after renaming by other means
    cdef bint closing                    # close() was called and has released this object's pin
    cdef bint preallocated               # the file is longer than `size` until it is trimmed

    # Appends all vectors or nothing: after a failure the file is cut to its old size. Returns 0 or -errno. Owner
    # thread. *Borrows*.
    cdef int append_vectors(self, iovec *vectors, Py_ssize_t count, int64_t total) noexcept nogil
    cdef int64_t clip(self, int64_t position, int64_t length) except -1


# Cuts the file to `size` bytes, at most its present size. Later appends start there even if the disk does not cut it.
cdef void segment_file_cut(SegmentFile file, int64_t size) noexcept nogil


cdef class FileRange:
    cdef readonly SegmentFile file       # pinned
    cdef readonly int64_t position
    cdef readonly int64_t length
