"""Disks that fail when a test wants it: a library that is preloaded into the broker, and a mounted file system.

The library needs no rights: it fails calls in the broker's own process. The file system needs the right to mount: its
errors come from the kernel, also those of memory-mapped files and of metadata.
"""

from __future__ import annotations

import errno
import mmap
import struct
import subprocess
from pathlib import Path
from typing import Self

SOURCE = Path(__file__).with_name("failing_disk.c")
FILESYSTEM_SOURCE = Path(__file__).with_name("failing_filesystem.c")
CONTROL = struct.Struct("=iiii240s")

WRITE, SYNC, CREATE, RENAME, RESIZE, READ = 1, 2, 4, 8, 16, 32
NAMES = 64  # whatever looks up, opens, lists or removes a file; only the file system fails it
EVERY_CHANGE = WRITE | SYNC | CREATE | RENAME | RESIZE
EVERYTHING = EVERY_CHANGE | READ | NAMES
_CC = ("cc", "-O1", "-Wall", "-Wextra", "-Werror")


def build(directory: Path) -> Path:
    """Compiles the library and returns its path."""
    library = directory / "failing_disk.so"
    subprocess.run([*_CC, "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    return library


def build_filesystem(directory: Path) -> Path:
    """Compiles the program of the file system and returns its path."""
    program = directory / "failing_filesystem"
    subprocess.run([*_CC, "-o", str(program), str(FILESYSTEM_SOURCE)], check=True)
    return program


class DiskControl:
    """The file through which a test steers a disk. The disk works until `fail` is called, and again after `heal`."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(CONTROL.size))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), CONTROL.size)

    def fail(self, path_part: str, operations: int, error: int = errno.EIO, *, skip: int = 0) -> None:
        """Makes calls of these kinds fail on paths that contain `path_part`, after `skip` more calls that succeed."""
        self.heal()
        self._map[4:] = CONTROL.pack(0, operations, skip, 0, path_part.encode())[4:]
        self._map[:4] = struct.pack("=i", error)

    def heal(self) -> None:
        self._map[:4] = bytes(4)

    def repair(self) -> None:
        """Makes the disk work again while no process uses it."""
        self.heal()

    @property
    def hits(self) -> int:
        """The number of calls that have failed since `fail`."""
        return int(CONTROL.unpack(self._map[:])[3])


class FailingDisk(DiskControl):
    """Controls the library in one process that was started with `environment`."""

    def __init__(self, library: Path, directory: Path) -> None:
        path = directory / "failing_disk.control"
        super().__init__(path)
        self.environment = {"LD_PRELOAD": str(library), "FAILING_DISK_CONTROL": str(path)}


class FailingFilesystem(DiskControl):
    """A file system that is mounted at `mount_point` while the context is open; it stores its files in `source`.

    Both folders are created. `is_mounted` is False where this process may not mount; `reason` says why.
    """

    def __init__(self, program: Path, source: Path, mount_point: Path) -> None:
        source.mkdir(parents=True)
        mount_point.mkdir(parents=True)
        control = source.with_name(source.name + ".control")
        super().__init__(control)
        self._command = [str(program), str(source), str(mount_point), str(control)]
        self.is_mounted = False
        self.reason = ""

    def repair(self) -> None:
        """Mounts the file system again, as an administrator does: the kernel reports a lost page at a later fsync."""
        self.__exit__()
        self.__enter__()
        assert self.is_mounted, self.reason

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self.is_mounted = self._process.stdout.readline() == "ready\n"
        if not self.is_mounted:
            self.reason = self._process.stderr.read()
        return self

    def __exit__(self, *failure: object) -> None:
        self.heal()
        self._process.communicate(timeout=30)  # closes its input, which ends it
