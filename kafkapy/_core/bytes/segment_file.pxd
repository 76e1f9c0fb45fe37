"""The one open file of a log segment, and slices of it that a response may keep while it is sent.

    append (owner thread) --pwritev--> file <--pread / sendfile-- any thread, through FileRange

Leaf functions return a negative errno instead of raising; they are what the gated data path calls.
"""
from libc.stdint cimport int64_t


cdef extern from "<sys/uio.h>" nogil:
    struct iovec:
        void *iov_base
        size_t iov_len


# Writes all vectors at `position`, retrying short writes and EINTR. Modifies the vectors. 0 or -errno. *Borrows*.
cdef int write_vectors(int fd, iovec *vectors, Py_ssize_t count, int64_t position) noexcept nogil
# Reads up to `length` bytes at `position` until the end of the file. Bytes read or -errno. *Borrows*.
cdef int64_t read_at(int fd, char *target, int64_t length, int64_t position) noexcept nogil
# Hands up to `length` bytes to a socket (one sendfile). Bytes sent (0: the file ends early) or -errno.
cdef int64_t send_range(int socket_fd, int fd, int64_t position, int64_t length) noexcept nogil


# A descriptor that outlives its SegmentFile while answers are being sent from it. Counted atomically: any thread.
cdef struct FileDescriptor:
    int fd                               # -1 once closed, when nobody pins it any more
    int pins                             # the open SegmentFile, each FileRange and each answer of the gate
    int holders                          # of this memory: the pins, and the SegmentFile object

cdef void descriptor_pin(FileDescriptor *descriptor) noexcept nogil
# Takes a FileDescriptor, so that it can be an OutputChunk's release.
cdef void descriptor_unpin(void *descriptor) noexcept nogil


cdef class SegmentFile:
    cdef FileDescriptor *descriptor      # pinned until close()
    cdef readonly int64_t size           # end of the valid bytes; a preallocated file is longer
    cdef public str path                 # where the file is now; set it after renaming by other means
    cdef bint closing                    # close() was called: our pin is gone
    cdef bint preallocated               # the file is longer than `size` until it is trimmed

    # All or nothing: on failure the file is cut back to its old size. 0 or -errno. Owner thread only. *Borrows*.
    cdef int append_vectors(self, iovec *vectors, Py_ssize_t count, int64_t total) noexcept nogil
    cdef int64_t clip(self, int64_t position, int64_t length) except -1


# Cuts the file to `size` bytes, at most its size, whether or not the disk obeys: later appends begin there.
cdef void segment_file_cut(SegmentFile file, int64_t size) noexcept nogil


cdef class FileRange:
    cdef readonly SegmentFile file       # pinned
    cdef readonly int64_t position
    cdef readonly int64_t length
