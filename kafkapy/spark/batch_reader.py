"""The reader of batch queries, which plans on the driver and decodes on the executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kafkapy.spark.batch_planning import plan
from kafkapy.spark.options import ReadOptions
from kafkapy.spark.range_reader import read_range
from kafkapy.spark.row_filters import RowFilters, row_filters
from kafkapy.spark.shipping import Shipped
from kafkapy.spark.source_cluster import SourceCluster
from kafkapy.spark.stream_offset import OffsetRange


class BatchReader(Shipped, DataSourceReader):
    """The reader of a batch query. `partitions` runs on the driver, `read` on the executors, each in one thread."""

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns
        self._filters = RowFilters()

    def partitions(self) -> list[InputPartition]:
        cluster = SourceCluster(self._options)
        try:
            return [InputPartition(tuple(each)) for each in plan(cluster, self._options, self._filters)]
        finally:
            cluster.close()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if partition is None or partition.value is None:  # Spark 4.0 and later pass this if there are no ranges
            return iter(())
        return read_range(self._options, self._columns, OffsetRange(*partition.value))


class FilteringBatchReader(BatchReader):
    """A reader that narrows its ranges by filters; Spark applies the filters to each row again.

    The option pushFilters enables this class. It is off by default because of a behaviour of Spark 4.3. Spark caches
    the plan that the reader of a DataFrame has made for the filters of one query. If the next query of the same
    DataFrame has no filters, Spark reuses the cached plan, and the query lacks rows.
    """

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802  Spark's name
        self._filters = row_filters(filters)
        return filters
