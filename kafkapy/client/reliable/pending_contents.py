"""The temporary file with the contents of pending records. The space of removed contents is used again.

Space is allocated in a fixed series of sizes, with eight sizes for each power of two; the smallest is 32 bytes.
A content of more than 32 bytes therefore takes at most an eighth more than its bytes. Freed space is used again only
for a content of the same size of the series. The file never becomes smaller until it is empty, because to rewrite it
would take seconds with a million records.
"""

from __future__ import annotations

import os
import tempfile
from array import array

from kafkapy.client.closing import Closing

_LEAST_SIZE = 32
# A file that is empty is truncated if it is larger than this.
_LEAST_TRUNCATED = 64 << 20


class PendingContents(Closing):
    """Byte strings in a file without a name, which is removed when it is closed or the process ends. Not thread-safe.

    A content is named by its position and its size in bytes.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="kafkapy-delay-", buffering=0)  # noqa: SIM115
        self._free: dict[int, array[int]] = {}  # positions of free space, by its size
        self._count = 0
        self.file_size = 0

    def close(self) -> None:
        """Closes the file, which removes it."""
        self._file.close()

    def add(self, content: bytes) -> int:
        """Writes a content and returns its position. Raises OSError if it cannot be written."""
        size = _allocated(len(content))
        free = self._free.get(size)
        position = free[-1] if free else self.file_size
        if os.pwrite(self._file.fileno(), content, position) != len(content):
            raise OSError("The temporary file of the delay service cannot be written to its end")
        if free:
            free.pop()
        else:
            self.file_size += size
        self._count += 1
        return position

    def read(self, position: int, size: int) -> bytes:
        """Returns a content. Raises OSError if it cannot be read."""
        content = os.pread(self._file.fileno(), size, position)
        if len(content) != size:
            raise OSError("The temporary file of the delay service is shorter than it was")
        return content

    def remove(self, position: int, size: int) -> None:
        """Frees the space of a content."""
        self._free.setdefault(_allocated(size), array("q")).append(position)
        self._count -= 1
        if not self._count and self.file_size > _LEAST_TRUNCATED:
            self._free.clear()
            self.file_size = 0
            os.ftruncate(self._file.fileno(), 0)


def _allocated(size: int) -> int:
    """Returns the number of bytes to allocate for a content of `size` bytes: the next size of a fixed series.

    The series begins with _LEAST_SIZE and has eight sizes from one power of two to the next, so that the result is at
    most an eighth more than a `size` above _LEAST_SIZE.
    """
    if size <= _LEAST_SIZE:
        return _LEAST_SIZE
    step = 1 << max((size - 1).bit_length() - 4, 0)
    return -(-size // step) * step
