"""Clients that run on threads of their own while nodes fail."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod

# A client that waits longer than this for an answer has been forgotten by the cluster.
PATIENCE_S = 60.0


class BackgroundClient(ABC):
    """A client that runs `_work` on a thread of its own, from `start` to `stop`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._stopped = threading.Event()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the work and waits for its last answers. Raises the failure of the work, if there was one."""
        self._stopped.set()
        self._thread.join(2 * PATIENCE_S)
        assert not self._thread.is_alive(), f"{self.name} waits for ever"
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.failure = error

    @abstractmethod
    def _work(self) -> None:
        """Runs until `_stopped` is set, then waits for the responses that have not arrived."""
