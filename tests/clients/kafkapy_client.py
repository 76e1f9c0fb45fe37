"""Our own client."""

from __future__ import annotations

import time
from collections.abc import Sequence

from kafkapy.client import Consumer, ConsumerRecord, Producer
from tests.clients.client import GroupClient
from tests.clients.records import SentRecord

DEADLINE_SECONDS = 60


class KafkapyClient(GroupClient):
    name = "kafkapy"

    def produce(self, bootstrap: str, topic: str, codec: str, records: Sequence[SentRecord]) -> None:
        with Producer(bootstrap_servers=bootstrap, compression_type=codec) as producer:
            futures = [
                producer.send(
                    topic,
                    record.value,
                    record.key,
                    partition=record.partition,
                    timestamp=record.timestamp,
                    headers=record.headers,
                )
                for record in records
            ]
            for future in futures:
                future.result(DEADLINE_SECONDS)

    def consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[SentRecord]:
        with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign([(topic, number) for number in range(partitions)])
            return _poll(consumer, count)

    def consume_in_group(self, bootstrap: str, topic: str, group: str, count: int) -> list[SentRecord]:
        with Consumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=group, enable_auto_commit=False
        ) as consumer:
            consumer.subscribe([topic])
            received = _poll(consumer, count)
            consumer.commit()
            return received


def _poll(consumer: Consumer, count: int) -> list[SentRecord]:
    received: list[SentRecord] = []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(received) < count:
        assert time.monotonic() < deadline, f"only {len(received)} of {count} records"
        received.extend(map(received_record, consumer.poll(0.2)))
    return received


def received_record(record: ConsumerRecord) -> SentRecord:
    return SentRecord(record.partition, record.timestamp, record.key, record.value, record.headers, record.offset)
