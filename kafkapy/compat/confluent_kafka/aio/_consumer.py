"""AIOConsumer and AsyncDeserializingConsumer of confluent-kafka."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from kafkapy.compat.confluent_kafka._consumer import Consumer
from kafkapy.compat.confluent_kafka._coroutines import coroutine_of
from kafkapy.compat.confluent_kafka._records import Message
from kafkapy.compat.confluent_kafka._serdes import awaited
from kafkapy.compat.confluent_kafka.aio._client import AioClient, SerdeClient
from kafkapy.compat.confluent_kafka.aio._loop import on_loop, with_callbacks_on_loop
from kafkapy.compat.confluent_kafka.error import ConsumeError, KeyDeserializationError, ValueDeserializationError
from kafkapy.compat.confluent_kafka.serialization import MessageField, SerializationContext

_REBALANCE_CALLBACKS = ("on_assign", "on_revoke", "on_lost")


class AIOConsumer(AioClient):
    """A consumer for asyncio: every method of Consumer as a coroutine, which runs on a thread of an executor.

    Callbacks run on the event loop and may be coroutines. The constructor raises RuntimeError without a running loop,
    and ValueError for `max_workers` below 1.
    """

    def __init__(self, consumer_conf: dict[str, Any], max_workers: int = 100, executor: Executor | None = None) -> None:
        if executor is None and max_workers < 1:
            raise ValueError("max_workers must be at least 1")
        self._closed = False
        self._owns_executor = executor is None
        self.executor = executor or ThreadPoolExecutor(max_workers, thread_name_prefix="kafkapy-aio")
        loop = asyncio.get_running_loop()
        self._blocking = Consumer(with_callbacks_on_loop(loop, consumer_conf))

    async def _call(self, call: Any, *args: Any, **kwargs: Any) -> Any:
        if self._closed:
            raise RuntimeError("Consumer closed")
        return await super()._call(call, *args, **kwargs)

    async def subscribe(self, *args: Any, **kwargs: Any) -> Any:
        """Subscribes to topics, with the arguments of `Consumer.subscribe`.

        The rebalance callbacks run on the event loop, and receive this consumer as their first argument.
        """
        loop = asyncio.get_running_loop()
        for name in _REBALANCE_CALLBACKS:
            if kwargs.get(name) is not None:
                kwargs[name] = on_loop(loop, kwargs[name], first=self)
        return await self._call(self._blocking.subscribe, *args, **kwargs)

    async def commit(self, *args: Any, **kwargs: Any) -> Any:
        """Commits offsets, with the arguments and the result of `Consumer.commit`."""
        return await self._call(self._blocking.commit, *args, **kwargs)

    async def close(self, *args: Any, **kwargs: Any) -> Any:
        """Closes the consumer, and its executor unless the program has passed the executor to the constructor."""
        try:
            return await self._call(self._blocking.close, *args, **kwargs)
        finally:
            self._closed = True
            if self._owns_executor:
                self.executor.shutdown(wait=False)

    poll = coroutine_of(Consumer.poll)
    consume = coroutine_of(Consumer.consume)
    unsubscribe = coroutine_of(Consumer.unsubscribe)
    seek = coroutine_of(Consumer.seek)
    pause = coroutine_of(Consumer.pause)
    resume = coroutine_of(Consumer.resume)
    store_offsets = coroutine_of(Consumer.store_offsets)
    committed = coroutine_of(Consumer.committed)
    assign = coroutine_of(Consumer.assign)
    unassign = coroutine_of(Consumer.unassign)
    incremental_assign = coroutine_of(Consumer.incremental_assign)
    incremental_unassign = coroutine_of(Consumer.incremental_unassign)
    assignment = coroutine_of(Consumer.assignment)
    position = coroutine_of(Consumer.position)
    consumer_group_metadata = coroutine_of(Consumer.consumer_group_metadata)
    set_sasl_credentials = coroutine_of(Consumer.set_sasl_credentials)
    list_topics = coroutine_of(Consumer.list_topics)
    cluster_id = coroutine_of(Consumer.cluster_id)
    get_watermark_offsets = coroutine_of(Consumer.get_watermark_offsets)
    offsets_for_times = coroutine_of(Consumer.offsets_for_times)


class AsyncDeserializingConsumer(SerdeClient, AIOConsumer):
    """An AIOConsumer that deserializes the keys and values of messages. The deserializers may be coroutine functions.

    A program makes and starts it by `await AsyncDeserializingConsumer(conf)`.
    """

    _properties = ("key.deserializer", "value.deserializer")

    def _start(self, conf: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        AIOConsumer.__init__(self, conf, *args, **kwargs)

    async def poll(self, timeout: float = -1) -> Message | None:
        """Returns the next message with the deserialized key and value, or None after `timeout` seconds.

        A `timeout` of -1 means no limit. Raises ConsumeError if the consumer reports an error or the end of a
        partition, and KeyDeserializationError or ValueDeserializationError if a deserializer fails.
        """
        message: Message | None = await super().poll(timeout)
        if message is None:
            return None
        error = message.error()
        if error is not None:
            raise ConsumeError(error, kafka_message=message)
        return await self._deserialize(message)

    async def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]:
        """Returns at most `num_messages` messages with deserialized keys and values, after at most `timeout` seconds.

        A timeout of -1 is without a limit. A message with an `error()` is returned without deserialization.
        """
        messages = await super().consume(num_messages, timeout)
        return [each if each.error() is not None else await self._deserialize(each) for each in messages]

    async def _deserialize(self, message: Message) -> Message:
        serdes, topic = self._required_serdes(), message.topic()
        assert topic is not None
        context = SerializationContext(topic, MessageField.KEY, message.headers())
        key, value = message.key(), message.value()
        if serdes.key is not None:
            try:
                key = await awaited(serdes.key(key, context))
            except Exception as failure:
                raise KeyDeserializationError(failure, message) from failure
        if serdes.value is not None:
            context.field = MessageField.VALUE
            try:
                value = await awaited(serdes.value(value, context))
            except Exception as failure:
                raise ValueDeserializationError(failure, message) from failure
        message.set_key(key)
        message.set_value(value)
        return message

    async def close(self, *args: Any, **kwargs: Any) -> Any:
        """Closes the consumer, and the deserializers that were made by builders in the configuration."""
        result = None if self._closed else await super().close(*args, **kwargs)
        await self._close_serdes()
        return result
