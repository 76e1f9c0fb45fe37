"""Reads topics in micro-batches.

One reader exists on the driver as long as its query, and owns the query's position. Pickled copies of the reader read
on the executors. Spark's checkpoint stores the JSON of `StreamOffset`, and a batch that is repeated has the same
ranges.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kafkapy.errors import ConfigError
from kafkapy.spark.options import ReadOptions
from kafkapy.spark.range_reader import read_range
from kafkapy.spark.read_limits import SupportsAvailableNow, check_limits, default_limit, is_unlimited
from kafkapy.spark.shipping import Shipped
from kafkapy.spark.stream_offset import OffsetRange
from kafkapy.spark.stream_position import StreamPosition


class StreamReader(Shipped, SupportsAvailableNow, DataSourceStreamReader):
    """The reader of a streaming query. For one thread; `read` runs on executors.

    On the driver it owns the query's position. It has no `commit`: Spark's checkpoint alone stores which offsets are
    done.
    """

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns
        self._position: StreamPosition | None = None
        check_limits(options)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_position": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  a name of Spark's, as those below
        return self._get_position().initial().to_json()

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        return default_limit(self._options)

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        return self._get_position().next_end(start, is_unlimited=is_unlimited(limit)).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return self._get_position().latest_seen()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._get_position().stop_at_latest()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [InputPartition(tuple(each)) for each in self._get_position().ranges(start, end)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        if partition is None or partition.value is None:  # Spark 4.0 and later pass this if there are no ranges
            return iter(())
        return read_range(self._options, self._columns, OffsetRange(*partition.value))

    def stop(self) -> None:
        if self._position is not None:
            self._position.close()
            self._position = None

    def _get_position(self) -> StreamPosition:
        if self._position is None:
            self._position = StreamPosition(self._options)
        return self._position


class RefusingStreamReader(Shipped, SupportsAvailableNow, DataSourceStreamReader):
    """A reader that Spark gets instead of a StreamReader if the options are wrong.

    Each of its methods raises the ConfigError that explains the mistake.
    """

    def __init__(self, error: ConfigError) -> None:
        self._error = error

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        raise self._error

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        raise self._error

    def latestOffset(self, start: dict[str, Any] | None = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        raise self._error

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        raise self._error

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        raise self._error

    def read(self, partition: InputPartition) -> Iterator[Any]:
        raise self._error
