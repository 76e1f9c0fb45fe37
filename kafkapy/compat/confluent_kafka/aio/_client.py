"""The common base of AIOProducer and AIOConsumer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, Self

from kafkapy.compat.confluent_kafka.aio._loop import in_executor


class AioClient:
    """A client that runs the blocking methods of another client on the threads of an executor.

    An `async with` statement closes it.
    """

    _blocking: Any
    executor: Executor

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> Any:
        """Closes the client."""
        raise NotImplementedError

    async def _call(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await in_executor(self.executor, call, *args, **kwargs)
