"""Reads topics in a batch: plans on the driver, decodes on the executors."""

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
    """Owns what is to be read.  `partitions` runs on the driver, `read` on the executors, in one thread each."""

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
        if partition.value is None:  # Spark's stand-in where there is nothing to read
            return iter(())
        return read_range(self._options, self._columns, OffsetRange(*partition.value))


class FilteringBatchReader(BatchReader):
    """Narrows what it reads by filters; Spark looks at each row again.

    Only on demand, by the option pushFilters: Spark (4.3) keeps what a DataFrame's reader planned with the filters of
    one query, and takes it for the next query of the same DataFrame too if that has none.
    """

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802  Spark's name
        self._filters = row_filters(filters)
        return filters
