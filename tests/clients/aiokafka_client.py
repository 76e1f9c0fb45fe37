"""The client library aiokafka."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.clients.client import GroupClient
from tests.clients.records import SentRecord

DEADLINE_SECONDS = 60


class AiokafkaClient(GroupClient):
    """A client whose `settings` are parameters of AIOKafkaProducer and AIOKafkaConsumer."""

    name = "aiokafka"

    def __init__(self, settings: Mapping[str, Any] | None = None) -> None:
        self._settings = dict(settings or {})

    def can_carry(self, record: SentRecord) -> bool:
        """Returns False for a record without key and value."""
        return record.key is not None or record.value is not None

    def produce(self, bootstrap: str, topic: str, codec: str, records: Sequence[SentRecord]) -> None:
        asyncio.run(_produce(self._settings, bootstrap, topic, None if codec == "none" else codec, records))

    def consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[SentRecord]:
        assigned = [TopicPartition(topic, number) for number in range(partitions)]
        return asyncio.run(_consume(self._settings, bootstrap, None, None, assigned, count))

    def consume_in_group(self, bootstrap: str, topic: str, group: str, count: int) -> list[SentRecord]:
        return asyncio.run(_consume(self._settings, bootstrap, topic, group, [], count))


async def _produce(
    settings: Mapping[str, Any], bootstrap: str, topic: str, codec: str | None, records: Sequence[SentRecord]
) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, compression_type=codec, acks="all", linger_ms=5, **settings
    ) as producer:
        waiting = [
            await producer.send(
                topic,
                record.value,
                record.key,
                record.partition,
                record.timestamp,
                headers=[(name, value) for name, value in record.headers],
            )
            for record in records
        ]
        await asyncio.gather(*waiting)


async def _consume(
    settings: Mapping[str, Any], bootstrap: str, topic: str | None, group: str | None, assigned: list[Any], count: int
) -> list[SentRecord]:
    consumer = AIOKafkaConsumer(
        *([topic] if topic else []),
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **settings,
    )
    if assigned:
        consumer.assign(assigned)
    received: list[SentRecord] = []
    async with consumer, asyncio.timeout(DEADLINE_SECONDS):
        while len(received) < count:
            for records in (await consumer.getmany(timeout_ms=200)).values():
                received.extend(map(_received, records))
        if group:
            await consumer.commit()
    return received


def _received(record: Any) -> SentRecord:
    headers = tuple((name, value) for name, value in record.headers)
    return SentRecord(record.partition, record.timestamp, record.key, record.value, headers, record.offset)
