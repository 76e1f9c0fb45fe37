"""A Filesystem that knows what survives a power failure: all that was synced, and at random more.

It keeps contents by inode, as of their last `sync_file`, and names by directory, as of its last `sync_directory`. All
files that exist at the beginning are durable. `pull_the_plug(target)` writes what survives into a new directory. Inodes
remain open, so that the kernel does not give their numbers to other files.
"""

import os
import random
from collections.abc import Callable
from threading import RLock

from kafkapy.storage.filesystem import Filesystem


class LossyFilesystem(Filesystem):
    """Works on real files below `root`, never syncs, and keeps in memory what would be durable. Any thread.

    `fail_at`: the number of syncs after which `PowerFailure` is raised instead of syncing; None never fails.
    `on_failure` is called before each PowerFailure, on the thread that syncs.
    """

    __slots__ = ("_contents", "_held", "_lock", "_names", "fail_at", "on_failure", "root", "syncs")

    def __init__(self, root: str, *, fail_at: int | None = None, on_failure: Callable[[], None] = lambda: None) -> None:
        self.root = str(root)
        self.syncs = 0
        self.fail_at = fail_at
        self.on_failure = on_failure
        self._lock = RLock()
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, tuple[int, bool]]] = {}
        self._held: dict[int, int] = {}
        self._remember_everything()

    def sync_file(self, fd: int) -> None:
        with self._lock:
            self._count()
            status = os.fstat(fd)
            path = f"/proc/self/fd/{fd}"
            self._hold(path, status.st_ino)
            with open(path, "rb") as file:
                self._contents[status.st_ino] = file.read()

    def sync_directory(self, path: str) -> None:
        with self._lock:
            self._count()
            self._remember_names(path)

    def sync_filesystem(self, path: str) -> None:
        with self._lock:
            self._count()
            self._remember_everything()

    def _count(self) -> None:
        if self.fail_at is not None and self.syncs >= self.fail_at:
            self.on_failure()
            raise PowerFailure
        self.syncs += 1

    def _remember_everything(self) -> None:
        for directory, _, names in os.walk(self.root):
            self._remember_names(directory)
            for name in names:
                with open(os.path.join(directory, name), "rb") as file:
                    self._contents[os.fstat(file.fileno()).st_ino] = file.read()

    def _remember_names(self, path: str) -> None:
        inode = os.stat(path).st_ino
        self._hold(path, inode)
        self._names[inode] = self._names_in(path)

    def _names_in(self, path: str) -> dict[str, tuple[int, bool]]:
        names = {}
        with os.scandir(path) as entries:
            for entry in entries:
                inode = entry.inode()
                self._hold(entry.path, inode)
                names[entry.name] = (inode, entry.is_dir())
        return names

    def _hold(self, path: str, inode: int) -> None:
        if inode not in self._held:
            self._held[inode] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def pull_the_plug(self, target: str, chance: random.Random | None = None) -> None:
        """Writes what is durable into the new directory `target`: a file that was never synced exists, but is empty.

        With `chance` more survives: the newest names of some directories, and of some files the newest content or its
        beginning, which zeros may follow.
        """
        with self._lock:
            if chance is not None:
                self._add_what_survived(chance)
            self._restore(os.stat(self.root).st_ino, str(target))

    def _add_what_survived(self, chance: random.Random) -> None:
        for directory, _, _ in os.walk(self.root):
            if chance.random() < 0.5:
                self._remember_names(directory)
        for inode, fd in self._held.items():
            if os.path.isfile(f"/proc/self/fd/{fd}"):
                content = self._contents.get(inode, b"")
                self._contents[inode] = survivor(content, os.pread(fd, os.fstat(fd).st_size, 0), chance)

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


def survivor(synced: bytes, newest: bytes, chance: random.Random) -> bytes:
    """Returns a content that a file may have after a power failure, with any part of what was appended."""
    if synced == newest or chance.random() < 0.4:
        return synced
    if not newest.startswith(synced) or chance.random() < 0.4:
        return newest
    written = chance.randint(len(synced), len(newest))
    size = chance.choice((written, len(newest)))
    return newest[:written].ljust(size, b"\0")


class PowerFailure(BaseException):
    """The moment after which nothing reaches the disk; no `except Exception` catches it."""
