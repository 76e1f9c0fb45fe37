"""A member of a consumer group in a process of its own, which a test kills. It prints the sizes of its assignments."""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, TopicPartition


def main(bootstrap: str, topic: str, group: str) -> None:
    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        print("assigned", len(partitions), flush=True)

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": "consumer"})
    consumer.subscribe([topic], on_assign=on_assign)
    while True:
        consumer.poll(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
