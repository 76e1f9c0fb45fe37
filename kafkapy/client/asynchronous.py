"""The producer and the consumers for asyncio.

Each wraps its synchronous counterpart. A call that would block runs on a thread of the event loop's executor. The
synchronous counterpart sends and receives on its own networking thread.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from kafkapy._core.client.fetched_records import ConsumerRecord
from kafkapy._core.client.record_accumulator import RecordMetadata
from kafkapy.client.acknowledgements import AcknowledgeType
from kafkapy.client.columnar import ArrowBatches
from kafkapy.client.consumer import Consumer, ConsumerRecords, Topics
from kafkapy.client.consumer_group import RebalanceListener
from kafkapy.client.coordinator import OffsetAndMetadata
from kafkapy.client.errors import WakeupError
from kafkapy.client.producer import Producer
from kafkapy.client.share_consumer import OnAcknowledged, Results, ShareConsumer
from kafkapy.types import TopicPartition

POLL_S = 1.0
Polled = TypeVar("Polled")


class AsyncProducer:
    """Sends records from an event loop; `await producer.send(...)` returns the record's RecordMetadata.

    Configured like `Producer`. It must be created and used within one running loop. `producer` is the wrapped Producer.
    """

    _producer_class = Producer

    def __init__(self, properties: Mapping[str, Any] | None = None, **settings: Any) -> None:
        self.producer = self._producer_class(properties, **settings)
        self._loop = asyncio.get_running_loop()

    async def send(self, topic: str, value: Any = None, key: Any = None, **more: Any) -> RecordMetadata:
        """Sends a record and waits for its delivery; `more` are the other arguments of `Producer.send`.

        Raises the error that the delivery has failed with: ApiError or RequestTimedOut.
        """
        return await (await self.enqueue(topic, value, key, **more))

    async def enqueue(
        self, topic: str, value: Any = None, key: Any = None, **more: Any
    ) -> asyncio.Future[RecordMetadata]:
        """Adds a record to its batch and returns the future of its delivery; `more` are the other arguments of
        `Producer.send`.

        Waits only while the topic is unknown or memory is short, at most `max.block.ms`.
        """
        delivered: asyncio.Future[RecordMetadata] = self._loop.create_future()

        def on_delivery(metadata: RecordMetadata | None, error: BaseException | None) -> None:
            self._loop.call_soon_threadsafe(_settle, delivered, metadata, error)

        if topic in self.producer.topics and self.producer.memory_used < self.producer.memory_limit // 2:
            self.producer.send(topic, value, key, on_delivery=on_delivery, **more)
        else:
            await asyncio.to_thread(self.producer.send, topic, value, key, on_delivery=on_delivery, **more)
        return delivered

    async def flush(self, timeout: float | None = None) -> bool:
        """Sends all records without lingering and waits until each is delivered or has failed.

        Returns whether this happened within `timeout` seconds (None: without a limit).
        """
        return await asyncio.to_thread(self.producer.flush, timeout)

    async def close(self, timeout: float | None = None) -> None:
        """Aborts an open transaction, delivers the remaining records, and closes the connections.

        The abort and the delivery wait up to `timeout` seconds each (None: five seconds for the abort, no limit for the
        delivery). Records that are not delivered by then fail with NETWORK_EXCEPTION.
        """
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


async def _poll_in_thread(
    consumer: Consumer | ShareConsumer,
    on_cancelled: Callable[[Polled], object],
    poll: Callable[..., Polled],
    timeout: float,
    **more: Any,
) -> Polled:
    """Runs `poll(timeout, **more)`, a method of `consumer`, on another thread and returns its result.

    If the task is cancelled, interrupts the poll by `consumer.wakeup`. If the poll has a result nevertheless, calls
    `on_cancelled(result)`, so that no record is lost.
    """
    waiting = asyncio.ensure_future(asyncio.to_thread(poll, timeout, **more))
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        consumer.wakeup()
        (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
        if not isinstance(outcome, WakeupError):
            consumer.forget_wakeup()
        if not isinstance(outcome, BaseException):
            on_cancelled(outcome)
        raise


class _AsyncReader(ABC):
    """The base class of AsyncConsumer and AsyncShareConsumer, with their common methods.

    `consumer` is the wrapped consumer, which a subclass sets.
    """

    consumer: Consumer | ShareConsumer

    @abstractmethod
    async def poll(self, timeout: float = 0.0) -> ConsumerRecords:
        """Returns the next records; waits up to `timeout` seconds while there are none."""

    async def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        """Yields the records of one poll after the other; never ends."""
        rest = self.consumer._unread
        while True:
            while rest:
                yield rest.pop()
            rest += reversed(await self.poll(POLL_S))

    async def close(self, timeout: float = 30.0) -> None:
        """Leaves the group and closes the connections; waits up to `timeout` seconds.

        Before that, commits the positions if auto-commit is on; a share consumer sends its acknowledgements instead.
        """
        await asyncio.to_thread(self.consumer.close, timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncConsumer(_AsyncReader):
    """Reads records from an event loop: `async for record in consumer`. Used by one task at a time.

    Configured like `Consumer`. `consumer` is the wrapped Consumer, for its methods that do not block (`seek`, `pause`,
    `assignment` and so on).
    """

    consumer: Consumer
    _consumer_class = Consumer

    def __init__(self, properties: Mapping[str, Any] | None = None, **settings: Any) -> None:
        self.consumer = self._consumer_class(properties, **settings)
        self._unreturned: list[ArrowBatches] = []

    def subscribe(self, topics: Topics, listener: RebalanceListener | None = None) -> None:
        """Subscribes to topics, which are names, one name, a compiled pattern, or a SubscriptionPattern.

        The methods of `listener` are called when partitions are revoked or assigned, on a thread of the loop's
        executor. Raises ConfigError without `group.id`, and SubscriptionError after `assign`.
        """
        self.consumer.subscribe(topics, listener)

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Assigns exactly these partitions, without a group. Raises SubscriptionError after `subscribe`."""
        self.consumer.assign(partitions)

    async def poll(self, timeout: float = 0.0) -> ConsumerRecords:
        """Returns the next records, at most `max.poll.records`; waits up to `timeout` seconds while there are none.

        A poll that is cancelled loses no record: its records are returned by the next one.
        """
        return await _poll_in_thread(self.consumer, self._seek_back, self.consumer.poll, timeout)

    async def poll_arrow(self, timeout: float = 0.0, **more: Any) -> ArrowBatches:
        """Returns the next records as Arrow record batches; waits up to `timeout` seconds while there are none.

        `more` are the keyword arguments `columns`, `max_rows` and `timestamp_unit` of `Consumer.poll_arrow`. The
        records of a poll that is cancelled are returned by the next one.
        """
        if self._unreturned:
            return self._unreturned.pop(0)
        return await _poll_in_thread(self.consumer, self._keep, self.consumer.poll_arrow, timeout, **more)

    def _keep(self, batches: ArrowBatches) -> None:
        if batches:
            self._unreturned.append(batches)

    def _seek_back(self, records: ConsumerRecords) -> None:
        assignment = self.consumer.assignment()
        for partition, of_partition in records.by_partition().items():
            if partition in assignment:
                self.consumer.seek(partition, of_partition[0].offset)

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | None = None, timeout: float | None = None
    ) -> None:
        """Commits the given offsets, or all positions if none are given, and waits until they are written.

        An offset is that of the next record to read. Raises ApiError if the group has rebalanced without this member.
        """
        await asyncio.to_thread(self.consumer.commit, offsets, timeout)


class AsyncShareConsumer(_AsyncReader):
    """Reads records of a share group from an event loop: `async for record in consumer`. Used by one task at a time.

    Configured like `ShareConsumer`. `consumer` is the wrapped ShareConsumer, for its methods that do not block.
    """

    consumer: ShareConsumer
    _consumer_class = ShareConsumer

    def __init__(self, properties: Mapping[str, Any] | None = None, **settings: Any) -> None:
        self.consumer = self._consumer_class(properties, **settings)

    def subscribe(self, topics: Iterable[str] | str) -> None:
        """Subscribes to these topics, or to one topic, instead of the previous ones. Raises ValueError if there is no
        topic.
        """
        names = [topics] if isinstance(topics, str) else list(topics)
        if not names:
            raise ValueError("An empty subscription would block; await unsubscribe() instead")
        self.consumer.subscribe(names)

    async def unsubscribe(self) -> None:
        """Leaves the group and drops the subscription; waits for five seconds at most."""
        await asyncio.to_thread(self.consumer.unsubscribe)

    async def poll(self, timeout: float = 0.0) -> ConsumerRecords:
        """Returns the next records; waits up to `timeout` seconds while there are none.

        The records of a poll that is cancelled are returned by the next one.
        """
        return await _poll_in_thread(self.consumer, self._keep, self.consumer.poll, timeout)

    def _keep(self, records: ConsumerRecords) -> None:
        self.consumer._unread.extend(reversed(records))

    def acknowledge(self, record: ConsumerRecord, kind: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
        """Acknowledges a record of the last poll with this type; the next `poll` or `commit` sends it. Does not block.

        Raises AcknowledgementError in implicit mode, and for a record that the last poll did not return.
        """
        self.consumer.acknowledge(record, kind)

    def set_acknowledgement_commit_callback(self, callback: OnAcknowledged | None) -> None:
        """Sets the function that receives the results of acknowledgements; None for no function.

        `callback(offsets, error)` is called on a thread of the loop's executor, once for each partition of a request:
        `offsets` has the partition and its acknowledged offsets, and `error` is None after a success.
        """
        self.consumer.set_acknowledgement_commit_callback(callback)

    async def commit(self, timeout: float | None = None) -> Results:
        """Sends the acknowledgements and waits for their results; returns the error of each partition.

        The error is None after a success. Raises RequestTimedOut after `timeout` seconds.
        """
        return await asyncio.to_thread(self.consumer.commit, timeout)
