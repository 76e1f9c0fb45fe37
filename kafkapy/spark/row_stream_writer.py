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
    """The writer of a streaming query with Spark 4.0, which passes the rows one by one. Collects them in columns."""

    def __init__(self, options: WriteOptions, columns: SinkColumns) -> None:
        self._sink = StreamSink(options, columns)
        self._headers_index = columns.headers_index

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        collected = iter(lambda: list(islice(iterator, ROWS_AT_ONCE)), [])
        return self._sink.write(RowColumns(rows, self._headers_index) for rows in collected)

    def commit(self, messages: list[Any], batchId: int) -> None:  # noqa: N803  Spark's name
        self._sink.commit(messages, batchId)

    def abort(self, messages: list[Any], batchId: int) -> None:  # noqa: N803  Spark's name
        self._sink.abort(messages)


class RowColumns:
    """Collected rows, with the members of a pyarrow.RecordBatch that the sink uses.

    `headers_index` is the index of the column with headers, None if the rows have none.
    """

    def __init__(self, rows: list[Any], headers_index: int | None) -> None:
        self._rows = rows
        self.num_rows = len(rows)
        self._headers_index = headers_index

    def column(self, index: int) -> Any:
        """Returns a column as a pyarrow.Array. Its type is inferred from the values, but the column of headers has a
        fixed type."""
        import pyarrow as arrow  # the driver does not need it

        headers = arrow.list_(arrow.struct([("key", arrow.string()), ("value", arrow.binary())]))
        return arrow.array([row[index] for row in self._rows], headers if index == self._headers_index else None)
