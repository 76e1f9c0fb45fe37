"""Calls between the threads of an executor and the event loop."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

_CALLBACKS = ("error_cb", "throttle_cb", "stats_cb", "on_commit")


class LoopLogger:
    """A logger for any thread: it passes the lines to another logger, which writes them on the event loop's thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop, logger: logging.Logger) -> None:
        self._loop = loop
        self._logger = logger

    def log(self, *args: Any, **kwargs: Any) -> None:
        """Passes the arguments to `log` of the wrapped logger, on the thread of the event loop. Does not block."""
        self._loop.call_soon_threadsafe(functools.partial(self._logger.log, *args, **kwargs))


def on_loop(loop: asyncio.AbstractEventLoop, callback: Callable[..., Any], first: Any = None) -> Callable[..., Any]:
    """Returns a function for the executor's threads that runs a callback on the event loop and waits for its result.

    The callback may be a coroutine function. If `first` is not None, it replaces the first argument of each call: the
    callback then receives the asyncio client instead of the blocking one.
    """

    async def run(*args: Any, **kwargs: Any) -> Any:
        if first is not None:
            args = (first, *args[1:])
        result = callback(*args, **kwargs)
        return await result if inspect.isawaitable(result) else result

    def call(*args: Any, **kwargs: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(run(*args, **kwargs), loop).result()

    return call


def with_callbacks_on_loop(loop: asyncio.AbstractEventLoop, conf: dict[str, Any]) -> dict[str, Any]:
    """Returns a copy of the configuration `conf` in which every callback and the logger run on the event loop."""
    found = dict(conf)
    for name in _CALLBACKS:
        if callable(found.get(name)):
            found[name] = on_loop(loop, found[name])
    if found.get("logger") is not None:
        found["logger"] = LoopLogger(loop, found["logger"])
    return found


async def in_executor(executor: Executor, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Runs a blocking function on a thread of the executor and returns its result."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(executor, functools.partial(call, *args, **kwargs))
