"""Reads a topic with three consumers of one group, each in a thread of its own; the group divides the partitions.

A consumer may be used by one thread at a time. The program sends COUNT records and reads as many.
"""

from __future__ import annotations

import threading
from collections import Counter

from example_support import fill, join, run

from kafkapy.client import Consumer


class Results:
    """The records that all readers have read, and the signal to end. Thread-safe."""

    def __init__(self, wanted: int) -> None:
        self.seen: Counter[str] = Counter()
        self.is_done = threading.Event()
        self._wanted = wanted
        self._lock = threading.Lock()

    def add(self, values: list[str]) -> None:
        """Counts values; sets `is_done` when there are enough."""
        with self._lock:
            self.seen.update(values)
            if self.seen.total() >= self._wanted:
                self.is_done.set()


class Reader(threading.Thread):
    """A thread with a consumer that reads until `results.is_done`."""

    def __init__(self, number: int, bootstrap: str, topic: str, group: str, results: Results) -> None:
        super().__init__(name=f"reader-{number}")
        self._settings = {"bootstrap_servers": bootstrap, "group_id": group, "auto_offset_reset": "earliest"}
        self._topic = topic
        self._results = results

    def run(self) -> None:
        with Consumer(client_id=self.name, **self._settings) as consumer:
            consumer.subscribe([self._topic])
            while not self._results.is_done.is_set():
                self._results.add([record.value.decode() for record in consumer.poll(0.2)])


def main(bootstrap: str, topic: str, group: str, count: str) -> None:
    fill(bootstrap, topic, int(count))
    results = Results(int(count))
    readers = [Reader(number, bootstrap, topic, group, results) for number in range(3)]
    try:
        for reader in readers:
            reader.start()
        results.is_done.wait()
    finally:
        results.is_done.set()  # after Ctrl-C too, because the program ends only after its threads
        join(readers)
    print(f"{len(results.seen)} different records, the most frequent {max(results.seen.values())} times")


if __name__ == "__main__":
    run(main, __doc__, topic="example-threads", group="example-threads", count="60")
