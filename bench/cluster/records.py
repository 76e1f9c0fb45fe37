"""One record to each partition of a topic, by a client that tries again quickly."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

TIMEOUT_S = 120.0
FIND_LEADERS_S = 0.05
# So that the cluster's time is measured and not the client's.
IMPATIENT = {
    "acks": "all",
    "linger.ms": 0,
    "log_level": 0,
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 20,
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 20,
    "topic.metadata.refresh.fast.interval.ms": 10,
    "message.timeout.ms": int(TIMEOUT_S * 1000),
}


class Records:
    """A producer that sends one record to each partition of a topic."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        from confluent_kafka import Producer

        self._producer = Producer({"bootstrap.servers": bootstrap, **IMPATIENT})
        self._topic = topic
        self._partitions = partitions
        self._acknowledged: list[float] = []

    def send(self) -> tuple[float, float]:
        """Returns the times (monotonic) at which the first and the last partition have acknowledged a record.

        Raises RuntimeError if a record is not acknowledged.
        """
        self._acknowledged = []
        for partition in range(self._partitions):
            self._producer.produce(self._topic, bytes(100), partition=partition, on_delivery=self._on_delivery)
        deadline = time.monotonic() + TIMEOUT_S
        # On another thread: a request to the dead node may wait for a second, and `flush` reports what is acknowledged.
        with ThreadPoolExecutor(1) as pool:
            finding: Future[None] | None = None
            while self._producer.flush(FIND_LEADERS_S):
                if time.monotonic() > deadline:
                    raise RuntimeError("not all records were acknowledged")
                if finding is None or finding.done():
                    finding = pool.submit(self._find_leaders)
        return self._acknowledged[0], self._acknowledged[-1]

    def _find_leaders(self) -> None:
        """Makes the client ask for the leaders, which it does only once a second by itself."""
        from confluent_kafka import KafkaException

        with suppress(KafkaException):
            self._producer.list_topics(self._topic, timeout=1)

    def _on_delivery(self, error: Any, _: Any) -> None:
        if error is not None:
            raise RuntimeError(str(error))
        self._acknowledged.append(time.monotonic())
