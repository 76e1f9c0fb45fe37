"""Coroutines that run the blocking methods of another object on threads."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def coroutine_of(
    method: Callable[Concatenate[Any, Parameters], Result],
) -> Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]]:
    """Returns a coroutine function, to be an attribute of a class, that calls `method` on a thread.

    The coroutine calls the method of the same name of `self._blocking`, which may be of a derived class that overrides
    the method, by `await self._call(bound method, arguments)`. It has the name and the docstring of `method`.
    """
    name = method.__name__

    async def call(self: Any, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        found: Result = await self._call(getattr(self._blocking, name), *args, **kwargs)
        return found

    call.__name__, call.__doc__ = name, method.__doc__
    return call
