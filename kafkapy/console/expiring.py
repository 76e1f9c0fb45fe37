"""A cache of values that are read from a cluster, each kept for a short time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")


class _Entry:
    __slots__ = ("lock", "read_s", "value")

    def __init__(self) -> None:
        self.lock = Lock()
        self.read_s = float("-inf")
        self.value: Any = None


class ExpiringCache:
    """A cache of at most `most` values by key. Thread-safe.

    If several callers want a value at the same time, one of them reads it and the others wait for the result.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, max_age_s: float, read: Callable[[], T]) -> T:
        """Returns the value of the key if it was read at most `max_age_s` seconds ago, otherwise calls `read`.

        Stores and returns the result of `read`. An exception of `read` is raised and not cached.
        """
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry()
            self._entries.move_to_end(key)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)
        with entry.lock:
            if self._clock() - entry.read_s > max_age_s:
                entry.value = read()
                entry.read_s = self._clock()
            found: T = entry.value
            return found

    def clear(self) -> None:
        """Removes all values, after a change of the cluster."""
        with self._lock:
            self._entries.clear()
