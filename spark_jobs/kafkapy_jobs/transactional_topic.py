"""Micro-batches into a topic, each exactly once, by transactions of a producer on the driver.

Spark runs a micro-batch again if the driver died between the batch's output and the note of it in the checkpoint. So
the output and that note have to become true together: one transaction holds the batch's records and, as the committed
offset of a group that has no members, the number of the next batch. A batch below that number is there already.

Group and transactional id carry the id of the query, which lives in its checkpoint: another checkpoint is another
course of numbers; and a driver that was thought dead is fenced as soon as its successor starts. Readers have to ask
for `isolation.level=read_committed`. The broker forgets offsets of a group at rest (`offsets.retention.minutes`, 7
days): a query whose driver died within a batch has to come back by then.

All rows pass through the driver: for results, not for whole topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from pyspark.sql import DataFrame, Row

# What Spark calls the id of the query on whose thread a micro-batch runs.
QUERY_ID = "sql.streaming.queryId"


class TransactionalTopic:
    """Owns the producer of one query.  Called by Spark for one micro-batch after the other: not thread-safe."""

    def __init__(self, topic: str, properties: Mapping[str, str]) -> None:
        """`properties`: of kafkapy's clients, `bootstrap.servers` at least."""
        self._topic = topic
        self._properties = dict(properties)
        self._producer: Any = None
        self._next_batch = 0

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Writes the columns key, value and, if there, headers."""
        from kafkapy.client import GroupMetadata, TopicPartition

        group = f"kafkapy-jobs-{rows.sparkSession.sparkContext.getLocalProperty(QUERY_ID)}"
        if self._producer is None:
            self._start(group)
        found = rows.toLocalIterator()
        first = next(found, None)
        # A batch without rows needs no note: it may run again.
        if batch_id < self._next_batch or first is None:
            return
        producer = self._producer
        producer.begin_transaction()
        try:
            for row in chain([first], found):
                producer.send(self._topic, row["value"], key=row["key"], headers=_headers(row))
            marker = {TopicPartition(self._topic, 0): batch_id + 1}
            producer.send_offsets_to_transaction(marker, GroupMetadata(group))
        except BaseException:
            producer.abort_transaction()
            raise
        producer.commit_transaction()
        self._next_batch = batch_id + 1

    def _start(self, group: str) -> None:
        """Takes over from a predecessor, whose open transaction is ended, and only then looks how far it came."""
        from kafkapy.client import Consumer, Producer, TopicPartition

        producer = Producer(self._properties | {"transactional.id": group})
        producer.init_transactions()
        producer.partitions_for(self._topic)  # a topic that is made on demand has to be there before its offsets
        marker = TopicPartition(self._topic, 0)
        with Consumer(self._properties | {"group.id": group, "enable.auto.commit": False}) as consumer:
            committed = consumer.committed([marker])[marker]
        self._next_batch = committed.offset if committed else 0
        self._producer = producer


def _headers(row: Row) -> list[tuple[str, bytes]] | None:
    if "headers" not in row or not row["headers"]:
        return None
    return [(header["key"], bytes(header["value"])) for header in row["headers"]]
