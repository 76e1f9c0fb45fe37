"""The future of kafka-python's `kafka.future`: a result or an exception, with callbacks and errbacks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Self

from kafkapy.compat.kafka.errors import RetriableError

log = logging.getLogger("kafkapy.compat.kafka")


class Future:
    """A result or an exception that may not exist yet. Thread-safe. An exception that a callback raises is logged."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_done = False
        self._value: Any = None
        self._exception: BaseException | None = None
        self._callbacks: list[Callable[[Any], object]] = []
        self._errbacks: list[Callable[[Any], object]] = []

    @property
    def is_done(self) -> bool:
        """Returns whether there is a result or an exception."""
        return self._is_done

    @property
    def value(self) -> Any:
        """The result; None while there is none, and after a failure."""
        return self._value

    @property
    def exception(self) -> Any:
        """The exception of a failure; None otherwise."""
        return self._exception

    def succeeded(self) -> bool:
        """Returns whether there is a result."""
        return self.is_done and self.exception is None

    def failed(self) -> bool:
        """Returns whether there is an exception."""
        return self.is_done and self.exception is not None

    def retriable(self) -> bool:
        """Returns whether there is an exception after which the same call may succeed."""
        return self.is_done and isinstance(self.exception, RetriableError)

    def success(self, value: Any) -> Self:
        """Sets the result and calls the callbacks."""
        with self._lock:
            self._value, self._is_done = value, True
            called, self._callbacks, self._errbacks = self._callbacks, [], []
        for each in called:
            call(each, value)
        return self

    def failure(self, e: Any) -> Self:
        """Sets the exception, which may be a class of exceptions, and calls the errbacks."""
        error = e() if isinstance(e, type) else e
        if not isinstance(error, BaseException):
            raise TypeError("a future fails with an exception")
        with self._lock:
            self._exception, self._is_done = error, True
            called, self._callbacks, self._errbacks = self._errbacks, [], []
        for each in called:
            call(each, error)
        return self

    def add_callback(self, f: Callable[..., object], *args: Any, **kwargs: Any) -> Self:
        """Registers `f(*args, result, **kwargs)`, which is called at once if the result exists."""
        bound = partial(f, *args, **kwargs) if args or kwargs else f
        with self._lock:
            if not self._is_done:
                self._callbacks.append(bound)
                return self
        if self._exception is None:
            call(bound, self._value)
        return self

    def add_errback(self, f: Callable[..., object], *args: Any, **kwargs: Any) -> Self:
        """Registers `f(*args, exception, **kwargs)`, which is called at once if the exception exists."""
        bound = partial(f, *args, **kwargs) if args or kwargs else f
        with self._lock:
            if not self._is_done:
                self._errbacks.append(bound)
                return self
        if self._exception is not None:
            call(bound, self._exception)
        return self

    def add_both(self, f: Callable[..., object], *args: Any, **kwargs: Any) -> Self:
        """Registers `f` as callback and as errback, so that it is called with the result or the exception.

        The call is `f(*args, result or exception, **kwargs)`.
        """
        return self.add_callback(f, *args, **kwargs).add_errback(f, *args, **kwargs)

    def chain(self, future: Future) -> Self:
        """Passes the result or the exception to another future."""
        return self.add_callback(future.success).add_errback(future.failure)


def call(callback: Callable[[Any], object], argument: Any) -> None:
    """Calls a callback; logs an exception that it raises."""
    try:
        callback(argument)
    except Exception:
        log.exception("A callback failed")
