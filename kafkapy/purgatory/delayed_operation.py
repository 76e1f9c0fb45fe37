"""An operation that waits: it completes when an event fulfils its condition, or at its deadline.

`on_complete` sends the response to the client, after an event as well as at the deadline. It runs exactly once.

    try_complete()  -- the condition holds --> force_complete() -> on_complete()
    the deadline    -------------------------> force_complete() -> on_complete()
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Protocol


class TimerEntry(Protocol):
    """The interface of an entry of the timer that completes an operation at its deadline."""

    def cancel(self) -> object: ...


class Watcher(Protocol):
    """The methods of a purgatory (the collection in which operations wait) that its operations call."""

    def forget(self, operation: DelayedOperation, keys: tuple[Hashable, ...]) -> None: ...


class DelayedOperation(ABC):
    """The base class of all delayed operations: an operation completes when its condition is true, or at its deadline.

    All methods are called by the thread that owns the purgatory, the collection in which the operation waits.

    Invariant: `on_complete` runs at most once, and exactly once if the operation is in a purgatory and its timer runs.
    """

    __slots__ = ("_purgatory", "_timer_entry", "_watched_keys", "is_completed", "timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self.is_completed = False
        self._timer_entry: TimerEntry | None = None
        self._purgatory: Watcher | None = None
        self._watched_keys: tuple[Hashable, ...] = ()

    @abstractmethod
    def try_complete(self) -> bool:
        """Tests the condition, and completes the operation if the condition is true.

        Returns True if this call has completed the operation.
        """

    def try_complete_after(self, key: Hashable) -> bool:
        """Does the same as `try_complete` after an event on `key`, one of the keys under which the operation waits.

        An operation with many keys overrides the method, in order to test only the part of the condition that concerns
        `key`.
        """
        return self.try_complete()

    @abstractmethod
    def on_complete(self) -> None:
        """Makes the response, even if the condition is not true, and sends it to the client. Implemented by
        subclasses."""

    def force_complete(self) -> bool:
        """Completes the operation even if its condition is not true. Returns True, or False if it was complete
        already."""
        if self.is_completed:
            return False
        self.is_completed = True
        if self._timer_entry is not None:
            self._timer_entry.cancel()
            self._timer_entry = None
        if self._purgatory is not None:
            self._purgatory.forget(self, self._watched_keys)
            self._purgatory = None
        self.on_complete()
        return True

    def watched_by(self, purgatory: Watcher, keys: tuple[Hashable, ...]) -> None:
        """Stores the purgatory that has added the operation under `keys`; called by that purgatory."""
        self._purgatory = purgatory
        self._watched_keys = keys

    def timed_by(self, timer_entry: TimerEntry) -> None:
        """Stores the timer entry that completes the operation at its deadline; called by the purgatory."""
        self._timer_entry = timer_entry

    def expire(self) -> None:
        """Completes the operation, because its deadline has come."""
        self._timer_entry = None
        self.force_complete()
