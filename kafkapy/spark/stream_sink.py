"""What a micro-batch writes and when it counts: tasks write, the driver commits by the number of the batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkapy.errors import ConfigError
from kafkapy.spark.options import TRANSACTIONAL_ID, WriteOptions
from kafkapy.spark.sink import TaskWritten, task_query_id, write_task
from kafkapy.spark.sink_columns import SinkColumns
from kafkapy.spark.sink_commit import abort_tasks, commit_batch, is_batch_pending


class StreamSink:
    """The options and columns of a sink. Immutable; `write` runs on the executors, the rest on the driver.

    ConfigError for transactions without the option `topic`, to whose first partition the ledger of batches is tied.
    """

    def __init__(self, options: WriteOptions, columns: SinkColumns) -> None:
        self._options = options
        self._columns = columns
        self._is_transactional = TRANSACTIONAL_ID in options.properties
        if self._is_transactional and options.topic is None:
            raise ConfigError("kafka.transactional.id in a stream needs the option topic: one topic to write to")

    def write(self, batches: Iterable[Any]) -> TaskWritten:
        if not self._is_transactional:
            return write_task(self._options, self._columns, batches)
        query_id = task_query_id()
        options = options_of_query(self._options, query_id)
        if is_batch_pending(options):  # this batch is written, the driver died while it committed: it will go on
            return TaskWritten(0, query_id=query_id)
        written = write_task(options, self._columns, batches)
        return TaskWritten(written.records, written.transaction, query_id)

    def commit(self, messages: list[Any], batch_id: int) -> None:
        if self._is_transactional:  # Spark runs one task at least
            commit_batch(options_of_query(self._options, messages[0].query_id), messages, batch_id)

    def abort(self, messages: list[Any]) -> None:
        abort_tasks(self._options, messages)


def options_of_query(options: WriteOptions, query_id: str) -> WriteOptions:
    """The transactional id of one query: another checkpoint is another course of batches, with a ledger of its own."""
    transactional_id = f"{options.properties[TRANSACTIONAL_ID]}-{query_id}"
    return options._replace(properties={**options.properties, TRANSACTIONAL_ID: transactional_id})
