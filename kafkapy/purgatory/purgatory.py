"""Where delayed operations wait: under the keys whose events may fulfil them, and on the timer.

Kafka's purgatory lets completed operations linger in the lists of their other keys until a reaper purges them, since
another thread may be walking those lists. Here one thread owns everything, so a completed operation leaves all its
lists at once, and there is nothing to reap.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from kafkapy.purgatory.delayed_operation import DelayedOperation, TimerEntry

Schedule = Callable[[int, Callable[[], None]], TimerEntry]


class Purgatory:
    """Owns the watch lists of one kind of operation. Owner thread only.

    Invariants: no completed operation is watched; a key without watchers has no list.
    """

    __slots__ = ("_schedule", "_watchers", "delayed_count", "expired_count", "name")

    def __init__(self, name: str, schedule: Schedule) -> None:
        self.name = name
        self.delayed_count = 0
        self.expired_count = 0
        self._schedule = schedule
        # Dictionaries used as ordered sets: oldest first, removal by identity in constant time.
        self._watchers: dict[Hashable, dict[DelayedOperation, None]] = {}

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> bool:
        """Completes `operation` now (True), or keeps it until an event on one of `keys` or its deadline (False)."""
        if operation.try_complete():
            return True
        self._enter(operation, keys)
        # Once more, now that events find it: the first attempt may itself have caused the event (an ISR change,
        # a high watermark that moved) before there was anything to wake.
        if operation.try_complete():
            return True
        self._time(operation)
        return False

    def watch(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> None:
        """Keeps `operation` until an event on one of `keys` or its deadline: its condition was looked at just now, and
        to look causes no event."""
        self._enter(operation, keys)
        self._time(operation)

    def _enter(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> None:
        unique_keys = tuple(dict.fromkeys(keys))
        for key in unique_keys:
            self._watchers.setdefault(key, {})[operation] = None
        operation.watched_by(self, unique_keys)
        self.delayed_count += 1

    def _time(self, operation: DelayedOperation) -> None:
        operation.timed_by(self._schedule(operation.timeout_ms, lambda: self._expire(operation)))

    def check_and_complete(self, key: Hashable) -> int:
        """Tries every operation that watches `key`; returns how many completed."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        completed = 0
        # A copy: completing an operation removes it, and its answer may bring in another one.
        for operation in tuple(watchers):
            if not operation.is_completed and operation.try_complete():
                completed += 1
        return completed

    def is_watched(self, key: Hashable) -> bool:
        """Whether an operation waits for an event on `key`."""
        return key in self._watchers

    def force_complete(self, key: Hashable) -> None:
        """Completes everything that waits for `key` as if its deadline had come."""
        for operation in tuple(self._watchers.get(key, ())):
            operation.force_complete()

    def force_complete_all(self) -> None:
        """Completes everything as if each deadline had come; for shutdown."""
        for watchers in tuple(self._watchers.values()):
            for operation in tuple(watchers):
                operation.force_complete()

    def watched_count(self) -> int:
        """The number of (key, operation) pairs."""
        return sum(map(len, self._watchers.values()))

    def forget(self, operation: DelayedOperation, keys: tuple[Hashable, ...]) -> None:
        """Removes a completed operation from its lists; called by the operation."""
        self.delayed_count -= 1
        for key in keys:
            watchers = self._watchers[key]
            del watchers[operation]
            if not watchers:
                del self._watchers[key]

    def _expire(self, operation: DelayedOperation) -> None:
        if not operation.is_completed:
            self.expired_count += 1
            operation.expire()
