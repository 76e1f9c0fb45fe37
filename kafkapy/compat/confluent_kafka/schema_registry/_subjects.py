"""The strategies that name the subjects of schemas."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from kafkapy.client.schema.bounded_cache import BoundedCache
from kafkapy.client.schema.serde import CACHE_SIZE
from kafkapy.compat.confluent_kafka.schema_registry._model import SchemaReference
from kafkapy.compat.confluent_kafka.schema_registry.error import SchemaRegistryError
from kafkapy.compat.confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

if TYPE_CHECKING:
    from kafkapy.compat.confluent_kafka.schema_registry._async_client import AsyncSchemaRegistryClient
    from kafkapy.compat.confluent_kafka.schema_registry._client import SchemaRegistryClient

KAFKA_CLUSTER_ID = "subject.name.strategy.kafka.cluster.id"
FALLBACK_TYPE = "subject.name.strategy.fallback.type"
_ANY_CLUSTER = "-"


def topic_subject_name_strategy(ctx: SerializationContext | None, record_name: str | None) -> str | None:
    """Returns the topic with "-key" or "-value" appended; `ctx.field` selects one of the two. Never returns None.

    `record_name` has no effect. Raises ValueError without a context.
    """
    context = _required(ctx)
    return f"{context.topic}-{context.field}"


def topic_record_subject_name_strategy(ctx: SerializationContext | None, record_name: str | None) -> str | None:
    """Returns the topic and `record_name`, the full name of the schema's type, with a hyphen between them.

    Returns None if the type has no name. Raises ValueError without a context, which has the topic.
    """
    context = _required(ctx)
    return None if record_name is None else f"{context.topic}-{record_name}"


def record_subject_name_strategy(ctx: SerializationContext | None, record_name: str | None) -> str | None:
    """Returns `record_name`, the full name of the schema's type; None if the type has no name."""
    return record_name


def reference_subject_name_strategy(ctx: SerializationContext | None, schema_ref: SchemaReference) -> str | None:
    """Returns the name of a reference as the subject; None if `schema_ref` is None. `ctx` has no effect."""
    return None if schema_ref is None else schema_ref.name


def _required(ctx: SerializationContext | None) -> SerializationContext:
    if ctx is None:
        raise ValueError("SerializationContext is required for this subject name strategy")
    return ctx


class SubjectNameStrategyType(str, Enum):  # noqa: UP042 - the base that confluent-kafka has
    """The names of the strategies in a configuration."""

    NONE = "NONE"
    TOPIC = "TOPIC"
    RECORD = "RECORD"
    TOPIC_RECORD = "TOPIC_RECORD"
    ASSOCIATED = "ASSOCIATED"


STRATEGY_TYPE_MAP: dict[SubjectNameStrategyType, Callable[[SerializationContext | None, str | None], str | None]] = {
    SubjectNameStrategyType.TOPIC: topic_subject_name_strategy,
    SubjectNameStrategyType.RECORD: record_subject_name_strategy,
    SubjectNameStrategyType.TOPIC_RECORD: topic_record_subject_name_strategy,
}


def strategy_type(key: str, value: Any) -> SubjectNameStrategyType:
    """Returns the strategy with the name `value`.

    Raises ValueError for an unknown name. The text of the error contains `key`, the configuration key.
    """
    try:
        text = value.value if isinstance(value, SubjectNameStrategyType) else str(value).upper()
        return SubjectNameStrategyType(text)
    except ValueError:
        names = ", ".join(SubjectNameStrategyType.__members__)
        raise ValueError(f"Invalid value for {key}: {value}. Valid values are: {names}") from None


class AssociatedNameStrategy:
    """The strategy that asks the registry for the subject that is associated with a topic. Any thread may use it.

    The found names are cached. If there is no association, or the registry does not know associations, the strategy of
    `subject.name.strategy.fallback.type` names the subject, by default TOPIC. `subject.name.strategy.kafka.cluster.id`
    limits the associations to those of one cluster.
    """

    def __init__(self, cache_capacity: int = CACHE_SIZE) -> None:
        self._names: BoundedCache[tuple[str, bool, str | None], str] = BoundedCache(cache_capacity)
        self._cluster_id: Callable[[], Any] | None = None

    def __call__(
        self,
        ctx: SerializationContext | None,
        record_name: str | None,
        schema_registry_client: SchemaRegistryClient | None,
        conf: Mapping[str, Any] | None = None,
    ) -> str | None:
        """Returns the subject of the keys or the values (`ctx.field`) of the topic `ctx.topic`.

        This is the subject that the registry associates with the topic, or, if there is none, the subject that the
        fallback strategy names (see the class). `record_name` is the full name of the schema's type; `conf` is the
        strategy's configuration. Returns None if the fallback strategy needs the type's name and the type has none.
        Raises ValueError without `ctx` and for an invalid fallback; SerializationError if the registry associates
        several subjects with the topic, or none while the fallback is NONE.
        """
        context = _required(ctx)
        is_key = context.field == MessageField.KEY
        name = self._names.get((context.topic, is_key, record_name))
        if name is None:
            name = self._find(context, record_name, schema_registry_client, conf or {})
            if name is not None:
                self._names.put((context.topic, is_key, record_name), name)
        return name

    def set_cluster_id_resolver(self, resolver: Callable[[], Any]) -> None:
        """Sets `resolver` as the function that returns the id of the Kafka cluster. It is called when a subject is
        looked up.
        """
        self._cluster_id = resolver

    def clear_cache(self) -> None:
        """Removes all names from the cache, so that they are looked up again."""
        self._names.clear()

    def _find(
        self,
        ctx: SerializationContext,
        record_name: str | None,
        client: SchemaRegistryClient | None,
        conf: Mapping[str, Any],
    ) -> str | None:
        if client is None:
            return topic_subject_name_strategy(ctx, record_name)
        fallback = strategy_type(FALLBACK_TYPE, conf.get(FALLBACK_TYPE) or "TOPIC")
        if fallback is SubjectNameStrategyType.ASSOCIATED:
            raise ValueError(f"{FALLBACK_TYPE} cannot be ASSOCIATED")
        part = "key" if ctx.field == MessageField.KEY else "value"
        try:
            found = client.get_associations_by_resource_name(ctx.topic, self._cluster(conf), "topic", [part], 0, -1)
        except SchemaRegistryError as error:
            if error.http_status_code != HTTPStatus.NOT_FOUND:
                raise
            found = []
        if len(found) > 1:
            raise SerializationError(f"Multiple associated subjects found for topic {ctx.topic}")
        if found:
            return found[0].subject
        if fallback is SubjectNameStrategyType.NONE:
            raise SerializationError(f"No associated subject found for topic {ctx.topic}")
        return STRATEGY_TYPE_MAP[fallback](ctx, record_name)

    def _cluster(self, conf: Mapping[str, Any]) -> str:
        if conf.get(KAFKA_CLUSTER_ID):
            return str(conf[KAFKA_CLUSTER_ID])
        if self._cluster_id is None:
            return _ANY_CLUSTER
        try:
            found = self._cluster_id()
        except Exception as error:  # what the program's function raises
            raise SerializationError(
                f"the id of the cluster is not known: {error}; {KAFKA_CLUSTER_ID} can name it"
            ) from error
        if not found:
            raise SerializationError(f"the id of the cluster is empty; {KAFKA_CLUSTER_ID} can name it")
        return str(found)


class AsyncAssociatedNameStrategy:
    """An AssociatedNameStrategy for asynchronous clients, which is awaited."""

    def __init__(self, cache_capacity: int = CACHE_SIZE) -> None:
        self.blocking = AssociatedNameStrategy(cache_capacity)

    async def __call__(
        self,
        ctx: SerializationContext | None,
        record_name: str | None,
        schema_registry_client: AsyncSchemaRegistryClient | None,
        conf: Mapping[str, Any] | None = None,
    ) -> str | None:
        """Returns the subject of the keys or the values (`ctx.field`) of the topic `ctx.topic`.

        This is the subject that the registry associates with the topic, or, if there is none, the subject that the
        fallback strategy names (see the class). `record_name` is the full name of the schema's type; `conf` is the
        strategy's configuration. Returns None if the fallback strategy needs the type's name and the type has none.
        Raises ValueError without `ctx` and for an invalid fallback; SerializationError if the registry associates
        several subjects with the topic, or none while the fallback is NONE.
        """
        client = None if schema_registry_client is None else schema_registry_client.blocking
        return await asyncio.to_thread(self.blocking, ctx, record_name, client, conf)

    def set_async_cluster_id_resolver(self, resolver: Callable[[], Awaitable[str]]) -> None:
        """Sets the coroutine function that returns the id of the cluster. Raises RuntimeError without a running loop.

        It is called when a subject is looked up.
        """
        self.blocking.set_cluster_id_resolver(from_threads(resolver))

    async def clear_cache(self) -> None:
        """Removes all names from the cache, so that they are looked up again."""
        self.blocking.clear_cache()


def from_threads(resolver: Callable[[], Awaitable[str]]) -> Callable[[], str]:
    """Returns a function that other threads call to run the coroutine `resolver()` on the current event loop.

    The function blocks and returns the coroutine's result. Raises RuntimeError if no event loop is running.
    """
    loop = asyncio.get_running_loop()

    async def resolved() -> str:
        return await resolver()

    return lambda: asyncio.run_coroutine_threadsafe(resolved(), loop).result()
