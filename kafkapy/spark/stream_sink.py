"""The sink of streams: tasks write the records, and the driver commits them by the number of the micro-batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkapy.errors import ConfigError
from kafkapy.spark.options import TRANSACTIONAL_ID, ClientProperties, WriteOptions
from kafkapy.spark.sink import TaskWritten, task_query_id, write_task
from kafkapy.spark.sink_columns import SinkColumns
from kafkapy.spark.sink_commit import abort_batch, commit_batch, is_batch_pending


class StreamSink:
    """The sink of a stream. The object does not change. `write` runs on the executors, the other methods on the driver.

    Raises ConfigError if transactions are configured without the option `topic`, because the ledger of batches
    (`sink_commit`) is stored as a committed offset of this topic's first partition.
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
        if is_batch_pending(options):  # the batch was written before; its commit will be continued
            return TaskWritten(0, query_id=query_id)
        written = write_task(options, self._columns, batches)
        return TaskWritten(written.records, written.transaction, query_id)

    def commit(self, messages: list[Any], batch_id: int) -> None:
        if self._is_transactional:  # Spark runs at least one task
            commit_batch(options_of_query(self._options, messages[0].query_id), messages, batch_id)

    def abort(self, messages: list[Any]) -> None:
        query_id = next((each.query_id for each in messages if each is not None and each.query_id is not None), None)
        if query_id is not None:  # without transactions, and without the message of any task, there is nothing to abort
            abort_batch(options_of_query(self._options, query_id), messages)


def options_of_query(options: WriteOptions, query_id: str) -> WriteOptions:
    """Returns the options with the id of the query appended to the transactional id.

    The batches of each checkpoint need a ledger of their own, and the query's id identifies the checkpoint.
    """
    transactional_id = f"{options.properties[TRANSACTIONAL_ID]}-{query_id}"
    properties = ClientProperties({**options.properties, TRANSACTIONAL_ID: transactional_id})
    return options._replace(properties=properties)
