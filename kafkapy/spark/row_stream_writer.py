"""Writes a stream to topics with Spark 4.0, which passes the rows one by one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage

from kafkapy.spark.options import WriteOptions
from kafkapy.spark.shipping import Shipped
from kafkapy.spark.sink_columns import SinkColumns
from kafkapy.spark.stream_sink import StreamSink

ROWS_AT_ONCE = 10_000


class RowStreamWriter(Shipped, DataSourceStreamWriter):
    """The writer of a streaming query, which collects the rows that Spark passes one by one in columns."""

    def __init__(self, options: WriteOptions, columns: SinkColumns) -> None:
        self._sink = StreamSink(options, columns)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return self._sink.write(RowColumns(rows) for rows in iter(lambda: list(islice(iterator, ROWS_AT_ONCE)), []))

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803  Spark's name
        self._sink.commit(messages, batchId)

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803  Spark's name
        self._sink.abort(messages)


class RowColumns:
    """Collected rows, with the methods of a pyarrow.RecordBatch that return columns as lists."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows
        self.num_rows = len(rows)

    def column(self, index: int) -> RowColumn:
        return RowColumn([row[index] for row in self._rows])


class RowColumn:
    """One column of `RowColumns`, with the method of a pyarrow.Array that returns its values."""

    def __init__(self, values: list[Any]) -> None:
        self._values = values

    def to_pylist(self) -> list[Any]:
        return self._values
