"""The clients of the REST proxy: one producer, one admin client, and the threads on which blocking calls run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from kafkapy.client import AsyncProducer, RecordMetadata
from kafkapy.client.admin import Admin, TopicDescription
from kafkapy.errors import ConfigError, KafkapyError
from kafkapy.rest import errors

Result = TypeVar("Result")
# Key, value, partition, timestamp in ms, headers.
Record = tuple[bytes | None, bytes | None, int | None, int | None, list[tuple[str, bytes | None]] | None]
_THREADS = 16


class ClusterClients:
    """The clients of one cluster. The asynchronous methods are called by the event loop's thread.

    Requests to consumers may wait for records. They therefore run on threads of their own. There are `most_consumers`
    of these threads, one for each consumer instance that the proxy may have.
    """

    def __init__(
        self, producer: Mapping[str, str], admin: Mapping[str, str], *, most_consumers: int, describe_s: float = 30.0
    ) -> None:
        self.admin = Admin(admin)
        self._producer_properties = dict(producer)
        self._producer: AsyncProducer | None = None
        self._threads = ThreadPoolExecutor(_THREADS, "rest")
        self._consumer_threads = ThreadPoolExecutor(most_consumers, "rest-consumer")
        # Descriptions of topics to which records are produced, with the time until which they count.
        self._described: dict[str, tuple[float, TopicDescription]] = {}
        self._describe_s = describe_s

    async def run(self, operation: Callable[[], Result]) -> Result:
        """Runs a blocking call on a thread. Raises RequestRefused for an error of the cluster."""
        return await self._on(self._threads, operation)

    async def run_consumer(self, operation: Callable[[], Result]) -> Result:
        """Runs a call that may wait for records, on one of the threads for consumers.

        Raises RequestRefused for an error of the cluster.
        """
        return await self._on(self._consumer_threads, operation)

    @staticmethod
    async def _on(executor: ThreadPoolExecutor, operation: Callable[[], Result]) -> Result:
        try:
            return await asyncio.get_running_loop().run_in_executor(executor, operation)
        except ConfigError:
            raise
        except KafkapyError as error:
            raise errors.of_cluster(error) from None

    async def describe(self, topic: str, *, is_fresh: bool = False) -> TopicDescription:
        """Returns the description of a topic. Unless `is_fresh`, the description may be up to `describe_s` seconds old.

        Raises RequestRefused if the topic does not exist.
        """
        now_s = asyncio.get_running_loop().time()
        found = self._described.get(topic)
        if found is None or found[0] < now_s or is_fresh:
            description = await self.run(lambda: self.admin.describe_topics([topic])[topic])
            if len(self._described) >= 10_000:
                self._described.clear()
            found = self._described[topic] = (now_s + self._describe_s, description)
        return found[1]

    async def has_partition(self, topic: str, number: int) -> bool:
        """Returns whether a topic has the partition `number`, which may have been added since its last description.

        Raises RequestRefused if the topic does not exist.
        """
        if number < 0:
            return False
        if number < len((await self.describe(topic)).partitions):
            return True
        return number < len((await self.describe(topic, is_fresh=True)).partitions)

    def forget(self, topic: str) -> None:
        """Removes the cached description of a topic."""
        self._described.pop(topic, None)

    async def produce(self, topic: str, records: Iterable[Record]) -> list[RecordMetadata | BaseException]:
        """Sends records, and waits until all are delivered or have failed.

        Returns the metadata of each record, or the exception with which it failed, in the order of the records.
        """
        if self._producer is None:
            self._producer = AsyncProducer({"linger.ms": "5", **self._producer_properties})
        producer = self._producer

        results: list[asyncio.Future[RecordMetadata]] = []
        for key, value, partition, timestamp, headers in records:  # one after the other, so that their order is kept
            try:
                results.append(
                    await producer.enqueue(topic, value, key, partition=partition, timestamp=timestamp, headers=headers)
                )
            except (KafkapyError, ValueError) as error:
                failed: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
                failed.set_exception(error)
                results.append(failed)
        return await asyncio.gather(*results, return_exceptions=True)

    async def close(self) -> None:
        """Sends the records that wait to be sent, and closes the clients and the threads."""
        if self._producer is not None:
            await self._producer.close(10)
        await asyncio.to_thread(self.admin.close)
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._consumer_threads.shutdown(wait=False, cancel_futures=True)
