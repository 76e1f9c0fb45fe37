"""AIOConsumer and AsyncDeserializingConsumer of confluent-kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Self

from kafkapy.compat.confluent_kafka._consumer import Consumer
from kafkapy.compat.confluent_kafka._records import Message
from kafkapy.compat.confluent_kafka._serdes import awaited, close_serdes, offer_cluster_id, take_serdes
from kafkapy.compat.confluent_kafka.aio._loop import in_executor, on_loop, with_callbacks_on_loop
from kafkapy.compat.confluent_kafka.error import ConsumeError, KeyDeserializationError, ValueDeserializationError
from kafkapy.compat.confluent_kafka.serialization import MessageField, SerializationContext

_REBALANCE_CALLBACKS = ("on_assign", "on_revoke", "on_lost")


class AIOConsumer:
    """A consumer for asyncio: every method of Consumer as a coroutine, which runs on a thread of an executor.

    Callbacks run on the event loop and may be coroutines. It must be created within a running loop. Raises ValueError
    for `max_workers` below 1.
    """

    def __init__(self, consumer_conf: dict[str, Any], max_workers: int = 100, executor: Executor | None = None) -> None:
        if executor is None and max_workers < 1:
            raise ValueError("max_workers must be at least 1")
        self._closed = False
        self._owns_executor = executor is None
        self.executor = executor or ThreadPoolExecutor(max_workers, thread_name_prefix="kafkapy-aio")
        loop = asyncio.get_running_loop()
        self._consumer = Consumer(with_callbacks_on_loop(loop, consumer_conf))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _call(self, call: Any, *args: Any, **kwargs: Any) -> Any:
        if self._closed:
            raise RuntimeError("Consumer closed")
        return await in_executor(self.executor, call, *args, **kwargs)

    async def poll(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the next message; see `Consumer.poll`."""
        return await self._call(self._consumer.poll, *args, **kwargs)

    async def consume(self, *args: Any, **kwargs: Any) -> Any:
        """Returns several messages; see `Consumer.consume`."""
        return await self._call(self._consumer.consume, *args, **kwargs)

    async def subscribe(self, *args: Any, **kwargs: Any) -> Any:
        """Subscribes to topics; see `Consumer.subscribe`. The callbacks receive this consumer."""
        loop = asyncio.get_running_loop()
        for name in _REBALANCE_CALLBACKS:
            if kwargs.get(name) is not None:
                kwargs[name] = on_loop(loop, kwargs[name], first=self)
        return await self._call(self._consumer.subscribe, *args, **kwargs)

    async def unsubscribe(self, *args: Any, **kwargs: Any) -> Any:
        """Drops the subscription; see `Consumer.unsubscribe`."""
        return await self._call(self._consumer.unsubscribe, *args, **kwargs)

    async def commit(self, *args: Any, **kwargs: Any) -> Any:
        """Commits offsets; see `Consumer.commit`."""
        return await self._call(self._consumer.commit, *args, **kwargs)

    async def close(self, *args: Any, **kwargs: Any) -> Any:
        """Closes the consumer, and its executor if it has made it."""
        try:
            return await self._call(self._consumer.close, *args, **kwargs)
        finally:
            self._closed = True
            if self._owns_executor:
                self.executor.shutdown(wait=False)

    async def seek(self, *args: Any, **kwargs: Any) -> Any:
        """Sets a position; see `Consumer.seek`."""
        return await self._call(self._consumer.seek, *args, **kwargs)

    async def pause(self, *args: Any, **kwargs: Any) -> Any:
        """Pauses partitions; see `Consumer.pause`."""
        return await self._call(self._consumer.pause, *args, **kwargs)

    async def resume(self, *args: Any, **kwargs: Any) -> Any:
        """Resumes partitions; see `Consumer.resume`."""
        return await self._call(self._consumer.resume, *args, **kwargs)

    async def store_offsets(self, *args: Any, **kwargs: Any) -> Any:
        """Stores offsets; see `Consumer.store_offsets`."""
        return await self._call(self._consumer.store_offsets, *args, **kwargs)

    async def committed(self, *args: Any, **kwargs: Any) -> Any:
        """Returns committed offsets; see `Consumer.committed`."""
        return await self._call(self._consumer.committed, *args, **kwargs)

    async def assign(self, *args: Any, **kwargs: Any) -> Any:
        """Assigns partitions; see `Consumer.assign`."""
        return await self._call(self._consumer.assign, *args, **kwargs)

    async def unassign(self, *args: Any, **kwargs: Any) -> Any:
        """Stops reading all partitions; see `Consumer.unassign`."""
        return await self._call(self._consumer.unassign, *args, **kwargs)

    async def incremental_assign(self, *args: Any, **kwargs: Any) -> Any:
        """Assigns further partitions; see `Consumer.incremental_assign`."""
        return await self._call(self._consumer.incremental_assign, *args, **kwargs)

    async def incremental_unassign(self, *args: Any, **kwargs: Any) -> Any:
        """Stops reading partitions; see `Consumer.incremental_unassign`."""
        return await self._call(self._consumer.incremental_unassign, *args, **kwargs)

    async def assignment(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the assigned partitions; see `Consumer.assignment`."""
        return await self._call(self._consumer.assignment, *args, **kwargs)

    async def position(self, *args: Any, **kwargs: Any) -> Any:
        """Returns positions; see `Consumer.position`."""
        return await self._call(self._consumer.position, *args, **kwargs)

    async def consumer_group_metadata(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the membership in the group; see `Consumer.consumer_group_metadata`."""
        return await self._call(self._consumer.consumer_group_metadata, *args, **kwargs)

    async def set_sasl_credentials(self, *args: Any, **kwargs: Any) -> Any:
        """Replaces the credentials; see `Consumer.set_sasl_credentials`."""
        return await self._call(self._consumer.set_sasl_credentials, *args, **kwargs)

    async def list_topics(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the brokers and topics; see `Consumer.list_topics`."""
        return await self._call(self._consumer.list_topics, *args, **kwargs)

    async def cluster_id(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the id of the cluster; see `Consumer.cluster_id`."""
        return await self._call(self._consumer.cluster_id, *args, **kwargs)

    async def get_watermark_offsets(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the first and the end offset; see `Consumer.get_watermark_offsets`."""
        return await self._call(self._consumer.get_watermark_offsets, *args, **kwargs)

    async def offsets_for_times(self, *args: Any, **kwargs: Any) -> Any:
        """Looks up offsets by timestamps; see `Consumer.offsets_for_times`."""
        return await self._call(self._consumer.offsets_for_times, *args, **kwargs)


class AsyncDeserializingConsumer(AIOConsumer):
    """An AIOConsumer with deserializers, which may be coroutines: `await AsyncDeserializingConsumer(conf)`."""

    def __init__(self, conf: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        serdes = take_serdes(conf, "key.deserializer", "value.deserializer")
        self._key_deserializer, self._value_deserializer = serdes.key, serdes.value
        self._owned_serdes = serdes.owned
        super().__init__(serdes.conf, *args, **kwargs)
        offer_cluster_id(serdes, self.cluster_id)

    def __await__(self) -> Generator[Any, None, Self]:
        """Returns the consumer, which needs no further initialization."""
        yield from ()  # makes this function a generator
        return self

    async def poll(self, timeout: float = -1) -> Message | None:
        """Returns the next message with the deserialized key and value, or None after `timeout` seconds.

        Raises ConsumeError for an event, KeyDeserializationError and ValueDeserializationError.
        """
        message: Message | None = await super().poll(timeout)
        if message is None:
            return None
        error = message.error()
        if error is not None:
            raise ConsumeError(error, kafka_message=message)
        return await self._deserialize(message)

    async def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Returns several messages with deserialized keys and values; those with an error are unchanged."""
        messages = await super().consume(num_messages, timeout)
        return [each if each.error() is not None else await self._deserialize(each) for each in messages]

    async def _deserialize(self, message: Message) -> Message:
        topic = message.topic()
        assert topic is not None
        context = SerializationContext(topic, MessageField.KEY, message.headers())
        key, value = message.key(), message.value()
        if self._key_deserializer is not None:
            try:
                key = await awaited(self._key_deserializer(key, context))
            except Exception as failure:
                raise KeyDeserializationError(failure, message) from failure
        if self._value_deserializer is not None:
            context.field = MessageField.VALUE
            try:
                value = await awaited(self._value_deserializer(value, context))
            except Exception as failure:
                raise ValueDeserializationError(failure, message) from failure
        message.set_key(key)
        message.set_value(value)
        return message

    async def close(self, *args: Any, **kwargs: Any) -> Any:
        """Closes the consumer and the deserializers that builders have made."""
        result = None if self._closed else await super().close(*args, **kwargs)
        close_serdes(self._owned_serdes)
        return result
