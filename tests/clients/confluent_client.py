"""The client library confluent-kafka, which is librdkafka in Python."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition

from tests.clients.client import GroupClient
from tests.clients.records import SentRecord

DEADLINE_SECONDS = 60


class ConfluentClient(GroupClient):
    """A client whose `settings` are librdkafka's properties, which take precedence over the properties of a call."""

    def __init__(self, name: str = "confluent-kafka", settings: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self._settings = dict(settings or {})

    def produce(self, bootstrap: str, topic: str, codec: str, records: Sequence[SentRecord]) -> None:
        failures: list[Any] = []
        properties = {"bootstrap.servers": bootstrap, "compression.type": codec, "acks": "all", "linger.ms": 5}
        producer = Producer({**properties, **self._settings})
        for record in records:
            while True:
                try:
                    producer.produce(
                        topic,
                        record.value,
                        record.key,
                        record.partition,
                        timestamp=record.timestamp,
                        headers=list(record.headers),
                        on_delivery=lambda error, _: failures.append(error) if error else None,
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        assert producer.flush(DEADLINE_SECONDS) == 0
        assert not failures, failures[:3]

    def consume(self, bootstrap: str, topic: str, partitions: int, count: int) -> list[SentRecord]:
        properties = {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False}
        consumer = Consumer({**properties, **self._settings})
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])
        try:
            return poll_until(consumer, lambda received: len(received) >= count)
        finally:
            consumer.close()

    def consume_in_group(self, bootstrap: str, topic: str, group: str, count: int) -> list[SentRecord]:
        consumer = group_consumer(bootstrap, group, **self._settings)
        consumer.subscribe([topic])
        try:
            received = poll_until(consumer, lambda received: len(received) >= count)
            consumer.commit(asynchronous=False)
            return received
        finally:
            consumer.close()


def group_consumer(bootstrap: str, group: str, **properties: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **properties,
        }
    )


def poll_until(consumer: Consumer, is_enough: Callable[[list[SentRecord]], bool]) -> list[SentRecord]:
    received: list[SentRecord] = []
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_enough(received):
        assert time.monotonic() < deadline, f"only {len(received)} records; {_positions(consumer)}"
        for message in consumer.consume(500, 0.2):
            if message.error():
                raise KafkaException(message.error())
            received.append(received_record(message))
    return received


def _positions(consumer: Consumer) -> str:
    """Returns the consumer's positions and the offset ranges that the broker reports."""
    shown = []
    for entry in consumer.position(consumer.assignment()):
        low, high = consumer.get_watermark_offsets(entry, 10)
        shown.append(f"{entry.topic}-{entry.partition} at {entry.offset} of {low} to {high}")
    return ", ".join(shown) or "nothing assigned"


def received_record(message: Message) -> SentRecord:
    return SentRecord(
        message.partition(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
        message.offset(),
    )
