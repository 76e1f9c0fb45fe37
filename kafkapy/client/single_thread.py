"""A check for objects that only one thread may use at a time: it refuses the calls of a second thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from kafkapy.client.errors import ConcurrentUse

P = ParamSpec("P")
R = TypeVar("R")


class SingleThread:
    """A context that only one thread can be in at a time. The thread in it may enter it again.

    When another thread enters it, ConcurrentUse is raised, with the text of Java's consumers. `name` is the name of the
    object's class in Java, for this text.
    """

    __slots__ = ("_lock", "_name", "_owner")

    def __init__(self, name: str = "KafkaConsumer") -> None:
        self._name = name
        self._lock = threading.RLock()
        self._owner = 0

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            thread = threading.current_thread()
            raise ConcurrentUse(
                f"{self._name} is not safe for multi-threaded access. "
                f"currentThread(name: {thread.name}, id: {thread.ident}) otherThread(id: {self._owner})"
            )
        self._owner = threading.get_ident()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


def by_one_thread(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Returns the method with a check: a call raises ConcurrentUse while another thread is in a method of the same
    object that has this check too.

    The object's attribute `_single_thread` must be a SingleThread.
    """

    @wraps(method)
    def checked(self: Any, /, *arguments: P.args, **named: P.kwargs) -> R:
        with self._single_thread:
            return method(self, *arguments, **named)

    return checked
