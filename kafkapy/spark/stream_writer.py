"""Writes a stream to topics with Spark 4.1 or later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from kafkapy.spark.options import WriteOptions
from kafkapy.spark.shipping import Shipped
from kafkapy.spark.sink_columns import SinkColumns
from kafkapy.spark.stream_sink import StreamSink


class StreamWriter(Shipped, DataSourceStreamArrowWriter):
    """The writer of a streaming query, which writes every record at least once.

    With `kafka.transactional.id` it writes every record exactly once: the driver commits the tasks' transactions.
    """

    def __init__(self, options: WriteOptions, columns: SinkColumns) -> None:
        self._sink = StreamSink(options, columns)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return self._sink.write(iterator)

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803  Spark's name
        self._sink.commit(messages, batchId)

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803  Spark's name
        self._sink.abort(messages)
