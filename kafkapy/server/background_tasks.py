"""The thread for work that may block: checkpoints, flushes, retention scans, file deletion.

The thread sleeps until the earliest task is due. A failure of a task is logged and never ends the thread; a periodic
task runs again after its period.
"""

from __future__ import annotations

import heapq
import logging
import threading
from collections.abc import Callable
from itertools import count

from kafkapy.types import Clock

logger = logging.getLogger("kafka.utils.KafkaScheduler")

Task = Callable[[], object]


class BackgroundTasks:
    """The thread and its queue of tasks, which `_condition` guards. Any thread may call every method."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._condition = threading.Condition()
        self._heap: list[tuple[int, int, str, Task, int]] = []
        self._sequence = count()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="kafka-scheduler-0", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def soon(self, name: str, task: Task) -> None:
        self.once(name, 0, task)

    def once(self, name: str, delay_ms: int, task: Task) -> None:
        self._add(name, delay_ms, task, period_ms=0)

    def every(self, name: str, period_ms: int, task: Task) -> None:
        """Runs `task` every `period_ms`; the first run is after one period."""
        self._add(name, period_ms, task, period_ms=max(period_ms, 1))

    def stop(self) -> None:
        """Runs the tasks that are due, discards the others, and waits until the thread has ended."""
        with self._condition:
            self._stopping = True
            self._condition.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _add(self, name: str, delay_ms: int, task: Task, period_ms: int) -> None:
        due_ms = self._clock.monotonic_ms() + delay_ms
        with self._condition:
            heapq.heappush(self._heap, (due_ms, next(self._sequence), name, task, period_ms))
            self._condition.notify()

    def _next_task(self) -> tuple[str, Task, int] | None:
        """Waits until a task is due and returns it with its name and period; returns None when the thread has to
        end."""
        with self._condition:
            while True:
                wait_ms: int | None = None
                if self._heap:
                    wait_ms = self._heap[0][0] - self._clock.monotonic_ms()
                    if wait_ms <= 0:
                        _, _, name, task, period_ms = heapq.heappop(self._heap)
                        return name, task, period_ms
                if self._stopping:
                    return None
                self._condition.wait(None if wait_ms is None else wait_ms / 1000)

    def _run(self) -> None:
        while (entry := self._next_task()) is not None:
            name, task, period_ms = entry
            try:
                task()
            except Exception:
                logger.exception("Background task %s failed", name)
            if period_ms and not self._stopping:
                self._add(name, period_ms, task, period_ms)
