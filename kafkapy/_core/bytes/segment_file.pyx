"""Segment file: vectored append, positioned read, and file ranges for sendfile.

`pwritev` writes at the end position that this class tracks, so that preallocated files and files shared with readers
need no seek. An append is all or nothing: the bytes of a failed append are cut off before the error is raised, or, if
that fails too, are beyond the end position and overwritten by the next append.
"""
import os

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.errno cimport EINTR, EIO, errno
from libc.stdlib cimport calloc, free

cdef extern from "<sys/uio.h>" nogil:
    Py_ssize_t pwritev(int fd, const iovec *vectors, int count, int64_t position)

cdef extern from "<unistd.h>" nogil:
    Py_ssize_t pread(int fd, void *target, size_t length, int64_t position)
    int ftruncate(int fd, int64_t length)
    int close(int fd)

cdef extern from "<sys/sendfile.h>" nogil:
    Py_ssize_t sendfile(int out_fd, int in_fd, int64_t *position, size_t count)

cdef extern from * nogil:
    int add_and_get "__sync_add_and_fetch"(int *counter, int change)

cdef extern from "<limits.h>":
    int IOV_MAX

cdef enum:
    LARGEST_TRANSFER = 0x7ffff000        # limit of the kernel for one call


cdef int write_vectors(int fd, iovec *vectors, Py_ssize_t count, int64_t position) noexcept nogil:
    cdef Py_ssize_t first = 0, written
    while first < count:
        if vectors[first].iov_len == 0:
            first += 1
            continue
        written = pwritev(fd, vectors + first, <int>min(count - first, <Py_ssize_t>IOV_MAX), position)
        if written < 0:
            if errno == EINTR:
                continue
            return -errno
        if written == 0:
            return -EIO
        position += written
        while first < count and written >= <Py_ssize_t>vectors[first].iov_len:
            written -= <Py_ssize_t>vectors[first].iov_len
            first += 1
        if written:
            vectors[first].iov_base = <char *>vectors[first].iov_base + written
            vectors[first].iov_len -= written
    return 0


cdef int64_t read_at(int fd, char *target, int64_t length, int64_t position) noexcept nogil:
    cdef int64_t done = 0
    cdef Py_ssize_t count
    while done < length:
        count = pread(fd, target + done, <size_t>min(length - done, <int64_t>LARGEST_TRANSFER), position + done)
        if count < 0:
            if errno == EINTR:
                continue
            return -errno
        if count == 0:
            break
        done += count
    return done


cdef int64_t send_range(int socket_fd, int fd, int64_t position, int64_t length) noexcept nogil:
    cdef int64_t at = position
    cdef Py_ssize_t sent
    while True:
        sent = sendfile(socket_fd, fd, &at, <size_t>min(length, <int64_t>LARGEST_TRANSFER))
        if sent >= 0:
            return sent
        if errno != EINTR:
            return -errno


cdef void descriptor_pin(FileDescriptor *descriptor) noexcept nogil:
    add_and_get(&descriptor.holders, 1)
    add_and_get(&descriptor.pins, 1)


cdef void descriptor_unpin(void *pinned) noexcept nogil:
    cdef FileDescriptor *descriptor = <FileDescriptor *>pinned
    if add_and_get(&descriptor.pins, -1) == 0:
        close(descriptor.fd)
        descriptor.fd = -1
    drop_holder(descriptor)


cdef void drop_holder(FileDescriptor *descriptor) noexcept nogil:
    if add_and_get(&descriptor.holders, -1) == 0:
        free(descriptor)


cdef class SegmentFile:
    """The open file of one segment, which owns the descriptor.

    Invariant: 0 <= size <= length on disk; bytes before `size` never change except by `truncate`.
    Threading: only the thread that owns the log may append, truncate, rename and close; any thread may read and slice.
    """

    def __cinit__(self, path, *, bint create=False, int64_t preallocate=0):
        self.descriptor = <FileDescriptor *>calloc(1, sizeof(FileDescriptor))
        if self.descriptor == NULL:
            raise MemoryError()
        self.descriptor.fd = -1
        self.descriptor.holders = 1
        self.path = os.fspath(path)
        if preallocate < 0:
            raise ValueError("preallocate is a number of bytes")
        fresh = create and not os.path.exists(self.path)
        self.descriptor.fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644)
        descriptor_pin(self.descriptor)
        if fresh and preallocate:
            os.ftruncate(self.descriptor.fd, preallocate)
            self.preallocated = True
            self.size = 0
        else:
            self.size = os.fstat(self.descriptor.fd).st_size

    def __dealloc__(self):
        if self.descriptor == NULL:
            return
        if not self.closing and self.descriptor.fd >= 0:
            descriptor_unpin(self.descriptor)
        drop_holder(self.descriptor)

    @property
    def fd(self):
        """The descriptor. It is -1 when the file was closed and no FileRange pins the descriptor any longer."""
        return self.descriptor.fd

    cdef int append_vectors(self, iovec *vectors, Py_ssize_t count, int64_t total) noexcept nogil:
        cdef int status = write_vectors(self.descriptor.fd, vectors, count, self.size)
        if status == 0:
            self.size += total
            return 0
        # Torn bytes that cannot be cut off now are beyond `size`: the next append overwrites them, recovery drops them.
        if ftruncate(self.descriptor.fd, self.size) == 0:
            self.preallocated = False
        return status

    def append(self, buffers):
        """Appends the bytes-like objects of a sequence as one write; returns the position of the first byte.

        Raises OSError and appends nothing if the write fails. Only the thread that owns the log may call it. *Borrows*
        the buffers.
        """
        self._check_open()
        cdef list held = list(buffers)
        cdef Py_ssize_t count = len(held), index, exported = 0
        cdef int64_t total = 0, position = self.size
        cdef int status
        cdef Py_buffer *views = <Py_buffer *>PyMem_Malloc((count or 1) * sizeof(Py_buffer))
        cdef iovec *vectors = <iovec *>PyMem_Malloc((count or 1) * sizeof(iovec))
        try:
            if views == NULL or vectors == NULL:
                raise MemoryError()
            for index in range(count):
                PyObject_GetBuffer(held[index], &views[index], PyBUF_SIMPLE)
                exported += 1
                vectors[index].iov_base = views[index].buf
                vectors[index].iov_len = views[index].len
                total += views[index].len
            with nogil:
                status = self.append_vectors(vectors, count, total)
            if status < 0:
                raise OSError(-status, os.strerror(-status), self.path)
            return position
        finally:
            for index in range(exported):
                PyBuffer_Release(&views[index])
            PyMem_Free(views)
            PyMem_Free(vectors)

    def pread(self, int64_t position, int64_t length):
        """Returns up to `length` bytes from `position`; fewer at the end of the valid bytes. Any thread may call it.

        Raises OSError if the read fails.
        """
        length = self.clip(position, length)
        cdef bytes result = PyBytes_FromStringAndSize(NULL, length)
        cdef char *target = PyBytes_AS_STRING(result)
        cdef int fd = self.descriptor.fd
        cdef int64_t done
        with nogil:
            done = read_at(fd, target, length, position)
        if done < 0:
            raise OSError(-done, os.strerror(-done), self.path)
        return result if done == length else result[:done]

    def read_into(self, int64_t position, target):
        """Fills the writable buffer `target` with bytes from `position`; returns the number of bytes read.

        The result is smaller than the buffer at the end of the valid bytes. Any thread may call it. Raises OSError.
        """
        cdef Py_buffer view
        cdef int64_t done, length
        cdef int fd = self.descriptor.fd
        PyObject_GetBuffer(target, &view, PyBUF_WRITABLE)
        try:
            length = self.clip(position, view.len)
            with nogil:
                done = read_at(fd, <char *>view.buf, length, position)
        finally:
            PyBuffer_Release(&view)
        if done < 0:
            raise OSError(-done, os.strerror(-done), self.path)
        return done

    def slice(self, int64_t position, int64_t length):
        """Returns a FileRange of the `length` bytes from `position`, or fewer at the end of the valid bytes.

        Any thread may call it.
        """
        return FileRange(self, position, self.clip(position, length))

    def truncate(self, int64_t size):
        """Cuts the file to `size` bytes and ends its preallocation. Raises ValueError if that would lengthen the file.
        """
        self._check_open()
        if size < 0 or size > self.size:
            raise ValueError(f"cannot truncate {self.path} of {self.size} bytes to {size}")
        os.ftruncate(self.descriptor.fd, size)
        self.size = size
        self.preallocated = False

    def trim(self):
        """Frees the preallocated space after the valid bytes; called when the segment is rolled or closed."""
        if self.preallocated:
            self.truncate(self.size)

    def rename_to(self, path):
        """Renames the file; the caller must sync the directory."""
        path = os.fspath(path)
        os.rename(self.path, path)
        self.path = path

    def close(self):
        """Trims and closes the file; the descriptor stays open while FileRanges exist. Closing twice is allowed."""
        if self.closing:
            return
        try:
            self.trim()
        finally:
            self.closing = True
            descriptor_unpin(self.descriptor)

    @property
    def closed(self):
        return self.closing

    cdef int64_t clip(self, int64_t position, int64_t length) except -1:
        self._check_open()
        if position < 0 or length < 0:
            raise ValueError(f"bad range of {self.path}: position {position}, length {length}")
        return max(<int64_t>0, min(length, self.size - position))

    def _check_open(self):
        if self.closing:
            raise ValueError(f"segment file {self.path} is closed")

    def __repr__(self):
        return f"SegmentFile({self.path!r}, size={self.size})"


cdef void segment_file_cut(SegmentFile file, int64_t size) noexcept nogil:
    if ftruncate(file.descriptor.fd, size) == 0:
        file.preallocated = False
    file.size = size


cdef class FileRange:
    """The `length` bytes from `position` of a segment file. The object does not change, and keeps the file's descriptor
    open.
    """

    def __cinit__(self, SegmentFile file not None, int64_t position, int64_t length):
        if file.descriptor.fd < 0:
            raise ValueError(f"segment file {file.path} is closed")
        if position < 0 or length < 0:
            raise ValueError(f"bad file range: position {position}, length {length}")
        self.file = file
        self.position = position
        self.length = length
        descriptor_pin(file.descriptor)

    def __dealloc__(self):
        if self.file is not None:
            descriptor_unpin(self.file.descriptor)

    @property
    def fd(self):
        return self.file.descriptor.fd

    def __len__(self):
        return self.length

    def read(self):
        """Returns the bytes of the range; fewer if the file has been truncated since. Raises OSError."""
        cdef bytes result = PyBytes_FromStringAndSize(NULL, self.length)
        cdef char *target = PyBytes_AS_STRING(result)
        cdef int64_t done
        with nogil:
            done = read_at(self.file.descriptor.fd, target, self.length, self.position)
        if done < 0:
            raise OSError(-done, os.strerror(-done), self.file.path)
        return result if done == self.length else result[:done]

    def send(self, int socket_fd, int64_t already_sent=0):
        """Sends the range after its first `already_sent` bytes to a socket with one sendfile; returns the bytes sent.

        Raises BlockingIOError if the call would block.
        """
        if already_sent < 0 or already_sent > self.length:
            raise ValueError(f"{already_sent} bytes sent of a range of {self.length}")
        cdef int64_t sent, start = self.position + already_sent, length = self.length - already_sent
        with nogil:
            sent = send_range(socket_fd, self.file.descriptor.fd, start, length)
        if sent < 0:
            raise OSError(-sent, os.strerror(-sent), self.file.path)
        return sent

    def __repr__(self):
        return f"FileRange({self.file.path!r}, position={self.position}, length={self.length})"
