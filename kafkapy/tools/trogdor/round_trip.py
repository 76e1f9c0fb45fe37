"""Trogdor's RoundTripWorkload: writes records and reads them back, until each has arrived."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from kafkapy.client import Consumer, Producer, TopicPartition
from kafkapy.errors import ApiError
from kafkapy.tools.option import ToolError
from kafkapy.tools.progress import Progress
from kafkapy.tools.trogdor.generators import EMPTY_VALUES, SEQUENTIAL_KEYS, generator_of
from kafkapy.tools.trogdor.specification import Specification, topics_of
from kafkapy.tools.trogdor.workload import Pace, Workload, create_topics

_POLL_S = 0.1


class RoundTrip(Workload):
    """Writes `maxMessages` records, whose keys are numbers; ends when all of them were read.

    A record that could not be delivered is sent again if the error is retriable. Any other error ends the workload.
    """

    def __init__(self, specification: Specification) -> None:
        super().__init__(specification)
        self._missing: set[bytes] = set()
        self._lock = threading.Lock()
        self._sent = 0
        self._received = 0
        self._error: BaseException | None = None
        # The numbers of the records that are to be sent again. Only the producer's callbacks add to it.
        self._undelivered: list[int] = []

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
            try:
                self._read(consumer, writer)
            except BaseException:
                self.stop()
                raise
            finally:
                writer.join()
        if self._error is not None:
            raise self._error
        if self._missing:
            raise ToolError(f"{len(self._missing)} of {self._sent} records were not received")

    def _write(self, places: list[TopicPartition]) -> None:
        try:
            with Producer(self.specification.client_properties("producerConf")) as producer:
                self.send_all(producer, places)
        except Exception as error:
            self._error = error
            self.stop()

    def send_all(self, producer: Producer, places: list[TopicPartition]) -> None:
        """Sends the records to the partitions `places` in turn, and returns when all of them are delivered, or when the
        workload is over."""
        spec = self.specification
        key_of = generator_of(SEQUENTIAL_KEYS)
        value_of = generator_of(spec.map("valueGenerator") or EMPTY_VALUES)
        pace = Pace(spec.number("targetMessagesPerSec"))
        turns = itertools.cycle(places)
        for number, is_first in self._numbers(producer, spec.number("maxMessages")):
            if self.is_over:
                break
            pace.wait(self.stopped)
            place, key = next(turns), key_of(number) or b""
            if is_first:
                with self._lock:
                    self._missing.add(key)
                self._sent += 1
            producer.send(
                place.topic, value_of(number), key, partition=place.partition, on_delivery=self._on_delivery(number)
            )

    def _numbers(self, producer: Producer, count: int) -> Iterator[tuple[int, bool]]:
        """Yields (number, True) for each of `count` records, then (number, False) for those that could not be
        delivered, until all are delivered."""
        for number in range(count):
            yield number, True
        while True:
            producer.flush()
            undelivered, self._undelivered = self._undelivered, []
            if not undelivered:
                return
            for number in undelivered:
                yield number, False

    def _on_delivery(self, number: int) -> Callable[[Any, BaseException | None], None]:
        def on_delivery(metadata: Any, error: BaseException | None) -> None:
            if error is None:
                return
            if isinstance(error, TimeoutError) or (isinstance(error, ApiError) and error.error.retriable):
                self._undelivered.append(number)
            else:
                self._error = self._error or error
                self.stop()

        return on_delivery

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
