"""Reads a closed segment for the log cleaner: through a descriptor of its own, a buffer at a time, whole batches."""

import os
from collections.abc import Callable

from kafkapy.storage.segment_reader import batch_size

SMALLEST_BUFFER = 4096


class CorruptSegment(ValueError):
    """What stands in a segment is no batch, or not what its checksum says; names the file and the position."""


class CleanerBuffer:
    """Owns the memory that a cleaner thread reads into; it grows for a batch that is larger. One thread."""

    __slots__ = ("_count", "_memory")

    def __init__(self, size: int, count: Callable[[int], None]) -> None:
        """`count(n)` hears of n bytes read: the throttle."""
        self._memory = bytearray(max(size, SMALLEST_BUFFER))
        self._count = count

    def read(self, path: str, position: int, end: int, visit: Callable[[memoryview, int], int | None]) -> None:
        """Calls `visit(buffer, length)` with what stands from `position` on; it returns the bytes it is done with, or
        None to end. It has to be done with every whole batch. CorruptSegment, OSError."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while position < end:
                length = self._fill(fd, position, end)
                view = memoryview(self._memory)
                done = visit(view, length)
                if done is None:
                    return
                if done == 0:
                    size = batch_size(bytes(view[:12])) if length >= 12 else 0
                    if size <= length or size > end - position:
                        raise CorruptSegment(f"{path}: no whole batch at position {position}")
                    del view
                    self._memory = bytearray(size)
                position += done
        finally:
            os.close(fd)

    def _fill(self, fd: int, position: int, end: int) -> int:
        wanted = min(len(self._memory), end - position)
        length = 0
        with memoryview(self._memory) as view:
            while length < wanted:
                got = os.preadv(fd, [view[length:wanted]], position + length)
                if got == 0:
                    break
                length += got
        self._count(length)
        return length
