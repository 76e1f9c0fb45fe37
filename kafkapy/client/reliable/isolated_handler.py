"""A handler in a child process, which may hang or die without harm to the process that commits."""

from __future__ import annotations

import os
import pickle
import selectors
import subprocess
import sys
import time
from typing import Any

from kafkapy.client.closing import Closing
from kafkapy.client.reliable.chain_headers import ErrorText
from kafkapy.client.reliable.handler_process import LENGTH_BYTES, load_handler
from kafkapy.client.reliable.records import Delivery, Failure, HandlerDied, HandlerTimedOut, Output
from kafkapy.errors import ConfigError

_CHILD_MODULE = "kafkapy.client.reliable.handler_process"
# Importing the handler's module may take long.
_IMPORT_TIMEOUT_S = 60.0
_PIPE_BYTES = 1 << 16


class IsolatedHandler(Closing):
    """Calls `module:function` in a child process; an instance is a handler for a Processor. Not thread-safe.

    A call that takes longer than `timeout_s` seconds kills the child and raises HandlerTimedOut. A call also raises
    HandlerDied if the child ends; Failure if the function raises it; and RemoteError for every other exception of the
    function. The next call starts a new child. Raises ConfigError at once if the function cannot be imported.
    """

    def __init__(self, reference: str, timeout_s: float) -> None:
        load_handler(reference)
        if getattr(sys, "frozen", False):
            raise ConfigError("The handler cannot have a process of its own in the executable; use --in-process")
        self._reference = reference
        self._timeout_s = timeout_s
        self._child: subprocess.Popen[bytes] | None = None
        self._unread = bytearray()

    def __call__(self, delivery: Delivery) -> list[Output]:
        """Passes a delivery to the child process, and returns the outputs of the function. Blocks."""
        if self._child is None:
            self._start()
        child = self._child
        assert child is not None and child.stdin is not None
        body = pickle.dumps(delivery)
        try:
            child.stdin.write(len(body).to_bytes(LENGTH_BYTES, "big") + body)
            child.stdin.flush()
        except OSError:
            self._raise_death()
        kind, content = pickle.loads(self._receive(self._timeout_s))
        if kind == "outputs":
            return [Output(*each) for each in content]
        description = ErrorText(*content)
        raise Failure(description.message) if kind == "failure" else RemoteError(description)

    def close(self) -> None:
        """Ends the child process."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout):
                if stream is not None:
                    stream.close()
        self._unread.clear()

    def _start(self) -> None:
        command = [sys.executable, "-m", _CHILD_MODULE, self._reference]
        # A group of its own, so that a Ctrl-C on the terminal reaches only the parent, which ends the child.
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
        )
        self._receive(_IMPORT_TIMEOUT_S)

    def _receive(self, timeout_s: float) -> bytes:
        """Returns the body of the next frame from the child. Ends the child before it raises HandlerTimedOut or
        HandlerDied.
        """
        child = self._child
        assert child is not None and child.stdout is not None
        deadline_s = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            while (body := self._take_frame()) is None:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or not selector.select(left_s):
                    self.close()
                    raise HandlerTimedOut(f"The handler {self._reference} has not returned within {timeout_s:g} s")
                part = os.read(child.stdout.fileno(), _PIPE_BYTES)
                if not part:
                    self._raise_death()
                self._unread += part
        return body

    def _take_frame(self) -> bytes | None:
        if len(self._unread) < LENGTH_BYTES:
            return None
        end = LENGTH_BYTES + int.from_bytes(self._unread[:LENGTH_BYTES], "big")
        if len(self._unread) < end:
            return None
        body = bytes(self._unread[LENGTH_BYTES:end])
        del self._unread[:end]
        return body

    def _raise_death(self) -> Any:
        child = self._child
        assert child is not None
        child.kill()
        status = child.wait()
        self.close()
        raise HandlerDied(f"The process of the handler {self._reference} has ended with status {status}")


class RemoteError(Exception):
    """An exception of a function in a child process; `description` has its class, message and traceback."""

    def __init__(self, description: ErrorText) -> None:
        super().__init__(description.message)
        self.description = description
