"""Trogdor's RoundTripWorkload: writes records and reads them back, until each has arrived."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

from kafkapy.client import Consumer, Producer, TopicPartition
from kafkapy.tools.option import ToolError
from kafkapy.tools.progress import Progress
from kafkapy.tools.trogdor.generators import EMPTY_VALUES, SEQUENTIAL_KEYS, generator_of
from kafkapy.tools.trogdor.specification import Specification, topics_of
from kafkapy.tools.trogdor.workload import Pace, Workload, create_topics

_POLL_S = 0.1


class RoundTrip(Workload):
    """Writes `maxMessages` records, whose keys are numbers; ends when all of them were read."""

    def __init__(self, specification: Specification) -> None:
        super().__init__(specification)
        self._missing: set[bytes] = set()
        self._lock = threading.Lock()
        self._sent = 0
        self._received = 0
        self._error: BaseException | None = None

    def run(self) -> None:
        """Writes and reads the records; returns when all were read, or the workload was stopped.

        Raises the error of a client, and ToolError if records are missing at the end.
        """
        spec = self.specification
        active = topics_of(spec.map("activeTopics"))
        if not active:
            raise ToolError("activeTopics names no topic")
        create_topics(spec.client_properties("adminClientConf"), active)
        places = [TopicPartition(name, at) for name, (count, _) in active.items() for at in range(count)]
        properties = {"group.id": f"round-trip-{time.time_ns()}", **spec.client_properties("consumerConf")}
        with Consumer(properties) as consumer:
            consumer.assign(places)
            consumer.seek_to_end(places)
            for place in places:
                consumer.position(place)  # the records of this run come after it
            writer = threading.Thread(target=self._write, args=(places,), name="round-trip-producer")
            writer.start()
            self._read(consumer, writer)
            writer.join()
        if self._error is not None:
            raise self._error
        if self._missing:
            raise ToolError(f"{len(self._missing)} of {self._sent} records were not received")

    def _write(self, places: list[TopicPartition]) -> None:
        spec = self.specification
        key_of = generator_of(SEQUENTIAL_KEYS)
        value_of = generator_of(spec.map("valueGenerator") or EMPTY_VALUES)
        pace = Pace(spec.number("targetMessagesPerSec"))
        turns = itertools.cycle(places)
        try:
            with Producer(spec.client_properties("producerConf")) as producer:
                for number in range(spec.number("maxMessages")):
                    if self.is_over:
                        break
                    pace.wait(self.stopped)
                    place, key = next(turns), key_of(number) or b""
                    with self._lock:
                        self._missing.add(key)
                    producer.send(place.topic, value_of(number), key, partition=place.partition)
                    self._sent += 1
        except Exception as error:
            self._error = error
            self.stop()

    def _read(self, consumer: Consumer, writer: threading.Thread) -> None:
        """Reads until the writer has ended and every record that it wrote was read, or the workload is stopped."""
        with Progress(self.specification.number("maxMessages"), "records") as progress:
            while not self.is_over and (writer.is_alive() or self._missing):
                for record in consumer.poll(_POLL_S):
                    with self._lock:
                        self._missing.discard(record.key)
                    self._received += 1
                    progress.advance()

    def status(self) -> dict[str, Any]:
        """Returns the numbers of records that were written and read."""
        return {"totalUniqueSent": self._sent, "totalReceived": self._received}
