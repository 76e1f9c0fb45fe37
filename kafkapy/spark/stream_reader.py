"""Reads topics in micro-batches.

One object lives on the driver for as long as a query and answers where it stands; copies of it, pickled, read on the
executors. Spark's checkpoint has what `StreamOffset` makes of it, and a batch that is repeated has the same ranges.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kafkapy.spark.options import ReadOptions
from kafkapy.spark.range_reader import read_range
from kafkapy.spark.read_limits import SupportsAvailableNow, admits_limits, default_limit, is_unlimited
from kafkapy.spark.shipping import Shipped
from kafkapy.spark.stream_offset import OffsetRange
from kafkapy.spark.stream_position import StreamPosition


class StreamReader(Shipped, SupportsAvailableNow, DataSourceStreamReader):
    """Owns the position of a query, on the driver.  One thread; `read` runs on the executors."""

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns
        self._position: StreamPosition | None = None
        admits_limits(options)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_position": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  here and below: Spark's names
        return self._there().initial().to_json()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        return default_limit(self._options)

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        return self._there().next_end(start, is_unlimited=is_unlimited(limit)).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return self._there().latest_seen()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._there().stop_at_latest()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [InputPartition(tuple(each)) for each in self._there().ranges(start, end)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if partition.value is None:
            return iter(())
        return read_range(self._options, self._columns, OffsetRange(*partition.value))

    def stop(self) -> None:
        if self._position is not None:
            self._position.close()
            self._position = None

    def _there(self) -> StreamPosition:
        if self._position is None:
            self._position = StreamPosition(self._options)
        return self._position
