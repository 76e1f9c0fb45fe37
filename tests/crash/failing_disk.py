"""Disk failures in a broker's own process, without root: a preloaded library fails the calls that a test selects."""

from __future__ import annotations

import errno
import mmap
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("failing_disk.c")
CONTROL = struct.Struct("=iiii240s")

WRITE, SYNC, CREATE, RENAME, RESIZE, READ = 1, 2, 4, 8, 16, 32
EVERY_CHANGE = WRITE | SYNC | CREATE | RENAME | RESIZE


def build(directory: Path) -> Path:
    """Compiles the library and returns its path."""
    library = directory / "failing_disk.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return library


class FailingDisk:
    """Controls the library in one process that was started with `environment`.

    The disk works until `fail` is called, and again after `heal`.
    """

    def __init__(self, library: Path, directory: Path) -> None:
        path = directory / "failing_disk.control"
        path.write_bytes(bytes(CONTROL.size))
        self.environment = {"LD_PRELOAD": str(library), "FAILING_DISK_CONTROL": str(path)}
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), CONTROL.size)

    def fail(self, path_part: str, operations: int, error: int = errno.EIO, *, skip: int = 0) -> None:
        """Makes calls of these kinds fail on paths that contain `path_part`, after `skip` more calls that succeed."""
        self.heal()
        self._map[4:] = CONTROL.pack(0, operations, skip, 0, path_part.encode())[4:]
        self._map[:4] = struct.pack("=i", error)

    def heal(self) -> None:
        self._map[:4] = bytes(4)

    @property
    def hits(self) -> int:
        """The number of calls that have failed since `fail`."""
        return int(CONTROL.unpack(self._map[:])[3])
