"""One record to each partition of a topic, by a client that tries again quickly."""

from __future__ import annotations

import time
from typing import Any

TIMEOUT_S = 120.0
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

        RuntimeError if a record is not acknowledged.
        """
        self._acknowledged = []
        for partition in range(self._partitions):
            self._producer.produce(self._topic, bytes(100), partition=partition, on_delivery=self._on_delivery)
        if self._producer.flush(TIMEOUT_S):
            raise RuntimeError("not all records were acknowledged")
        return self._acknowledged[0], self._acknowledged[-1]

    def _on_delivery(self, error: Any, _: Any) -> None:
        if error is not None:
            raise RuntimeError(str(error))
        self._acknowledged.append(time.monotonic())
