"""Operations that an active controller runs at intervals, such as fencing brokers whose session has expired."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

from kafkapy.controller.result import Operation
from kafkapy.quorum.active_controller import Submitted

NOT_DUE_MS = 1 << 62


class _Periodic:
    __slots__ = ("due_ms", "operation", "period_ms")

    def __init__(self, period_ms: int, operation: Operation[Any]) -> None:
        self.period_ms = period_ms
        self.operation = operation
        self.due_ms = NOT_DUE_MS

    def note(self, done: Future[Any]) -> None:
        """Repeats the operation at once if its response is True: there is more to do."""
        if done.exception() is None and done.result() is True:
            self.due_ms = 0


class PeriodicOperations:
    """Owns the times of the operations. Quorum thread only, after `every`."""

    def __init__(self) -> None:
        self._operations: list[_Periodic] = []

    def every(self, period_ms: int, operation: Operation[Any]) -> None:
        """Runs `operation` every `period_ms` while this node is the active controller of several brokers.

        An operation whose response is True is run again at once. Called before the start.
        """
        self._operations.append(_Periodic(period_ms, operation))

    def begin(self, monotonic_ms: int) -> None:
        """Begins the time of an active controller: each operation is due after its period."""
        for each in self._operations:
            each.due_ms = monotonic_ms + each.period_ms

    def end(self) -> None:
        """Ends the time of an active controller: nothing is due."""
        for each in self._operations:
            each.due_ms = NOT_DUE_MS

    def next_due_ms(self) -> int:
        """Returns the monotonic time at which `due` may yield an operation."""
        return min((each.due_ms for each in self._operations), default=NOT_DUE_MS)

    def due(self, monotonic_ms: int) -> Iterator[Submitted]:
        """Yields the operations that are due, each with the future of its response."""
        for each in self._operations:
            if each.due_ms <= monotonic_ms:
                each.due_ms = monotonic_ms + each.period_ms
                future: Future[Any] = Future()
                future.add_done_callback(each.note)
                yield each.operation, future
