"""A Filesystem that knows what would survive a power failure: only what was synced.

Contents are kept by inode, as they were at their last `sync_file`; names by directory, as they were at its last
`sync_directory`. `pull_the_plug(target)` writes that world into a new directory. Inodes seen stay open, so that the
kernel does not give their numbers to other files.
"""

import os

from kafkapy.storage.filesystem import Filesystem


class LossyFilesystem(Filesystem):
    """Works on real files below `root` and mirrors in memory what would be durable; no real sync. One thread at a time.

    `fail_at`: the number of syncs after which `PowerFailure` is raised instead of syncing; None never fails.
    """

    __slots__ = ("_contents", "_held", "_names", "fail_at", "root", "syncs")

    def __init__(self, root: str, *, fail_at: int | None = None) -> None:
        self.root = str(root)
        self.syncs = 0
        self.fail_at = fail_at
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, tuple[int, bool]]] = {}
        self._held: dict[int, int] = {}
        self._remember_names(self.root)

    def sync_file(self, fd: int) -> None:
        self._count()
        status = os.fstat(fd)
        path = f"/proc/self/fd/{fd}"
        self._hold(path, status.st_ino)
        with open(path, "rb") as file:
            self._contents[status.st_ino] = file.read()

    def sync_directory(self, path: str) -> None:
        self._count()
        self._remember_names(path)

    def sync_filesystem(self, path: str) -> None:
        self._count()
        for directory, _, names in os.walk(self.root):
            self._remember_names(directory)
            for name in names:
                with open(os.path.join(directory, name), "rb") as file:
                    self._contents[os.fstat(file.fileno()).st_ino] = file.read()

    def _count(self) -> None:
        if self.fail_at is not None and self.syncs >= self.fail_at:
            raise PowerFailure
        self.syncs += 1

    def _remember_names(self, path: str) -> None:
        names = {}
        with os.scandir(path) as entries:
            for entry in entries:
                inode = entry.inode()
                self._hold(entry.path, inode)
                names[entry.name] = (inode, entry.is_dir())
        inode = os.stat(path).st_ino
        self._hold(path, inode)
        self._names[inode] = names

    def _hold(self, path: str, inode: int) -> None:
        if inode not in self._held:
            self._held[inode] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def pull_the_plug(self, target: str) -> None:
        """Writes into `target` (which does not exist) what is durable: a file never synced is there, but empty."""
        self._restore(os.stat(self.root).st_ino, str(target))

    def _restore(self, directory: int, target: str) -> None:
        os.mkdir(target)
        for name, (inode, is_directory) in self._names.get(directory, {}).items():
            path = os.path.join(target, name)
            if is_directory:
                self._restore(inode, path)
            else:
                with open(path, "wb") as file:
                    file.write(self._contents.get(inode, b""))

    def close(self) -> None:
        for fd in self._held.values():
            os.close(fd)
        self._held.clear()


class PowerFailure(BaseException):
    """The moment after which nothing reaches the disk; no `except Exception` catches it."""
