"""A pipe with which any thread wakes a thread that waits in a selector."""

from __future__ import annotations

import os
import threading
from contextlib import suppress

_WAKE_BYTES = 4096


class WakePipe:
    """A pipe whose reading end is registered with a selector. Any thread may call every method.

    After `close` the other methods do nothing: without the lock, a late call could write to, or read from, a file that
    has got the number of the closed descriptor.
    """

    def __init__(self) -> None:
        """Opens the pipe. Raises OSError."""
        self._lock = threading.RLock()  # a signal handler may call `wake` while its thread has the lock
        self._is_open = True
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def fileno(self) -> int:
        """Returns the descriptor that becomes readable when `wake` is called."""
        return self._reader

    def wake(self) -> None:
        """Makes the pipe readable until `clear` is called."""
        with self._lock, suppress(BlockingIOError):  # raised if the pipe is full, and readable in any case
            if self._is_open:
                os.write(self._writer, b"w")

    def clear(self) -> None:
        """Empties the pipe, which may be empty already because another thread has read it."""
        with self._lock, suppress(BlockingIOError):
            if self._is_open:
                os.read(self._reader, _WAKE_BYTES)

    def close(self) -> None:
        """Closes the pipe. Further calls do nothing."""
        with self._lock:
            if self._is_open:
                self._is_open = False
                os.close(self._reader)
                os.close(self._writer)
