"""Coroutines that run the blocking methods of another object on threads."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def coroutine_of(
    method: Callable[Concatenate[Any, Parameters], Result],
) -> Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]]:
    """Returns a coroutine function with the name and description of a method.

    It is an attribute of a class whose `_blocking` has the method, and whose `_call` runs a function on a thread. The
    method is found by its name, so that a class derived from that of `_blocking` may override it.
    """
    name = method.__name__

    async def call(self: Any, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        found: Result = await self._call(getattr(self._blocking, name), *args, **kwargs)
        return found

    call.__name__, call.__doc__ = name, method.__doc__
    return call
