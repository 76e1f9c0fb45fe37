"""Commits positions and drops what is kept for a partition when the group takes the partition away.

The listener is called within `poll`, on its thread: before partitions are revoked it commits their positions, so that
their next owner does not process their last records again. The program reads with one consumer until it has half of
the records, starts a second one, and both read the rest.
"""

from __future__ import annotations

import threading
from collections import Counter

from example_support import fill, join, run

from kafkapy.client import Consumer, TopicPartition


class CountPerPartition:
    """Counts the records of each assigned partition; a rebalance listener. For the thread that polls."""

    def __init__(self, name: str, consumer: Consumer) -> None:
        self._name = name
        self._consumer = consumer
        self.counts: dict[TopicPartition, int] = {}

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            self.counts[partition] = 0
        print(f"{self._name}: {len(partitions)} assigned", flush=True)

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self._consumer.commit({each: self._consumer.position(each) for each in partitions})
        self._forget(partitions)

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """Commits nothing: another consumer may have the partitions already."""
        self._forget(partitions)

    def _forget(self, partitions: list[TopicPartition]) -> None:
        counted = sum(self.counts.pop(each, 0) for each in partitions)
        print(f"{self._name}: {len(partitions)} revoked after {counted} records", flush=True)


class Reader(threading.Thread):
    """A consumer of the group on a thread of its own, which adds what it reads to `seen`."""

    def __init__(self, name: str, bootstrap: str, topic: str, group: str, seen: Counter[str], done: threading.Event):
        super().__init__(name=name)
        self._settings = {"bootstrap_servers": bootstrap, "group_id": group, "auto_offset_reset": "earliest"}
        self._topic = topic
        self._seen = seen
        self._done = done

    def run(self) -> None:
        # Records are committed by the listener alone, and small polls leave some for the second consumer.
        with Consumer(enable_auto_commit=False, max_poll_records=5, **self._settings) as consumer:
            listener = CountPerPartition(self.name, consumer)
            consumer.subscribe([self._topic], listener)
            while not self._done.is_set():
                for record in consumer.poll(0.1):
                    listener.counts[TopicPartition(record.topic, record.partition)] += 1
                    self._seen[record.value.decode()] += 1


def main(bootstrap: str, topic: str, group: str, count: str) -> None:
    fill(bootstrap, topic, int(count))
    seen: Counter[str] = Counter()
    done = threading.Event()
    readers = [Reader(name, bootstrap, topic, group, seen, done) for name in ("first", "second")]
    try:
        for share, reader in zip((0.5, 1.0), readers, strict=True):
            reader.start()
            while len(seen) < int(count) * share:
                done.wait(0.05)
    finally:
        done.set()
        join(readers)
    print(f"{len(seen)} different records")


if __name__ == "__main__":
    run(main, __doc__, topic="example-rebalance", group="example-rebalance", count="60")
