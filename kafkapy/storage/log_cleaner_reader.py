"""Reads an inactive segment for the log cleaner, in whole batches, through a descriptor of the cleaner's own."""

import os
from collections.abc import Callable

from kafkapy.storage.segment_reader import batch_size, read_whole

SMALLEST_BUFFER = 4096


class CorruptSegment(ValueError):
    """Raised if a segment contains bytes that are no batch, or a batch with a wrong checksum; the message says
    where."""


class CleanerBuffer:
    """The memory into which a cleaner thread reads; it grows if a batch is larger. Used by one thread."""

    __slots__ = ("_count", "_memory")

    def __init__(self, size: int, count: Callable[[int], None]) -> None:
        """Allocates `size` bytes; `count(n)` is called after n bytes were read, and may wait."""
        self._memory = bytearray(max(size, SMALLEST_BUFFER))
        self._count = count

    def read(self, path: str, position: int, end: int, visit: Callable[[memoryview, int], int | None]) -> None:
        """Reads the file from `position` to `end` in pieces, and calls `visit(buffer, length)` with each.

        `visit` handles the whole batches at the beginning of the buffer and returns their size in bytes, or None to end
        the reading. Raises CorruptSegment or OSError.
        """
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while position < end:
                length = self._fill(fd, position, end)
                view = memoryview(self._memory)
                visited = visit(view, length)
                if visited is None:
                    return
                if visited == 0:
                    size = batch_size(bytes(view[:12])) if length >= 12 else 0
                    if size <= length or size > end - position:
                        raise CorruptSegment(f"{path}: no whole batch at position {position}")
                    del view
                    self._memory = bytearray(size)
                position += visited
        finally:
            os.close(fd)

    def _fill(self, fd: int, position: int, end: int) -> int:
        length = read_whole(fd, self._memory, position, end)
        self._count(length)
        return length
