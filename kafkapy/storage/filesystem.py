"""The interface to the disk: every fsync, rename, deletion and creation of a file goes through one Filesystem.

After a power failure only the contents that passed through `sync_file` and the names that passed through
`sync_directory` are certain to exist. Tests replace the class Filesystem with a class that loses everything else
(tests/lossy_filesystem.py).
"""

import os

from kafkapy._core.bytes.segment_file import SegmentFile

SMALL_FILE = 65_536


def read_small_file(path: str) -> bytes:
    """Returns the content of a file with as few system calls as possible, because a start reads thousands of files.

    Raises OSError.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = part = os.read(fd, SMALL_FILE)
        while len(part) == SMALL_FILE:
            part = os.read(fd, SMALL_FILE)
            content += part
        return content
    finally:
        os.close(fd)


class Filesystem:
    """The operations on files. The object has no state, and any thread may use it. Every method raises the system
    call's OSError.
    """

    __slots__ = ()

    def open_segment(self, path: str, *, create: bool = False, preallocate: int = 0) -> SegmentFile:
        """Opens a .log file. If `create` is True, creates the file and reserves `preallocate` bytes of disk space for
        it."""
        return SegmentFile(path, create=create, preallocate=preallocate)

    def sync_file(self, fd: int) -> None:
        """Makes the content and the size of the file durable. `sync_directory` makes its name durable."""
        os.fdatasync(fd)

    def sync_path(self, path: str) -> None:
        """Makes the content and the size of the file at `path` durable. The caller needs no open descriptor."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.sync_file(fd)
        finally:
            os.close(fd)

    def sync_directory(self, path: str) -> None:
        """Makes the creations, renames and deletions of files in the directory durable."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_filesystem(self, path: str) -> None:
        """Makes all files and names on the file system of `path` durable with one system call, instead of one call for
        each file."""
        import ctypes

        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if ctypes.CDLL(None, use_errno=True).syncfs(fd):
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), path)
        finally:
            os.close(fd)

    def rename(self, source: str, target: str) -> None:
        """Renames a file or directory, but does not make the new name durable: a power failure may restore the old
        name. The caller must be able to handle both names."""
        os.replace(source, target)

    def replace(self, source: str, target: str) -> None:
        """Renames a file and makes both directories durable."""
        os.replace(source, target)
        target_parent = os.path.dirname(target) or "."
        source_parent = os.path.dirname(source) or "."
        self.sync_directory(target_parent)
        if source_parent != target_parent:
            self.sync_directory(source_parent)

    def write_atomically(self, path: str, content: bytes, *, mode: int = 0o644, sync: bool = True) -> None:
        """Replaces the content of a file, so that a kill of the process leaves its whole old or its whole new content.

        If `sync` is True, the same holds for a power failure, and the new content is durable on return. Otherwise a
        power failure can destroy both contents.
        """
        temporary = path + ".tmp"
        self.write_file(temporary, content, mode=mode, sync=sync)
        if sync:
            self.replace(temporary, path)
        else:
            self.rename(temporary, path)

    def write_file(self, path: str, content: bytes, *, mode: int = 0o644, sync: bool = True) -> None:
        """Creates or overwrites a file. If `sync` is True, its content (not its name) is durable on return."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(fd, view) :]
            if sync:
                self.sync_file(fd)
        finally:
            os.close(fd)

    def append_file(self, path: str, content: bytes) -> None:
        """Appends to a small file, which is created if it does not exist; neither its content nor its name is durable
        on return."""
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(fd, view) :]
        finally:
            os.close(fd)

    def truncate_file(self, path: str, size: int) -> None:
        """Cuts a file to `size` bytes; the new size is not durable."""
        os.truncate(path, size)

    def make_directory(self, path: str, *, sync: bool = True) -> None:
        """Creates a directory and its missing parents; an existing directory is kept. If `sync` is True, the names are
        durable on return."""
        if not os.path.isdir(path):
            parent = os.path.dirname(path) or "."
            self.make_directory(parent, sync=sync)
            os.mkdir(path)
            if sync:
                self.sync_directory(parent)

    def unlink(self, path: str) -> None:
        """Removes a file if it exists."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            return

    def remove_tree(self, path: str) -> None:
        """Removes a directory and its contents, if it exists."""
        try:
            from shutil import rmtree  # not needed by a usual start

            rmtree(path)
        except FileNotFoundError:
            return
