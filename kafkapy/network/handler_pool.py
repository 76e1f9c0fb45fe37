"""The threads for handlers that block, and the bounded queue in front of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue

logger = logging.getLogger("kafka.server.KafkaRequestHandler")

# Runs on a pool thread; the callable that it returns, if any, then runs on the reactor's thread.
Work = Callable[[], Callable[[], object] | None]


class HandlerPool:
    """The threads for handlers that may block: up to `thread_count`, each started when it is first needed.

    Only the reactor's thread may call `submit` and `set_thread_count`. `submit` gives a function to the threads. That
    function may return another function, which `post` passes to the reactor's thread to be run there. When
    `queue_limit` (queued.max.requests) submitted functions wait, `pause` is called, and `resume` when fewer wait again;
    the reactor reads no requests in between.
    """

    def __init__(
        self,
        thread_count: int,
        queue_limit: int,
        *,
        post: Callable[[Callable[[], object]], None],
        pause: Callable[[], None],
        resume: Callable[[], None],
    ) -> None:
        self._thread_count = thread_count
        self._queue_limit = queue_limit
        self._post = post
        self._pause = pause
        self._resume = resume
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._serving = 0  # threads that have been started and not been asked to end
        self._started = 0
        self._unfinished = 0
        self._paused = False
        self._stopped = False

    @property
    def queued(self) -> int:
        """The number of submitted functions that wait for a thread."""
        return max(0, self._unfinished - self._thread_count)

    @property
    def idle_share(self) -> float:
        """The share of the `thread_count` threads that are idle, 0 to 1. May be read by any thread."""
        return 1 - min(self._unfinished, self._thread_count) / self._thread_count

    def submit(self, work: Work) -> None:
        if self._stopped:
            raise RuntimeError("the handler pool has been stopped")
        self._unfinished += 1
        self._start_threads()
        self._queue.put(work)
        if not self._paused and self.queued >= self._queue_limit:
            self._paused = True
            self._pause()

    def set_thread_count(self, thread_count: int) -> None:
        """Changes the number of threads (num.io.threads). Surplus threads end when they have run what waits now."""
        if self._stopped or thread_count == self._thread_count:
            return
        self._thread_count = thread_count
        while self._serving > thread_count:
            self._serving -= 1
            self._queue.put(None)
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        self._start_threads()
        self._resume_if_room()

    def _start_threads(self) -> None:
        while self._serving < min(self._unfinished, self._thread_count):
            name = f"data-plane-kafka-request-handler-{self._started}"
            thread = threading.Thread(target=self._serve, name=name, daemon=True)
            self._threads.append(thread)
            self._serving += 1
            self._started += 1
            thread.start()

    def stop(self, timeout_s: float = 1.0) -> None:
        """Runs the functions that were submitted before, and ends the threads; waits at most `timeout_s` for each
        thread.

        May be called by any thread except those of the pool.
        """
        self._stopped = True
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join(timeout_s)

    def _serve(self) -> None:
        while (work := self._queue.get()) is not None:
            continuation: Callable[[], object] | None = None
            try:
                continuation = work()
            except Exception:
                logger.exception("Unexpected error in a request handler thread")
            self._post(partial(self._finished, continuation))

    def _finished(self, continuation: Callable[[], object] | None) -> None:
        self._unfinished -= 1
        self._resume_if_room()
        if continuation is not None:
            continuation()

    def _resume_if_room(self) -> None:
        if self._paused and self.queued < self._queue_limit:
            self._paused = False
            self._resume()
