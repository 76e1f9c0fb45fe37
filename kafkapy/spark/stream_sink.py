"""What a micro-batch writes and when it counts: tasks write, the driver commits by the number of the batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafkapy.errors import ConfigError
from kafkapy.spark.options import WriteOptions
from kafkapy.spark.sink import TRANSACTIONAL_ID, TaskWritten, write_task
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
        if self._is_transactional and is_batch_pending(self._options):
            return TaskWritten(0)  # this batch is written, the driver has died while it committed: it will go on
        return write_task(self._options, self._columns, batches)

    def commit(self, messages: list[Any], batch_id: int) -> None:
        if self._is_transactional:
            commit_batch(self._options, messages, batch_id)

    def abort(self, messages: list[Any]) -> None:
        abort_tasks(self._options, messages)
