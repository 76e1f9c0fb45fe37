"""Serializers and deserializers with coroutines.

Requests to the registry run on threads, everything else on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, ClassVar, Self

from kafkapy.compat.confluent_kafka.schema_registry._async_client import AsyncSchemaRegistryClient
from kafkapy.compat.confluent_kafka.schema_registry._serde import (
    BaseDeserializer,
    BaseSerde,
    BaseSerializer,
    remember_key,
)
from kafkapy.compat.confluent_kafka.schema_registry._subjects import from_threads
from kafkapy.compat.confluent_kafka.serialization import SerializationContext


class AsyncBaseSerde:
    """The base of the serializers and deserializers with coroutines, which are made by `await Kind(...)`.

    The arguments are those of `_kind`, the corresponding class without coroutines, but with an
    AsyncSchemaRegistryClient.
    """

    _kind: ClassVar[Callable[..., BaseSerde]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        clients = [each for each in (*args, *kwargs.values()) if isinstance(each, AsyncSchemaRegistryClient)]
        self._client = clients[0] if clients else None
        self._owns_client = False
        self._args = tuple(map(_blocking, args))
        self._kwargs = {name: _blocking(value) for name, value in kwargs.items()}
        self._made: BaseSerde | None = None

    def __await__(self) -> Generator[Any, None, Self]:
        return self._make().__await__()

    async def _make(self) -> Self:
        if self._made is None:
            self._made = await asyncio.to_thread(type(self)._kind, *self._args, **self._kwargs)
        return self

    def _required(self) -> Any:
        if self._made is None:
            raise RuntimeError(f"{type(self).__name__} is not made: it must be awaited once, as in `await Kind(...)`")
        return self._made

    def configure_subject_name_strategy(self, *args: Any, **kwargs: Any) -> None:
        """Sets the strategy that names subjects; takes the arguments of `BaseSerde.configure_subject_name_strategy`.

        These are the name of a strategy, its configuration, and a function to call instead of the strategy.
        """
        self._required().configure_subject_name_strategy(*args, **kwargs)

    def configure_validation_rules(self, conf: dict[str, Any]) -> None:
        """Removes the keys of validation rules from `conf` and applies their values.

        The keys are `validation.rules.execution`, `validation.rules.fail.fast` and `validation.rules.executor`. Raises
        ValueError for an invalid value.
        """
        self._required().configure_validation_rules(conf)

    def own_schema_registry_client(self) -> None:
        """Makes `aclose` close the registry's client too."""
        self._owns_client = True

    def set_async_cluster_id_resolver(self, resolver: Callable[[], Awaitable[str]]) -> None:
        """Sets the coroutine function that returns the id of the cluster. Raises RuntimeError without a running loop.

        It is called when a subject is looked up by the strategy ASSOCIATED.
        """
        self._required().set_cluster_id_resolver(from_threads(resolver))

    async def aclose(self) -> None:
        """Closes the executors and actions of rules, and the schema registry's client if the serde owns it.

        Executors and actions in the global registry of rules are not closed. The serde owns the client after a call of
        `own_schema_registry_client`.
        """
        if self._made is not None:
            await asyncio.to_thread(self._made.close)
        if self._owns_client and self._client is not None:
            self._owns_client = False
            await self._client.aclose()


class AsyncBaseSerializer(AsyncBaseSerde):
    """The base of the serializers with coroutines; requests to the registry run on threads."""

    async def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        """Serializes `obj` and returns the bytes: the schema's id, and the data. Returns None for None."""
        serializer: BaseSerializer = self._required()
        try:
            if obj is None:
                return None
            writing = serializer.known_writing(ctx)
            if writing is None:
                writing = await asyncio.to_thread(serializer.writing, ctx)
            return serializer.write(obj, ctx, writing)
        finally:
            remember_key(ctx, obj)


class AsyncBaseDeserializer(AsyncBaseSerde):
    """The base of the deserializers with coroutines; requests to the registry run on threads."""

    async def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        """Deserializes `value`, which is the schema's id and the data; returns the object, or None for None.

        Raises SerializationError if the data do not fit the schema or a rule fails, SchemaRegistryError if the registry
        refuses a request, and OSError if the registry cannot be reached.
        """
        deserializer: BaseDeserializer = self._required()
        try:
            if value is None:
                return None
            return deserializer.read(ctx, await asyncio.to_thread(deserializer.reading, value, ctx), value)
        finally:
            remember_key(ctx, value)


def _blocking(value: Any) -> Any:
    return value.blocking if isinstance(value, AsyncSchemaRegistryClient) else value
