"""Writes the rows of one task to its topics, for batches and streams.

Without `kafka.transactional.id` each task has an idempotent producer, which writes records once although it sends them
again after a network error. A task or micro-batch that Spark repeats is written again, so that every record is written
at least once, as with Spark's own sink.

With `kafka.transactional.id` each task writes in a transaction of its own and leaves it prepared; the driver ends the
transactions when all tasks are done (`sink_commit`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from kafkapy.client.prepared_transaction import PreparedTransaction
from kafkapy.client.producer import Producer
from kafkapy.spark.options import TRANSACTIONAL_ID, WriteOptions
from kafkapy.spark.sink_columns import SinkColumns, SinkRecords, sink_records

# The local property of Spark's tasks that holds the id of the streaming query, which the checkpoint stores.
QUERY_ID = "sql.streaming.queryId"
# The maximum of brokers by default: a transaction has to outlast the task and a restart of the driver.
TRANSACTION_TIMEOUT_MS = "900000"
_TRANSACTION_S = 120.0


class TaskWritten(WriterCommitMessage):
    """The message of a task to the driver: the number of records, and the transaction that the driver ends.

    `transaction` is None without transactions and for a task without records. `query_id` is set by streams with
    transactions, because Spark passes it to tasks only.
    """

    def __init__(
        self, records: int, transaction: PreparedTransaction | None = None, query_id: str | None = None
    ) -> None:
        self.records = records
        self.transaction = transaction
        self.query_id = query_id


def write_task(options: WriteOptions, columns: SinkColumns, batches: Iterable[Any]) -> TaskWritten:
    """Writes the rows of pyarrow.RecordBatches to their topics.

    Raises the error of a record that could not be written, an ApiError or RequestTimedOut.
    """
    transactional_id = options.properties.get(TRANSACTIONAL_ID)
    properties = {"client.id": "kafkapy-spark-sink", **options.properties}
    if transactional_id is None:
        with Producer(properties) as producer:
            return TaskWritten(_send_all(producer, columns, batches))
    properties[TRANSACTIONAL_ID] = task_transactional_id(transactional_id)
    properties.setdefault("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS)
    with Producer(properties) as producer:  # an error aborts the transaction
        producer.init_transactions(_TRANSACTION_S)
        producer.begin_transaction()
        records = _send_all(producer, columns, batches)
        return TaskWritten(records, producer.prepare_transaction(_TRANSACTION_S))


def task_query_id() -> str:
    """Returns the id of the query that this task writes for; raises RuntimeError if Spark does not pass it."""
    context = TaskContext.get()
    query_id: str | None = None if context is None else context.getLocalProperty(QUERY_ID)
    if query_id is None:
        raise RuntimeError(f"Spark does not pass the id of the query to the tasks of this stream ({QUERY_ID})")
    return query_id


def task_transactional_id(transactional_id: str) -> str:
    """Returns the transactional id with "-" and the number of the task, which is equal for each attempt of the task.

    A repeated task therefore fences its earlier attempt, which may still run.
    """
    context = TaskContext.get()
    return f"{transactional_id}-{0 if context is None else context.partitionId()}"


def _send_all(producer: Producer, columns: SinkColumns, batches: Iterable[Any]) -> int:
    count = 0
    open_batches: dict[Any, None] = {}
    for batch in batches:
        for records in sink_records(columns, batch):
            futures = _send(producer, records)
            count += len(futures)
            open_batches.update(dict.fromkeys(future.batch for future in futures))
        _check(open_batches)
    producer.flush()
    _check(open_batches)
    return count


def _check(open_batches: dict[Any, None]) -> None:
    """Removes the finished batches from `open_batches`; raises the error of a batch that has failed."""
    for batch in [each for each in open_batches if each.is_done]:
        del open_batches[batch]
        if batch.error is not None:
            raise batch.error


def _send(producer: Producer, records: SinkRecords) -> list[Any]:
    if records.headers is None:
        return producer.send_many(records.topic, records.values, records.keys, partition=records.partition)
    keys = records.keys or [None] * len(records.values)
    return [
        producer.send(
            records.topic,
            value,
            key,
            partition=records.partition,
            headers=[(each["key"], each["value"]) for each in headers or ()],
        )
        for value, key, headers in zip(records.values, keys, records.headers, strict=True)
    ]
