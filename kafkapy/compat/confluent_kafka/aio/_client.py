"""The common base of AIOProducer and AIOConsumer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator
from concurrent.futures import Executor
from typing import Any, Self

from kafkapy.compat.confluent_kafka._serdes import Serdes, close_serdes_awaited, offer_cluster_id, take_serdes_awaited
from kafkapy.compat.confluent_kafka.aio._loop import in_executor


class AioClient:
    """A client that runs the blocking methods of another client on the threads of an executor.

    An `async with` statement closes the client. The class does not derive from ABC, so that a program can
    derive a class with a metaclass of its own, as it can from confluent-kafka's classes. For this reason, only mypy
    checks that a subclass defines the abstract methods.
    """

    _blocking: Any
    executor: Executor

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @abstractmethod
    async def close(self) -> Any:
        """Closes the client."""

    async def _call(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return await in_executor(self.executor, call, *args, **kwargs)


class SerdeClient(AioClient):
    """A client with serializers or deserializers ("serdes"); it starts when awaited: `client = await Kind(conf)`.

    In a derived class `_properties` has two configuration keys: that of the key's serde and that of the value's serde.
    """

    _properties: tuple[str, str]
    cluster_id: Any

    def __init__(self, conf: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        self._given = (conf, args, kwargs)
        self._serdes: Serdes | None = None

    def __await__(self) -> Generator[Any, None, Self]:
        return self._made().__await__()

    async def __aenter__(self) -> Self:
        return await self

    async def _made(self) -> Self:
        """Removes the serdes from the configuration, and starts the client with the rest; returns this client.

        Does nothing if the client was started before.
        """
        if self._serdes is None:
            conf, args, kwargs = self._given
            serdes = await take_serdes_awaited(conf, *self._properties)
            try:
                self._start(serdes.conf, *args, **kwargs)
            except BaseException:
                await close_serdes_awaited(serdes.owned)
                raise
            self._serdes = serdes
            offer_cluster_id(serdes, self._blocking.cluster_id, self.cluster_id)
        return self

    @abstractmethod
    def _start(self, conf: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        """Starts the client with `conf`, the configuration without the serdes, and the constructor's arguments."""

    async def _call(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self._required_serdes()
        return await super()._call(call, *args, **kwargs)

    def _required_serdes(self) -> Serdes:
        if self._serdes is None:
            raise RuntimeError(f"{type(self).__name__} is not made: it must be awaited once, as in `await Kind(conf)`")
        return self._serdes

    async def _close_serdes(self) -> None:
        if self._serdes is not None:
            await close_serdes_awaited(self._serdes.owned)
