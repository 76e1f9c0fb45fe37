"""Sends records without waiting, twice: with a callback that reports errors, and with asyncio."""

from __future__ import annotations

import asyncio
import sys

from example_support import run

from kafkapy.client import AsyncProducer, Producer, RecordMetadata


def on_delivery(metadata: RecordMetadata | None, error: BaseException | None) -> None:
    """Reports a failed delivery. It runs on the thread that receives the response, so it has to be short; within a
    partition the calls are in the order of sending."""
    if error is not None:
        print(f"not delivered: {error}", file=sys.stderr)


def with_callbacks(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap_servers=bootstrap, linger_ms=5) as producer:
        for number in range(10):
            producer.send(topic, f"message{number}", key=str(number), on_delivery=on_delivery)
    print("closed: all ten are delivered")


async def with_asyncio(bootstrap: str, topic: str) -> None:
    producer = AsyncProducer(bootstrap_servers=bootstrap, linger_ms=5)
    try:
        sent = await asyncio.gather(*(producer.send(topic, f"message{number}") for number in range(10)))
        print(f"awaited {len(sent)} deliveries")
    finally:
        await producer.close()


def main(bootstrap: str, topic: str) -> None:
    with_callbacks(bootstrap, topic)
    asyncio.run(with_asyncio(bootstrap, topic))


if __name__ == "__main__":
    run(main, __doc__, topic="example-async")
