"""Coroutines that run the blocking methods of another object on threads."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def coroutine_of(
    method: Callable[Concatenate[Any, Parameters], Result],
) -> Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]]:
    """Returns a coroutine function that runs a blocking `method` on a thread, to be the attribute of an asyncio class.

    The coroutine takes the method with the same name from the object `self._blocking`, so that it also calls a method
    that overrides `method` there. It awaits `self._call(found, arguments)`, where `found` is the method that was taken.
    The coroutine function has the name and the docstring of `method`.
    """
    name = method.__name__

    async def call(self: Any, /, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        found: Result = await self._call(getattr(self._blocking, name), *args, **kwargs)
        return found

    call.__name__, call.__doc__ = name, method.__doc__
    return call
