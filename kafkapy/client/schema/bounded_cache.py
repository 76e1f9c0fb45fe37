"""A cache with a limit for the number of its entries."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """Values by key, of which the cache keeps at most `limit`. Thread-safe.

    When a further entry is added, the entry that was not used for the longest time is dropped.
    """

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"the limit of a cache is 1 or more, not {limit}")
        self._limit = limit
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Value | None:
        """Returns the value of a key; None if the cache does not have the key."""
        with self._lock:
            value = self._entries.get(key)
            if value is not None:
                self._entries.move_to_end(key)
            return value

    def put(self, key: Key, value: Value) -> Value:
        """Adds a value and returns it."""
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            if len(self._entries) > self._limit:
                self._entries.popitem(last=False)
        return value

    def get_or_make(self, key: Key, make: Callable[[], Value]) -> Value:
        """Returns the value of a key; if the cache lacks it, adds the result of `make()`.

        Several threads may call `make` for the same key at the same time.
        """
        found = self.get(key)
        return self.put(key, make()) if found is None else found

    def clear(self) -> None:
        """Drops all entries."""
        with self._lock:
            self._entries.clear()
