"""A thread that runs blocking work for another thread, one piece after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue

Work = Callable[[], object]


class SerialThread:
    """Runs work in the order in which it was submitted. The thread starts when it is first needed.

    If a piece of work raises an exception, `on_fault` is called with it, on the thread; later work is still run.
    One thread calls `submit` and reads `is_idle`.
    """

    def __init__(self, name: str, on_fault: Callable[[BaseException], None]) -> None:
        self._on_fault = on_fault
        self._queue: SimpleQueue[tuple[Work, Future[None]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._newest: Future[None] | None = None

    @property
    def is_idle(self) -> bool:
        """True if all submitted work has been run."""
        return self._newest is None or self._newest.done()

    def submit(self, work: Work) -> Future[None]:
        """Runs `work` after all work that was submitted before. The Future is completed after that, on the thread; it
        has the exception of `work`, if there was one."""
        if self._newest is None:
            self._thread.start()
        future: Future[None] = Future()
        self._newest = future
        self._queue.put((work, future))
        return future

    def stop(self) -> None:
        """Runs all submitted work and ends the thread. Called after the last call of `submit`."""
        if self._newest is not None:
            self._queue.put(None)
            self._thread.join()

    def _run(self) -> None:
        while (entry := self._queue.get()) is not None:
            work, future = entry
            try:
                work()
            except BaseException as error:
                self._on_fault(error)
                future.set_exception(error)
            else:
                future.set_result(None)
