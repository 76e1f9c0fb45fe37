"""The client library kafka-python."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition

from tests.clients.client import GroupClient
from tests.clients.records import SentRecord

DEADLINE_SECONDS = 60


class KafkaPythonClient(GroupClient):
    name = "kafka-python"

    def can_carry(self, record: SentRecord) -> bool:
        """Returns False for a record without key and value, and a header without value."""
        has_content = record.key is not None or record.value is not None
        return has_content and all(value is not None for _, value in record.headers)

    def produce(self, bootstrap: str, topic: str, codec: str, records: Sequence[SentRecord]) -> None:
        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks="all",
            linger_ms=5,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    record.value,
                    record.key,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp,
                )
                for record in records
            ]
            for future in futures:
                future.get(DEADLINE_SECONDS)
        finally:
            producer.close()

    def consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[SentRecord]:
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=None)
        consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
        try:
            return _poll(consumer, count)
        finally:
            consumer.close()

    def consume_in_group(self, bootstrap: str, topic: str, group: str, count: int) -> list[SentRecord]:
        consumer = KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        try:
            received = _poll(consumer, count)
            consumer.commit()
            return received
        finally:
            consumer.close()


def _poll(consumer: KafkaConsumer, count: int) -> list[SentRecord]:
    received: list[SentRecord] = []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while len(received) < count:
        assert time.monotonic() < deadline, f"only {len(received)} of {count} records"
        for records in consumer.poll(timeout_ms=200).values():
            received.extend(map(_received, records))
    return received


def _received(record: Any) -> SentRecord:
    headers = tuple((name, value) for name, value in record.headers)
    return SentRecord(record.partition, record.timestamp, record.key, record.value, headers, record.offset)
