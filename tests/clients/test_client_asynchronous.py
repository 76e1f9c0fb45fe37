"""Our client in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kafkapy.client import AsyncConsumer, AsyncProducer

NewTopic = Callable[[int], str]


def test_awaited(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(1)

    async def run() -> list[int]:
        async with AsyncProducer(bootstrap_servers=bootstrap) as producer:
            assert (await producer.send(topic, "0")).offset == 0
            futures = [await producer.enqueue(topic, str(number)) for number in range(1, 100)]
            assert [metadata.offset for metadata in await asyncio.gather(*futures)] == list(range(1, 100))
        async with AsyncConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([(topic, 0)])
            found = []
            async for record in consumer:
                found.append(int(record.value))
                if len(found) == 100:
                    break
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await consumer.poll(30)
            return found

    assert asyncio.run(run()) == list(range(100))


def test_who_is_cancelled_or_stops_in_the_middle_loses_nothing(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(1)
    count = 300

    async def write() -> None:
        async with AsyncProducer(bootstrap_servers=bootstrap, linger_ms=0) as producer:
            for number in range(count):
                await producer.send(topic, str(number))

    async def read() -> list[int]:
        found: list[int] = []
        async with AsyncConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([(topic, 0)])
            writing = asyncio.create_task(write())
            patience = 0.0
            while len(found) < count // 2:
                patience = (patience + 0.0007) % 0.01
                try:
                    async with asyncio.timeout(patience):
                        found += [int(record.value) for record in await consumer.poll(30)]
                except TimeoutError:
                    continue
            await writing
            while len(found) < count:
                async for record in consumer:
                    found.append(int(record.value))
                    if len(found) % 7 == 0 or len(found) == count:
                        break
        return found

    assert asyncio.run(read()) == list(range(count))
