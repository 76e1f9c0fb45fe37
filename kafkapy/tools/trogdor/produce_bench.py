"""Trogdor's ProduceBench: writes records to the partitions of topics in turn, at a given rate."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

from kafkapy.client import Producer
from kafkapy.tools.option import ToolError
from kafkapy.tools.progress import Progress
from kafkapy.tools.trogdor.generators import EMPTY_VALUES, SEQUENTIAL_KEYS, generator_of
from kafkapy.tools.trogdor.specification import Specification, topics_of
from kafkapy.tools.trogdor.workload import Latencies, Pace, Workload, create_topics


class ProduceBench(Workload):
    """Writes `maxMessages` records, in transactions if the specification has a transactionGenerator.

    As in Trogdor, the last transaction is aborted if it has fewer than messagesPerTransaction records.
    """

    def __init__(self, specification: Specification) -> None:
        super().__init__(specification)
        self._latencies = Latencies()
        self._sent = 0
        self._failure: BaseException | None = None
        self._committed = 0

    def run(self) -> None:
        """Writes the records. Raises the error of the first record that was not delivered.

        Raises ToolError if activeTopics names no topic.
        """
        spec = self.specification
        active = topics_of(spec.map("activeTopics"))
        if not active:
            raise ToolError("activeTopics names no topic to write to")
        create_topics(
            spec.client_properties("adminClientConf"), active | topics_of(spec.map("inactiveTopics"), "inactiveTopics")
        )
        properties = spec.client_properties("producerConf")
        per_transaction = _records_per_transaction(spec)
        if per_transaction:
            properties.setdefault("transactional.id", f"produce-bench-{time.time_ns()}")
        with Producer(properties) as producer:
            if per_transaction:
                producer.init_transactions()
            self._write(producer, active, per_transaction)
            producer.flush()
        if self._failure is not None:
            raise self._failure

    def _write(self, producer: Producer, active: dict[str, tuple[int, int]], per_transaction: int) -> None:
        spec = self.specification
        places: list[tuple[str, int | None]] = [
            (name, at) for name, (count, _) in active.items() for at in range(count)
        ]
        if spec.flag("useConfiguredPartitioner"):
            places = [(name, None) for name in active]
        turns = itertools.cycle(places)
        key_of = generator_of(spec.map("keyGenerator") or SEQUENTIAL_KEYS)
        value_of = generator_of(spec.map("valueGenerator") or EMPTY_VALUES)
        pace = Pace(spec.number("targetMessagesPerSec"))
        count = spec.number("maxMessages")
        with Progress(count, "records") as progress:
            for number in range(count):
                if self.is_over or self._failure is not None:
                    break
                if per_transaction and number % per_transaction == 0:
                    producer.begin_transaction()
                pace.wait(self.stopped)
                topic, partition = next(turns)
                producer.send(topic, value_of(number), key_of(number), partition=partition, on_delivery=self._report())
                self._sent += 1
                progress.advance()
                if per_transaction and (number + 1) % per_transaction == 0:
                    producer.commit_transaction()
                    self._committed += 1

    def _report(self) -> Callable[[Any, BaseException | None], None]:
        start = time.monotonic_ns()

        def on_delivery(metadata: Any, error: BaseException | None) -> None:
            if error is not None:
                self._failure = self._failure or error
            else:
                self._latencies.add((time.monotonic_ns() - start) // 1_000_000)

        return on_delivery

    def status(self) -> dict[str, Any]:
        """Returns the number of records and their latencies in ms, by Trogdor's names."""
        return {"totalSent": self._sent, **self._latencies.status(), "transactionsCommitted": self._committed}


def _records_per_transaction(spec: Specification) -> int:
    """Returns the number of records in a transaction; 0 if the records are not sent in transactions.

    Raises ToolError if the specification names a generator that is not supported.
    """
    fields = spec.map("transactionGenerator")
    if not fields:
        return 0
    if fields.get("type") != "uniform":
        raise ToolError(f"the transactionGenerator {fields.get('type')} is not supported; supported is uniform")
    return int(fields.get("messagesPerTransaction") or 1)
