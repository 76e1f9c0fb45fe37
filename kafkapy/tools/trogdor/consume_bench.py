"""Trogdor's ConsumeBench: reads records in one or several threads, at a given rate."""

from __future__ import annotations

import threading
import time
from typing import Any

from kafkapy.client import Consumer, TopicPartition
from kafkapy.client.admin import Admin
from kafkapy.tools.option import ToolError
from kafkapy.tools.trogdor.specification import Specification, partitions_of
from kafkapy.tools.trogdor.workload import Latencies, Pace, Workload

_POLL_S = 0.1


class _Reader:
    """One consumer, which reads on a thread of its own."""

    def __init__(
        self, bench: ConsumeBench, properties: dict[str, Any], topics: list[str], places: list[TopicPartition]
    ):
        self._bench = bench
        self._topics, self._places = topics, places
        self.client_id: str = properties["client.id"]
        self._consumer = Consumer(properties)
        self.records = 0
        self.bytes = 0
        self.latencies = Latencies()
        self.assigned: list[str] = []
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name=self.client_id)

    def _run(self) -> None:
        try:
            with self._consumer as consumer:
                if self._places:
                    consumer.assign(self._places)
                else:
                    consumer.subscribe(self._topics)
                self._read(consumer)
        except Exception as error:
            self.error = error
            self._bench.stop()

    def _read(self, consumer: Consumer) -> None:
        spec = self._bench.specification
        limit = spec.number("maxMessages")
        pace = Pace(spec.number("targetMessagesPerSec"))
        while self.records < limit and not self._bench.is_over:
            start = time.monotonic_ns()
            found = consumer.poll(_POLL_S)
            if not found:
                continue
            self.assigned = [str(each) for each in sorted(consumer.assignment())]
            self.latencies.add((time.monotonic_ns() - start) // 1_000_000)
            for record in found:
                pace.wait(self._bench.stopped)
                self.records += 1
                self.bytes += len(record.key or b"") + len(record.value or b"")

    def status(self) -> dict[str, Any]:
        """Returns the numbers of records and bytes read, and the latencies, by the names of Trogdor's results."""
        return {
            "assignedPartitions": self.assigned,
            "totalMessagesReceived": self.records,
            "totalBytesReceived": self.bytes,
            "averageMessageSizeBytes": self.bytes // self.records if self.records else 0,
            **self.latencies.status(),
        }


class ConsumeBench(Workload):
    """Reads records with `threadsPerWorker` consumers, `maxMessages` records with each of them."""

    def __init__(self, specification: Specification) -> None:
        super().__init__(specification)
        self._readers: list[_Reader] = []

    def run(self) -> None:
        """Reads the records. Raises the first error of a consumer.

        Raises ToolError if activeTopics names partitions and several threads have one consumerGroup.
        """
        spec = self.specification
        threads = spec.number("threadsPerWorker", 1)
        topics, places = self._sources()
        group = spec.text("consumerGroup", "") or f"consume-bench-{time.time_ns()}"
        if places and threads > 1 and spec.text("consumerGroup", ""):
            raise ToolError("partitions cannot be assigned to several threads of one consumerGroup")
        for number in range(threads):
            properties = {
                "auto.offset.reset": "earliest",
                "group.id": group if spec.text("consumerGroup", "") or not places else f"{group}-{number}",
                **spec.client_properties("consumerConf"),
                "client.id": f"consumer.{number}",
            }
            self._readers.append(_Reader(self, properties, topics, places))
        for reader in self._readers:
            reader.thread.start()
        for reader in self._readers:
            reader.thread.join()
        for reader in self._readers:
            if reader.error is not None:
                raise reader.error

    def _sources(self) -> tuple[list[str], list[TopicPartition]]:
        """Returns the topics to subscribe to, and the partitions to assign.

        If the second list is not empty, the readers do not subscribe, but are assigned these partitions. They are the
        partitions that `activeTopics` names, and all partitions of the topics that it names. Names in `activeTopics`
        may have ranges. Raises ToolError if `activeTopics` is empty.
        """
        spec = self.specification
        topics, places = partitions_of(spec.texts("activeTopics"))
        if not topics and not places:
            raise ToolError("activeTopics names no topic to read from")
        if places and topics:
            with Admin(spec.client_properties("adminClientConf")) as admin:
                described = admin.describe_topics(topics).check()
            places += [TopicPartition(name, each.partition) for name in topics for each in described[name].partitions]
        return topics, places

    def status(self) -> dict[str, Any]:
        """Returns the results of each consumer, by its client id."""
        return {reader.client_id: reader.status() for reader in self._readers}
