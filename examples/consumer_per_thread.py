"""One consumer for each thread: a consumer is for one thread at a time, and the group shares out the partitions."""

from __future__ import annotations

import sys
import threading
from collections import Counter

from kafkapy.client import Consumer


class Reader(threading.Thread):
    """Owns a consumer, and reads with it until the records of all readers together are enough."""

    def __init__(self, number: int, bootstrap: str, topic: str, group: str, seen: Counter[str], wanted: int) -> None:
        super().__init__(name=f"reader-{number}")
        self._settings = {"bootstrap_servers": bootstrap, "group_id": group, "auto_offset_reset": "earliest"}
        self._topic = topic
        self._seen = seen
        self._wanted = wanted

    def run(self) -> None:
        with Consumer(client_id=self.name, **self._settings) as consumer:
            consumer.subscribe([self._topic])
            while sum(self._seen.values()) < self._wanted:
                for record in consumer.poll(0.2):
                    self._seen[record.value.decode()] += 1


def main(bootstrap: str, topic: str, group: str, count: str) -> None:
    seen: Counter[str] = Counter()
    readers = [Reader(number, bootstrap, topic, group, seen, int(count)) for number in range(3)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    print(f"{len(seen)} different records, the most frequent {max(seen.values())} times")


if __name__ == "__main__":
    main(*sys.argv[1:5])
