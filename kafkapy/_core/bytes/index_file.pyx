"""The parts of an index file that offset and time index share: preallocation, mapping, trimming and binary search."""
import os

from libc.errno cimport EINTR, EIO, errno
from libc.stdint cimport INT32_MAX

from kafkapy._core.bytes.primitives cimport load_int32, load_int64

cdef extern from "<fcntl.h>" nogil:
    int open_file "open"(const char *path, int flags)
    int O_WRONLY, O_CLOEXEC

cdef extern from "<unistd.h>" nogil:
    Py_ssize_t pwrite(int fd, const void *source, size_t length, int64_t position)
    int close_file "close"(int fd)

cdef extern from "<sys/mman.h>" nogil:
    void *mmap(void *address, size_t length, int protection, int flags, int fd, int64_t position)
    int munmap(void *address, size_t length)
    void *MAP_FAILED
    int PROT_READ, PROT_WRITE, MAP_SHARED

cdef enum:
    PAGE = 4096

cdef uint8_t ZEROS[PAGE + 16]            # a page and an entry that extends into it; static, so zero


class CorruptIndexError(Exception):
    """The error that a file is not a valid index, so that the index has to be rebuilt from the log."""


cdef class IndexFile:
    """One index file, with its mapping. Base class of OffsetIndex and TimeIndex.

    Invariant: entries * entry_size <= length. `length` is at most `max_size` rounded down to whole entries, unless the
    file was longer when it was opened.
    Threading: any thread may look up entries; only the thread that owns the log may do anything else. All calls are
    made under the interpreter lock.
    """

    cdef int map_file(self, int fd) except -1:
        cdef void *address
        if self.length == 0:
            self.data = NULL
            return 0
        address = mmap(NULL, <size_t>self.length, PROT_READ | (PROT_WRITE if self.writable else 0), MAP_SHARED, fd, 0)
        if address == MAP_FAILED:
            raise OSError(errno, os.strerror(errno), self.path)
        self.data = <uint8_t *>address
        return 0

    cdef void unmap(self) noexcept:
        if self.data != NULL:
            munmap(self.data, <size_t>self.length)
            self.data = NULL

    def __init__(self, path, int64_t base_offset, int64_t max_size, bint writable=True):
        """Opens the index file, or creates it with `max_size` bytes, rounded down to whole entries.

        All bytes of an existing file count as entries, as in Kafka; `sanity_check` decides whether they are valid.
        """
        if max_size < self.entry_size:
            raise ValueError(f"maximum size {max_size} of index {path} is less than an entry")
        self.path = os.fspath(path)
        self.base_offset = base_offset
        self.max_size = max_size
        self.writable = writable
        fresh = writable and not os.path.exists(self.path)
        flags = os.O_RDWR | os.O_CREAT if writable else os.O_RDONLY
        fd = os.open(self.path, flags | os.O_CLOEXEC, 0o644)
        try:
            if fresh:
                os.ftruncate(fd, self._rounded(max_size))
            self.length = os.fstat(fd).st_size
            self.entries = 0 if fresh else self.length // self.entry_size
            self.backed = self.entries * self.entry_size
            self.map_file(fd)
        finally:
            os.close(fd)

    def __dealloc__(self):
        self.unmap()

    def _rounded(self, int64_t size):
        return size - size % self.entry_size

    cdef int require_open(self) except -1:
        if self.closed:
            raise ValueError(f"index {self.path} is closed")
        return 0

    cdef bint has_room(self, Py_ssize_t count) noexcept nogil:
        return not self.closed and self.writable and self.entries + count <= self.length // self.entry_size - self.slack

    cdef int back_page(self, int64_t position) noexcept nogil:
        cdef int64_t end = min(self.length, (position + self.entry_size + PAGE - 1) // PAGE * PAGE)
        cdef Py_ssize_t written
        cdef int status = 0
        cdef int fd = open_file(<const char *>self.path_for_kernel, O_WRONLY | O_CLOEXEC)
        if fd < 0:
            return -errno
        while True:
            written = pwrite(fd, ZEROS, <size_t>(end - position), position)
            if written >= 0 or errno != EINTR:
                break
        if written < 0:
            status = -errno
        elif written < self.entry_size:
            status = -EIO
        else:
            self.backed = position + written
        close_file(fd)
        return status

    cdef uint8_t *next_entry(self, int64_t offset, int *status) noexcept nogil:
        cdef int64_t position = <int64_t>self.entries * self.entry_size
        cdef int64_t relative = offset - self.base_offset
        if self.closed or not self.writable:
            status[0] = INDEX_READ_ONLY
        elif relative < 0 or relative > INT32_MAX:
            status[0] = INDEX_OUT_OF_RANGE
        elif position + self.entry_size > self.length:
            status[0] = INDEX_FULL
        else:
            status[0] = self.back_page(position) if position + self.entry_size > self.backed else INDEX_OK
            if status[0] == INDEX_OK:
                return self.data + position
        return NULL

    cdef int check_status(self, int status, offset) except -1:
        if status == INDEX_OK or status == INDEX_UNCHANGED:
            return 0
        if status < 0:
            raise OSError(-status, os.strerror(-status), self.located_at)
        reason = {
            INDEX_FULL: f"is full ({self.entries} entries)",
            INDEX_NOT_ASCENDING: "would not be ascending",
            INDEX_OUT_OF_RANGE: f"has base offset {self.base_offset}: the entry does not fit 32 bits",
            INDEX_READ_ONLY: "is closed or read-only",
        }[status]
        raise ValueError(f"offset {offset}: index {self.located_at} {reason}")

    cdef Py_ssize_t slot_of_int32(self, int key_at, int64_t key) noexcept nogil:
        cdef Py_ssize_t low = 0, high = self.entries, middle
        while low < high:
            middle = (low + high) // 2
            if load_int32(self.data + middle * self.entry_size + key_at) <= key:
                low = middle + 1
            else:
                high = middle
        return low - 1

    cdef Py_ssize_t slot_of_int64(self, int key_at, int64_t key) noexcept nogil:
        cdef Py_ssize_t low = 0, high = self.entries, middle
        while low < high:
            middle = (low + high) // 2
            if load_int64(self.data + middle * self.entry_size + key_at) <= key:
                low = middle + 1
            else:
                high = middle
        return low - 1

    @property
    def path(self):
        """The present path of the file. A caller that renames the file without `rename_to` has to set it."""
        return self.located_at

    @path.setter
    def path(self, value):
        self.located_at = os.fspath(value)
        self.encoded_path = os.fsencode(self.located_at)
        self.path_for_kernel = <const char *>self.encoded_path

    @property
    def size_in_bytes(self):
        return self.entries * self.entry_size

    @property
    def max_entries(self):
        return self.length // self.entry_size

    @property
    def is_full(self):
        return self.entries >= self.length // self.entry_size - self.slack

    def can_hold(self, int64_t offset):
        """Returns whether the offset can be stored relative to the base offset."""
        return 0 <= offset - self.base_offset <= INT32_MAX

    def truncate(self):
        """Removes all entries; the file keeps its length."""
        self._keep(0)

    def _keep(self, Py_ssize_t entries):
        self.require_open()
        if not self.writable:
            raise ValueError(f"index {self.path} is read-only")
        # The bytes after the last entry become a hole, so that after an unclean stop nothing there looks like an entry.
        cdef int64_t start = entries * self.entry_size
        if self.entries > entries:
            os.truncate(self.located_at, start)
            os.truncate(self.located_at, self.length)
            self.backed = min(self.backed, start)
        self.entries = entries

    def trim_to_valid_size(self):
        """Cuts the file after the last entry; for a segment that is rolled or closed."""
        self.resize(self.size_in_bytes)

    def resize(self, int64_t size):
        """Resizes the file to `size` bytes, rounded down to whole entries, and keeps the entries.

        Returns False if the file already has this size, otherwise True. Raises ValueError if the entries do not fit.
        """
        self.require_open()
        size = self._rounded(size)
        if size < self.entries * self.entry_size:
            raise ValueError(f"index {self.path} of {self.entries} entries cannot shrink to {size} bytes")
        if size == self.length:
            return False
        if not self.writable:
            raise ValueError(f"index {self.path} is read-only")
        fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.ftruncate(fd, size)
            self.unmap()
            self.length = size
            self.backed = min(self.backed, size)
            self.map_file(fd)
        except BaseException:
            if self.data == NULL:
                self.length = self.entries = 0
            raise
        finally:
            os.close(fd)
        return True

    def reset(self):
        """Empties the index and preallocates it again, before it is rebuilt from the log."""
        self.truncate()
        self.resize(self.max_size)

    def flush(self):
        """Syncs entries and length to the disk (fdatasync, without the interpreter lock). Raises OSError."""
        self.require_open()
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fdatasync(fd)
        finally:
            os.close(fd)

    def rename_to(self, path):
        """Renames the file; the caller must sync the directory."""
        path = os.fspath(path)
        os.rename(self.path, path)
        self.path = path

    def close(self, bint trim=True):
        """Unmaps the file and, if `trim` is set, cuts it after the last entry. Closing twice is allowed.

        `trim` must be False if the log directory has failed.
        """
        if self.closed:
            return
        try:
            if trim and self.writable:
                self.trim_to_valid_size()
        finally:
            self.unmap()
            self.closed = True
            self.entries = 0

    def __len__(self):
        return self.entries

    def __repr__(self):
        return f"{type(self).__name__}({self.path!r}, base_offset={self.base_offset}, entries={self.entries})"
