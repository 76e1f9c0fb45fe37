"""Signals held back while the main thread is in the midst of something.

A signal's handler runs between any two instructions of the main thread. One that raises, as Ctrl-C's does, would leave
within the networking of a client requests that nobody sends and answers that nobody tells of; whoever closed the client
then would wait for them.
"""

from __future__ import annotations

import signal
import threading

# Those of `signal` convert numbers to enumerations: ten times as long, in every turn of the networking.
from _signal import getsignal as handler_of  # type: ignore[import-not-found]
from _signal import signal as set_handler
from collections.abc import Callable
from types import FrameType

HELD = (signal.SIGINT, signal.SIGTERM)

Handler = Callable[[int, FrameType | None], object]


class HeldSignals:
    """Within it no handler runs; leaving it runs those of the signals that came. Not to be entered twice.

    Handlers are the main thread's: in any other there is nothing to hold back.
    """

    __slots__ = ("_before", "_came")

    def __init__(self) -> None:
        self._before: list[tuple[int, Handler]] = []
        self._came: list[tuple[int, FrameType | None]] = []

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        try:
            for number in HELD:
                handler = handler_of(number)
                if callable(handler):
                    self._before.append((number, handler))
                    set_handler(number, self._hold)
        except BaseException:  # by the handler of the second, before that was replaced
            self._restore(self._before)
            raise

    def __exit__(self, *_: object) -> None:
        if self._before:
            self._restore(self._before)
            for number, frame in self._came:
                dict(self._before)[number](number, frame)

    def _hold(self, number: int, frame: FrameType | None) -> None:
        self._came.append((number, frame))

    def _restore(self, handlers: list[tuple[int, Handler]]) -> None:
        """All of them, even if one runs as soon as it is back, and raises."""
        if handlers:
            try:
                set_handler(*handlers[0])
            finally:
                self._restore(handlers[1:])
