"""Sends records from four threads through one producer.

A producer is thread-safe, and one producer for all threads fills larger batches than a producer for each.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from example_support import make_topic, run

from kafkapy.client import Producer, RecordMetadata

THREADS = 4


class Deliveries:
    """The numbers of delivered and of failed records. Thread-safe."""

    def __init__(self) -> None:
        self.delivered = 0
        self.failed = 0
        self._lock = threading.Lock()

    def add(self, metadata: RecordMetadata | None, error: BaseException | None) -> None:
        """Counts one record; the producer calls this on whichever thread receives the response."""
        with self._lock:
            if error is None:
                self.delivered += 1
            else:
                self.failed += 1


def send(producer: Producer, topic: str, thread: int, count: int, deliveries: Deliveries) -> None:
    """Sends `count` records; their key is the thread's, so that they stay in order."""
    for number in range(count):
        producer.send(topic, f"{thread}-{number}", key=f"thread-{thread}", on_delivery=deliveries.add)


def main(bootstrap: str, topic: str, count: str) -> None:
    make_topic(bootstrap, topic, 3)
    deliveries = Deliveries()
    with (
        Producer(bootstrap_servers=bootstrap, linger_ms=5) as producer,
        ThreadPoolExecutor(THREADS, "sender") as threads,
    ):
        work = [threads.submit(send, producer, topic, number, int(count), deliveries) for number in range(THREADS)]
        for each in work:
            each.result()
    print(f"{THREADS} threads: {deliveries.delivered} records delivered, {deliveries.failed} failed")


if __name__ == "__main__":
    run(main, __doc__, topic="example-threaded", count="250")
