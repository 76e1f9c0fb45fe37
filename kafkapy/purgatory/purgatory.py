"""The purgatory holds delayed operations under the keys whose events may complete them, and on a timer.

Kafka's purgatory leaves completed operations in the lists of their other keys until a reaper removes them, since
another thread may iterate over those lists. Here one thread owns the purgatory, so that a completed operation is
removed from all its lists at once, and no reaper is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable

from kafkapy.purgatory.delayed_operation import DelayedOperation, TimerEntry

Schedule = Callable[[int, Callable[[], None]], TimerEntry]


class Purgatory:
    """The delayed operations of one kind, by the keys whose events may complete them. Used by the thread that owns the
    purgatory.

    Invariants: no completed operation is in a list; a key without waiting operations has no list.
    """

    __slots__ = ("_schedule", "_watchers", "delayed_count", "expired_count", "name")

    def __init__(self, name: str, schedule: Schedule) -> None:
        self.name = name
        self.delayed_count = 0
        self.expired_count = 0
        self._schedule = schedule
        # Dictionaries serve as ordered sets: oldest first, with removal in constant time.
        self._watchers: dict[Hashable, dict[DelayedOperation, None]] = {}

    def try_complete_else_watch(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> bool:
        """Completes the operation now and returns True if its condition is true.

        Otherwise stores the operation until it completes after an event on one of `keys`, or at its deadline; returns
        False.
        """
        if operation.try_complete():
            return True
        self._enter(operation, keys)
        # Tried again now that events find it: the first attempt may itself have caused the event (an ISR change, a
        # higher high watermark) before the operation was watched.
        if operation.try_complete():
            return True
        self._time(operation)
        return False

    def watch(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> None:
        """Stores the operation until it completes after an event on one of `keys`, or at its deadline.

        Does not test the operation's condition; the caller must have just found it false. The caller must use
        `try_complete_else_watch` instead if its test may itself cause an event on one of `keys`. The operation would
        miss this event, because it is stored only after the test. `try_complete_else_watch` tests the condition again
        after it has stored the operation.
        """
        self._enter(operation, keys)
        self._time(operation)

    def _enter(self, operation: DelayedOperation, keys: Iterable[Hashable]) -> None:
        assert not operation.is_completed, "a completed operation cannot wait"
        unique_keys = tuple(dict.fromkeys(keys))
        for key in unique_keys:
            self._watchers.setdefault(key, {})[operation] = None
        operation.watched_by(self, unique_keys)
        self.delayed_count += 1

    def _time(self, operation: DelayedOperation) -> None:
        operation.timed_by(self._schedule(operation.timeout_ms, lambda: self._expire(operation)))

    def check_and_complete(self, key: Hashable) -> int:
        """Tests the condition of each operation that waits for an event on `key`. Called after an event on `key`.
        Returns the number of operations that completed."""
        watchers = self._watchers.get(key)
        if watchers is None:
            return 0
        completed = 0
        # A copy, since completing an operation removes it, and its response may add another one.
        for operation in tuple(watchers):
            if not operation.is_completed and operation.try_complete_after(key):
                completed += 1
        return completed

    def is_watched(self, key: Hashable) -> bool:
        """Returns whether an operation waits for an event on `key`."""
        return key in self._watchers

    def watchers(self, key: Hashable) -> Collection[DelayedOperation]:
        """Returns the operations that wait for an event on `key`, oldest first."""
        return self._watchers.get(key, {}).keys()

    def force_complete(self, key: Hashable) -> None:
        """Completes all operations that wait for an event on `key`, as if their deadlines had come."""
        for operation in tuple(self._watchers.get(key, ())):
            operation.force_complete()

    def force_complete_all(self) -> None:
        """Completes all operations as if their deadlines had come; for shutdown."""
        for watchers in tuple(self._watchers.values()):
            for operation in tuple(watchers):
                operation.force_complete()

    def watched_count(self) -> int:
        """Returns the sum, over all waiting operations, of the number of keys under which each one waits."""
        return sum(map(len, self._watchers.values()))

    def forget(self, operation: DelayedOperation, keys: tuple[Hashable, ...]) -> None:
        """Removes a completed operation from the lists of its `keys`; called by the operation."""
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
