"""Coroutines that run the blocking methods of another object on threads."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def coroutine_of(
    method: Callable[Concatenate[Any, Parameters], Result],
) -> Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]]:
    """Returns a coroutine function, for a class with coroutines, that runs the blocking `method` on a thread.

    The blocking object is `self._blocking`. The coroutine looks up its method by the name of `method`, so that a
    subclass of the blocking class can override the method, and awaits `self._call(found, arguments)`, where `found` is
    the bound method. The coroutine function has the name and the docstring of `method`.
    """
    name = method.__name__

    async def call(self: Any, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        found: Result = await self._call(getattr(self._blocking, name), *args, **kwargs)
        return found

    call.__name__, call.__doc__ = name, method.__doc__
    return call
