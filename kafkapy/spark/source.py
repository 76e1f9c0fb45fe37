"""The class of the data source `kafkapy` that Spark calls for its schema, readers and writers."""

from __future__ import annotations

from typing import Any

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, DataSourceWriter
from pyspark.sql.types import StructType

from kafkapy.errors import ConfigError
from kafkapy.spark.columns import FORMAT, chosen_columns, schema_text
from kafkapy.spark.options import ReadOptions, includes_headers, read_options, write_options
from kafkapy.spark.shipping import Shipped
from kafkapy.spark.sink_columns import sink_columns


class KafkapySource(Shipped, DataSource):
    """The data source. Spark creates an object of this class for each query.

    The method that Spark calls first raises ConfigError for wrong options. If the user gives a schema, only its columns
    are decoded. The modules of readers and writers are imported at their first use, because Spark imports this module
    merely to list the formats.
    """

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return schema_text(include_headers=includes_headers(self._given()))

    def reader(self, schema: StructType) -> DataSourceReader:
        from kafkapy.spark.batch_reader import BatchReader, FilteringBatchReader

        options = self._read_options(is_streaming=False)
        kind = FilteringBatchReader if options.push_filters else BatchReader
        return kind(options, chosen_columns(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        from kafkapy.spark.stream_reader import RefusingStreamReader, StreamReader

        try:
            return StreamReader(self._read_options(is_streaming=True), chosen_columns(schema))
        except ConfigError as error:
            # An exception here would be hidden by another error: Spark would then call `stop` of a missing reader.
            return RefusingStreamReader(error)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from kafkapy.spark.batch_writer import BatchWriter

        options = write_options(self._given())
        return BatchWriter(options, sink_columns(schema, options))

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: N802  Spark's name
        options = write_options(self._given())
        columns = sink_columns(schema, options)
        if hasattr(datasource, "DataSourceStreamArrowWriter"):
            from kafkapy.spark.stream_writer import StreamWriter

            return StreamWriter(options, columns)
        from kafkapy.spark.row_stream_writer import RowStreamWriter  # Spark 4.0

        return RowStreamWriter(options, columns)

    def _given(self) -> dict[str, str]:
        return dict(self.options)

    def _read_options(self, *, is_streaming: bool) -> ReadOptions:
        return read_options(self._given(), is_streaming=is_streaming)
