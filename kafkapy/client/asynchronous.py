"""The client for asyncio: the same producer and consumer, awaited.

The networking keeps its own thread; what waits does so on a thread of the loop's executor, and futures of deliveries
come back to the loop together.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from kafkapy._core.bytes.arrow_batch import ArrowBatch
from kafkapy._core.client.fetched_records import ConsumerRecord
from kafkapy._core.client.record_accumulator import RecordMetadata
from kafkapy.client.consumer import Consumer, ConsumerRecords, Topics
from kafkapy.client.coordinator import OffsetAndMetadata
from kafkapy.client.group import RebalanceListener
from kafkapy.client.network import WakeupError
from kafkapy.client.producer import Producer
from kafkapy.types import TopicPartition

POLL_S = 1.0
Polled = TypeVar("Polled")


class AsyncProducer:
    """`Producer` for an event loop: `await producer.send(...)` is the record's RecordMetadata.

    Made and used within the loop. `producer` is what it stands on.
    """

    def __init__(self, properties: Mapping[str, Any] | None = None, **settings: Any) -> None:
        self.producer = Producer(properties, **settings)
        self._loop = asyncio.get_running_loop()

    async def send(self, topic: str, value: Any = None, key: Any = None, **more: Any) -> RecordMetadata:
        """Sends a record and waits for its delivery; `more` as in `Producer.send`. Raises what it failed with."""
        return await (await self.enqueue(topic, value, key, **more))

    async def enqueue(
        self, topic: str, value: Any = None, key: Any = None, **more: Any
    ) -> asyncio.Future[RecordMetadata]:
        """Adds a record; the future of its delivery. Waits only while the topic is not known or memory is short."""
        delivered: asyncio.Future[RecordMetadata] = self._loop.create_future()

        def on_delivery(metadata: RecordMetadata | None, error: BaseException | None) -> None:
            self._loop.call_soon_threadsafe(_settle, delivered, metadata, error)

        if topic in self.producer.topics and self.producer.memory_used < self.producer.memory_limit // 2:
            self.producer.send(topic, value, key, on_delivery=on_delivery, **more)
        else:
            await asyncio.to_thread(self.producer.send, topic, value, key, on_delivery=on_delivery, **more)
        return delivered

    async def flush(self, timeout: float | None = None) -> bool:
        """As `Producer.flush`."""
        return await asyncio.to_thread(self.producer.flush, timeout)

    async def close(self, timeout: float | None = None) -> None:
        """As `Producer.close`."""
        await asyncio.to_thread(self.producer.close, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _settle(
    delivered: asyncio.Future[RecordMetadata], metadata: RecordMetadata | None, error: BaseException | None
) -> None:
    if delivered.cancelled():
        return
    if error is not None:
        delivered.set_exception(error)
    elif metadata is not None:
        delivered.set_result(metadata)


class AsyncConsumer:
    """`Consumer` for an event loop: `async for record in consumer`.  One task at a time.

    `consumer` is what it stands on: what does not wait (seek, pause, assignment, ...) is called there.
    """

    def __init__(self, properties: Mapping[str, Any] | None = None, **settings: Any) -> None:
        self.consumer = Consumer(properties, **settings)
        self._kept_batches: list[ArrowBatch] = []

    def subscribe(self, topics: Topics, listener: RebalanceListener | None = None) -> None:
        """As `Consumer.subscribe`; the listener is called on a thread of the executor."""
        self.consumer.subscribe(topics, listener)

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """As `Consumer.assign`."""
        self.consumer.assign(partitions)

    async def poll(self, timeout: float = 0.0) -> ConsumerRecords:
        """As `Consumer.poll`. What comes for a task that is cancelled meanwhile is read again by the next poll."""
        return await self._waiting(self._read_again, self.consumer.poll, timeout)

    async def poll_arrow(self, timeout: float = 0.0, **more: Any) -> list[ArrowBatch]:
        """As `Consumer.poll_arrow`, which says what `more` may be. What comes for a task that is cancelled meanwhile is
        given by the next."""
        if self._kept_batches:
            kept, self._kept_batches = self._kept_batches, []
            return kept
        return await self._waiting(self._kept_batches.extend, self.consumer.poll_arrow, timeout, **more)

    def _read_again(self, records: ConsumerRecords) -> None:
        assignment = self.consumer.assignment()
        for partition, of_partition in records.by_partition().items():
            if partition in assignment:
                self.consumer.seek(partition, of_partition[0].offset)

    async def _waiting(
        self, put_back: Callable[[Polled], object], poll: Callable[..., Polled], timeout: float, **more: Any
    ) -> Polled:
        """A poll on a thread; a task that is cancelled meanwhile wakes it and puts back what it got."""
        waiting = asyncio.ensure_future(asyncio.to_thread(poll, timeout, **more))
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            self.consumer.wakeup()
            (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
            if not isinstance(outcome, WakeupError):
                self.consumer.forget_wakeup()
            if not isinstance(outcome, BaseException):
                put_back(outcome)
            raise

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Records one by one, without end."""
        rest = self.consumer.iterated
        while True:
            while rest:
                yield rest.pop()
            rest += reversed(await self.poll(POLL_S))

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None, timeout: float | None = None
    ) -> None:
        """As `Consumer.commit`."""
        await asyncio.to_thread(self.consumer.commit, offsets, timeout)

    async def close(self, timeout: float = 30.0) -> None:
        """As `Consumer.close`."""
        await asyncio.to_thread(self.consumer.close, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
