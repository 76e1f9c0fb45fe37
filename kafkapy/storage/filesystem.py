"""The seam to the disk: every fsync, every rename and every creation of a name goes through one Filesystem.

What is on disk after a power failure is exactly what passed through `sync_file` (contents) and `sync_directory`
(names); a test replaces this class by one that remembers nothing else (tests/lossy_filesystem.py).
"""

import os
import shutil

from kafkapy._core.bytes.segment_file import SegmentFile

SMALL_FILE = 65_536


def read_small_file(path: str) -> bytes:
    """A whole file in as few system calls as there can be: a start reads several of each partition. OSError."""
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
    """Owns nothing; stateless and usable from any thread. Every method raises OSError as the system call does."""

    __slots__ = ()

    def open_segment(self, path: str, *, create: bool = False, preallocate: int = 0) -> SegmentFile:
        return SegmentFile(path, create=create, preallocate=preallocate)

    def sync_file(self, fd: int) -> None:
        """Contents and size of the file are durable on return; its name is not (sync_directory)."""
        os.fdatasync(fd)

    def sync_path(self, path: str) -> None:
        """As sync_file, for a file that is not open here (or only mapped)."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.sync_file(fd)
        finally:
            os.close(fd)

    def sync_directory(self, path: str) -> None:
        """The names in the directory are durable on return."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_filesystem(self, path: str) -> None:
        """Everything on the file system that holds `path` is durable on return: one call in place of thousands."""
        import ctypes

        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if ctypes.CDLL(None, use_errno=True).syncfs(fd):
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), path)
        finally:
            os.close(fd)

    def rename(self, source: str, target: str) -> None:
        """Renames without waiting for durability: for names whose loss only brings back the old one."""
        os.replace(source, target)

    def replace(self, source: str, target: str) -> None:
        """Renames durably."""
        os.replace(source, target)
        target_parent = os.path.dirname(target) or "."
        source_parent = os.path.dirname(source) or "."
        self.sync_directory(target_parent)
        if source_parent != target_parent:
            self.sync_directory(source_parent)

    def write_atomically(self, path: str, content: bytes, *, mode: int = 0o644, sync: bool = True) -> None:
        """The file holds its old content or all of the new one, whenever the power fails; the new one on return.

        Without `sync` that holds for a kill of the process only, until the file system is synced.
        """
        temporary = path + ".tmp"
        self.write_file(temporary, content, mode=mode, sync=sync)
        if sync:
            self.replace(temporary, path)
        else:
            self.rename(temporary, path)

    def write_file(self, path: str, content: bytes, *, mode: int = 0o644, sync: bool = True) -> None:
        """Creates or overwrites a file; with `sync` its content (not its name) is durable on return."""
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
        """Appends to a small file, which is created if it does not exist; neither content nor name is durable."""
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

    def make_directory(self, path: str) -> None:
        """Creates a directory, and those above it, and makes the names durable; an existing one is left as it is."""
        if not os.path.isdir(path):
            parent = os.path.dirname(path) or "."
            self.make_directory(parent)
            os.mkdir(path)
            self.sync_directory(parent)

    def unlink(self, path: str) -> None:
        """Removes a file if it is there."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            return

    def remove_tree(self, path: str) -> None:
        """Removes a directory with everything in it, if it is there."""
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            return
