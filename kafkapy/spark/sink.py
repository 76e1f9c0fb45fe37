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

from kafkapy.client.arrow_delivery import ArrowDelivery
from kafkapy.client.prepared_transaction import PreparedTransaction
from kafkapy.client.producer import Producer
from kafkapy.spark.options import TRANSACTIONAL_ID, WriteOptions
from kafkapy.spark.sink_columns import SinkColumns, rows_by_topic
from kafkapy.spark.worker_overhead import shorten_tasks

# The local property of Spark's tasks that holds the id of the streaming query, which the checkpoint stores.
QUERY_ID = "sql.streaming.queryId"
# The maximum of brokers by default: a transaction has to outlast the task and a restart of the driver.
TRANSACTION_TIMEOUT_MS = "900000"
_TRANSACTION_S = 120.0


class TaskWritten(WriterCommitMessage):
    """The message of a task to the driver: the number of records, and the transaction that the driver ends.

    `transaction` is None if the query does not use transactions, or if the task has no records. `query_id` is set by
    streams with transactions, because Spark passes it only to tasks.
    """

    def __init__(
        self, records: int, transaction: PreparedTransaction | None = None, query_id: str | None = None
    ) -> None:
        self.records = records
        self.transaction = transaction
        self.query_id = query_id


def write_task(options: WriteOptions, columns: SinkColumns, batches: Iterable[Any]) -> TaskWritten:
    """Writes the rows of pyarrow.RecordBatches to their topics.

    Raises UndeliveredRows, or another ApiError, if a row could not be written.
    """
    shorten_tasks()
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
    """Returns the transactional id with "-" and the number of the task. All attempts of a task have the same number.

    A repeated task therefore fences its earlier attempt, which may still run.
    """
    context = TaskContext.get()
    return f"{transactional_id}-{0 if context is None else context.partitionId()}"


def _send_all(producer: Producer, columns: SinkColumns, batches: Iterable[Any]) -> int:
    """Sends all rows and waits until they are delivered; returns their number."""
    count = 0
    pending: list[ArrowDelivery] = []
    for batch in batches:
        for topic, rows in rows_by_topic(columns, batch):
            pending.append(producer.send_arrow(topic, rows))
            count += pending[-1].row_count
        pending = [each for each in pending if _is_pending(each)]
    producer.flush()
    for each in pending:
        each.result()
    return count


def _is_pending(delivery: ArrowDelivery) -> bool:
    """Returns whether the outcome of rows is not known yet; raises UndeliveredRows if rows have failed."""
    delivery.raise_failure()
    return not delivery.done()
