"""AIOProducer and AsyncSerializingProducer of confluent-kafka."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from kafkapy.compat.confluent_kafka._coroutines import coroutine_of
from kafkapy.compat.confluent_kafka._errors import KafkaError, KafkaException
from kafkapy.compat.confluent_kafka._producer import Producer
from kafkapy.compat.confluent_kafka._records import Headers, Message
from kafkapy.compat.confluent_kafka._serdes import awaited
from kafkapy.compat.confluent_kafka.aio._client import AioClient, SerdeClient
from kafkapy.compat.confluent_kafka.aio._loop import with_callbacks_on_loop
from kafkapy.compat.confluent_kafka.error import KeySerializationError, ValueSerializationError
from kafkapy.compat.confluent_kafka.serialization import MessageField, SerializationContext

# While the queue is full, records are tried again after this pause.
_PAUSE_WHEN_FULL_S = 0.01
# The longest time between a delivery and the result of its future, while records are outstanding.
_REPORTS_INTERVAL_S = 0.1


class AIOProducer(AioClient):
    """A producer for asyncio: `produce` returns a future of the delivered Message.

    The inner Producer batches the records by `linger.ms`; `batch_size` and `buffer_timeout` have no effect. Callbacks
    run on the event loop and may be coroutines. The constructor raises RuntimeError without a running loop.
    """

    def __init__(
        self,
        producer_conf: dict[str, Any],
        max_workers: int = 4,
        executor: Executor | None = None,
        batch_size: int = 1000,
        buffer_timeout: float = 1.0,
    ) -> None:
        if batch_size < 1:
            raise ValueError("batch_size must be at least 1")
        self.executor = executor or ThreadPoolExecutor(max_workers, thread_name_prefix="kafkapy-aio")
        self._loop = asyncio.get_running_loop()
        self._blocking = Producer(with_callbacks_on_loop(self._loop, producer_conf))
        self._is_closed = False
        self._reports: asyncio.Task[None] | None = None

    async def produce(
        self, topic: str, value: Any = None, key: Any = None, *args: Any, **kwargs: Any
    ) -> asyncio.Future[Message]:
        """Adds a record and returns the future of its delivery. The future's result is the Message.

        `kwargs` may have `partition` and `timestamp`; headers raise NotImplementedError. Waits only while the queue is
        full. The future raises KafkaException if the delivery fails.
        """
        if self._is_closed:
            raise RuntimeError("Producer has been closed")
        if kwargs.get("headers") is not None:
            raise NotImplementedError("Headers are not supported in AIOProducer, as in confluent-kafka")
        delivered: asyncio.Future[Message] = self._loop.create_future()

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            self._loop.call_soon_threadsafe(_settle, delivered, error, message)

        while True:
            try:
                self._blocking.produce(
                    topic,
                    value,
                    key,
                    kwargs.get("partition", -1),
                    on_delivery=on_delivery,
                    timestamp=kwargs.get("timestamp", 0),
                )
                break
            except BufferError:
                await asyncio.sleep(_PAUSE_WHEN_FULL_S)
        if self._reports is None or self._reports.done():
            self._reports = self._loop.create_task(self._serve_reports())
        return delivered

    async def _serve_reports(self) -> None:
        """Polls the producer as long as records are outstanding, so that their futures get results."""
        while len(self._blocking) and not self._is_closed:
            await self._call(self._blocking.poll, _REPORTS_INTERVAL_S)

    async def poll(self, timeout: float = 0, *args: Any, **kwargs: Any) -> int:
        """Calls the callbacks of delivered records and other events, as `Producer.poll` does, and returns their number.

        Waits for an event for at most `timeout` seconds.
        """
        served: int = await self._call(self._blocking.poll, timeout, *args, **kwargs)
        return served

    async def begin_transaction(self, *args: Any, **kwargs: Any) -> Any:
        """Waits until all records are delivered, and begins a transaction."""
        await self.flush()
        return await self._call(self._blocking.begin_transaction, *args, **kwargs)

    async def commit_transaction(self, *args: Any, **kwargs: Any) -> Any:
        """Waits until all records are delivered, and commits the transaction.

        The arguments are those of `Producer.commit_transaction`.
        """
        await self.flush()
        return await self._call(self._blocking.commit_transaction, *args, **kwargs)

    async def abort_transaction(self, *args: Any, **kwargs: Any) -> Any:
        """Waits until all records are delivered or have failed, and aborts the transaction.

        The arguments are those of `Producer.abort_transaction`.
        """
        await self.flush()
        return await self._call(self._blocking.abort_transaction, *args, **kwargs)

    async def close(self) -> None:
        """Delivers the remaining records, and closes the producer and its executor."""
        if self._is_closed:
            return
        await self.flush()
        self._is_closed = True
        await self._call(self._blocking.close)
        self.executor.shutdown(wait=False)

    def __len__(self) -> int:
        return 0 if self._is_closed else len(self._blocking)

    flush = coroutine_of(Producer.flush)
    purge = coroutine_of(Producer.purge)
    list_topics = coroutine_of(Producer.list_topics)
    cluster_id = coroutine_of(Producer.cluster_id)
    init_transactions = coroutine_of(Producer.init_transactions)
    send_offsets_to_transaction = coroutine_of(Producer.send_offsets_to_transaction)
    set_sasl_credentials = coroutine_of(Producer.set_sasl_credentials)


class AsyncSerializingProducer(SerdeClient, AIOProducer):
    """An AIOProducer that serializes the keys and values of messages. The serializers may be coroutine functions.

    A program makes and starts it by `await AsyncSerializingProducer(conf)`.
    """

    _properties = ("key.serializer", "value.serializer")

    def _start(self, conf: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        AIOProducer.__init__(self, conf, *args, **kwargs)

    async def produce(  # type: ignore[override]
        self,
        topic: str,
        key: Any = None,
        value: Any = None,
        partition: int = -1,
        timestamp: int = 0,
        headers: Headers | None = None,
    ) -> asyncio.Future[Message]:
        """Serializes a key and a value, adds the record, and returns the future of its delivery.

        Raises KeySerializationError and ValueSerializationError.
        """
        serdes = self._required_serdes()
        if self._is_closed:
            raise RuntimeError("Producer has been closed")
        if not isinstance(topic, str):
            raise TypeError(f"topic must be a str, not {type(topic).__name__}")
        context = SerializationContext(topic, MessageField.KEY, headers)
        if serdes.key is not None:
            try:
                key = await awaited(serdes.key(key, context))
            except Exception as error:
                raise KeySerializationError(error) from error
        context.field = MessageField.VALUE
        if serdes.value is not None:
            try:
                value = await awaited(serdes.value(value, context))
            except Exception as error:
                raise ValueSerializationError(error) from error
        return await super().produce(topic, value, key, partition=partition, timestamp=timestamp, headers=headers)

    async def close(self) -> None:
        """Closes the producer, and the serializers that were made by builders in the configuration."""
        await super().close()
        await self._close_serdes()


def _settle(delivered: asyncio.Future[Message], error: KafkaError | None, message: Message) -> None:
    if delivered.done():
        return
    if error is not None:
        delivered.set_exception(KafkaException(error))
    else:
        delivered.set_result(message)
