"""Makes shorter what Spark's Python workers do, and wait for, before and after each task.

- Before a task, `pyspark/worker.py` calls `importlib.invalidate_caches`. In Python 3.11 this reads the list of files of
  each zip file on the module path again. Spark puts its jars there (`spark.jars`, `--packages`), and for thousands of
  files in jars it takes 50 to 300 ms.
- After a task, `pyspark/daemon.py` collects garbage, while the JVM may already send the next task to the worker. With
  pyspark, pyarrow and the client imported, a collection looks at 47,000 objects that live as long as the process, and
  takes 50 to 120 ms.
- At the beginning of a task, the JVM sends the command and then the input through TCP, a few kilobytes. Because of
  Nagle's algorithm, it sends the input when the worker's kernel has acknowledged the command, 40 ms later.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from contextlib import suppress
from functools import cache
from zipimport import ZipImportError, zipimporter

from pyspark import TaskContext


def shorten_tasks() -> None:
    """Makes the following tasks of this process shorter, if a task of Spark calls this.

    Outside of a task, does nothing, because the process is then the user's. Each task may call this.
    """
    if TaskContext.get() is None:
        return
    _exempt_imported_modules()
    _keep_lists_of_files()


def request_input() -> None:
    """Lets the JVM send the input of this task at once, if a task of Spark calls this.

    The object that a command contains calls this when it is restored: then the command has been read, but its input was
    not. On Linux, acknowledges at once what this process has received on its TCP connections, and lets it send small
    parts of its output without waiting for an acknowledgement.
    """
    if TaskContext.get() is None or not hasattr(socket, "TCP_QUICKACK"):
        return
    for descriptor in _open_descriptors():
        with suppress(OSError):  # the descriptor is no TCP connection, or was closed
            _acknowledge(descriptor)


def _open_descriptors() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:  # /proc is not mounted
        return []


def _acknowledge(descriptor: int) -> None:
    connection = socket.socket(fileno=descriptor)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    finally:
        connection.detach()


@cache  # once in a process
def _exempt_imported_modules() -> None:
    """Exempts the objects that exist now from all later garbage collections.

    Most of these objects belong to imported modules. The exempted objects are still freed when nothing refers to them;
    only a cycle of them is never freed.
    """
    gc.freeze()


def _keep_lists_of_files() -> None:
    """Lets the zip files that are on the module path now be read again only after they have changed."""
    for path, finder in list(sys.path_importer_cache.items()):
        if type(finder) is zipimporter:
            with suppress(ZipImportError):  # the file has vanished: an import from it will say so
                sys.path_importer_cache[path] = _KeptListOfFiles(path)


class _KeptListOfFiles(zipimporter):
    """Imports modules from a zip file, and keeps the list of its files until the file changes."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._version: tuple[int, int, int] | None = None  # unknown: the list may be older than the file
        self.invalidate_caches()

    def invalidate_caches(self) -> None:
        """Reads the list of files again if the zip file has changed since the last call."""
        version = _version(self.archive)
        if version is None or version != self._version:
            super().invalidate_caches()
            self._version = version


def _version(path: str) -> tuple[int, int, int] | None:
    """Returns what differs between versions of a file (inode, size in bytes, nanoseconds of its last change), or None
    if it does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
