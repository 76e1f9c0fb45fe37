"""Consumes, transforms and produces in transactions through librdkafka, as Chain.java does with Java's client.

chain_application.py BOOTSTRAP SOURCE TARGET GROUP TRANSACTIONAL_ID
"""

from __future__ import annotations

import os
import sys
import traceback

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

DEADLINE_SECONDS = 30
FENCED = 3


def run(bootstrap: str, source: str, target: str, group: str, transactional_id: str) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 10_000,
            # After a rebootstrap librdkafka 2.16 sends a group's offsets to a broker that it no longer uses, and waits
            # forever for the response.
            "metadata.recovery.strategy": "none",
        }
    )
    producer.init_transactions(DEADLINE_SECONDS)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 2500,
            "heartbeat.interval.ms": 500,
        }
    )
    consumer.subscribe([source])
    while True:
        messages = [each for each in consumer.consume(2, 0.1) if each.error() is None]
        if messages:
            carry(messages, producer, consumer, target)


def carry(messages: list[Message], producer: Producer, consumer: Consumer, target: str) -> None:
    producer.begin_transaction()
    next_offsets: dict[tuple[str, int], int] = {}
    for message in messages:
        producer.produce(target, b"done " + message.value(), partition=message.partition())
        next_offsets[message.topic(), message.partition()] = message.offset() + 1
    offsets = [TopicPartition(topic, partition, offset) for (topic, partition), offset in next_offsets.items()]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), DEADLINE_SECONDS)
    producer.commit_transaction(DEADLINE_SECONDS)
    print(f"committed {len(messages)}", flush=True)


def main() -> None:
    try:
        run(*sys.argv[1:])
    except KafkaException as error:
        traceback.print_exc()
        # Ends at once, as if killed: librdkafka's objects must not leave the group or end the transaction.
        os._exit(FENCED if error.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED) else 1)


if __name__ == "__main__":
    main()
