"""Writes each micro-batch to a topic exactly once, in transactions of a producer on the driver.

Spark repeats a micro-batch if the driver died between writing the output and recording the batch in the checkpoint. So
one transaction holds both the records of a batch and, as the committed offset of a group without members, the number of
the next batch. A batch with a lower number has been written already.

Group and transactional id contain the id of the query, which is stored in its checkpoint: another checkpoint has
batch numbers of its own, and a driver that was believed dead is fenced when its successor starts. Readers need
`isolation.level=read_committed`. The broker removes offsets of an empty group after `offsets.retention.minutes` (7
days): a query whose driver died within a batch has to be restarted by then.

All rows pass through the driver, which suits results but not whole topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from pyspark.sql import DataFrame, Row

# The local property of Spark that holds the id of the query on whose thread a micro-batch runs.
QUERY_ID = "sql.streaming.queryId"


class TransactionalTopic:
    """The sink of one query, which owns its producer. Not thread-safe.

    Spark calls it for one micro-batch after the other.
    """

    def __init__(self, topic: str, properties: Mapping[str, str]) -> None:
        """`properties` are keys of kafkapy's clients, at least `bootstrap.servers`."""
        self._topic = topic
        self._properties = dict(properties)
        self._producer: Any = None
        self._next_batch = 0

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        """Writes the columns key, value and, if the rows have it, headers, unless the batch was written before."""
        from kafkapy.client import GroupMetadata, TopicPartition

        group = f"kafkapy-jobs-{rows.sparkSession.sparkContext.getLocalProperty(QUERY_ID)}"
        if self._producer is None:
            self._start(group)
        found = rows.toLocalIterator()
        first = next(found, None)
        # A batch without rows is not recorded, because repeating it writes nothing.
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
        """Fences the producer of an earlier driver, and reads which batch is next.

        Fencing aborts the open transaction of that producer.
        """
        from kafkapy.client import Consumer, Producer, TopicPartition

        producer = Producer(self._properties | {"transactional.id": group})
        producer.init_transactions()
        producer.partitions_for(self._topic)  # creates the topic on demand, which must exist before its offsets
        marker = TopicPartition(self._topic, 0)
        with Consumer(self._properties | {"group.id": group, "enable.auto.commit": False}) as consumer:
            committed = consumer.committed([marker])[marker]
        self._next_batch = committed.offset if committed else 0
        self._producer = producer


def _headers(row: Row) -> list[tuple[str, bytes | None]] | None:
    if "headers" not in row or not row["headers"]:
        return None
    pairs = [(header["key"], header["value"]) for header in row["headers"]]
    return [(name, None if value is None else bytes(value)) for name, value in pairs]
