"""Writes a DataFrame to topics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from kafkapy.spark.options import WriteOptions
from kafkapy.spark.shipping import Shipped
from kafkapy.spark.sink import write_task
from kafkapy.spark.sink_columns import SinkColumns
from kafkapy.spark.sink_commit import abort_tasks, commit_tasks


class BatchWriter(Shipped, DataSourceArrowWriter):
    """The writer of a batch query, which writes every record at least once.

    With `kafka.transactional.id` it writes all records or none, unless the driver dies while it commits.
    """

    def __init__(self, options: WriteOptions, columns: SinkColumns) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return write_task(self._options, self._columns, iterator)

    def commit(self, messages: list[Any]) -> None:
        commit_tasks(self._options, messages)

    def abort(self, messages: list[Any]) -> None:
        abort_tasks(self._options, messages)
