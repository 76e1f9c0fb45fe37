"""Defers signal handlers while the main thread runs a step of a client's network loop. A step is one pass of the loop.

A signal's handler runs between any two instructions of the main thread. A handler that raises an exception, such as
Python's handler of Ctrl-C, would abort the step in the middle: requests would not be sent, responses would be lost, and
`close` would wait for them.
"""

from __future__ import annotations

import signal
import threading

# The functions of module `signal` convert numbers to enumerations, which takes ten times as long in every step.
from _signal import getsignal as handler_of  # type: ignore[import-not-found]
from _signal import signal as set_handler
from collections.abc import Callable
from types import FrameType

HELD = (signal.SIGINT, signal.SIGTERM)

Handler = Callable[[int, FrameType | None], object]


class HeldSignals:
    """A context that defers the handlers of SIGINT and SIGTERM until it ends. It must not be nested.

    The context has no effect in other threads than the main thread, because Python runs signal handlers only there.
    """

    __slots__ = ("_handlers", "_received")

    def __init__(self) -> None:
        self._handlers: list[tuple[int, Handler]] = []
        self._received: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        try:
            for number in HELD:
                handler = handler_of(number)
                if callable(handler):
                    self._handlers.append((number, handler))
                    set_handler(number, self._hold)
        except BaseException:  # raised by the second signal's handler before it was replaced
            self._restore(self._handlers)
            raise

    def __exit__(self, *_: object) -> None:
        if self._handlers:
            self._restore(self._handlers)
            for number, frame in self._received:
                dict(self._handlers)[number](number, frame)

    def _hold(self, number: int, frame: FrameType | None) -> None:
        self._received.append((number, frame))

    def _restore(self, handlers: list[tuple[int, Handler]]) -> None:
        """Restores the handlers, which are pairs of signal number and handler, in order.

        A deferred signal's handler may run during this and raise; the remaining handlers are restored nevertheless.
        """
        if handlers:
            try:
                set_handler(*handlers[0])
            finally:
                self._restore(handlers[1:])
