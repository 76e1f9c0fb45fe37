"""Translates filters that Spark pushes down into narrower ranges. This module has no state and does no I/O.

Filters on topic, partition, offset, and lower bounds of the timestamp narrow the ranges. Spark applies all filters to
each row again, so the ranges may be too wide but not too narrow. An upper bound of the timestamp does not narrow
them, because a record that is written later may have an earlier timestamp.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition

MOST = (1 << 63) - 1


class RowFilters(NamedTuple):
    """The rows that pass the filters, as sets and ranges of their topics, partitions and offsets.

    If `topics` or `partitions` is None, all of them pass. Ranges do not include their end. `first_ms` is the earliest
    timestamp (ms since 1970) that passes, or None if all timestamps pass.
    """

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    first_partition: int = 0
    end_partition: int = MOST
    first_offset: int = 0
    end_offset: int = MOST
    first_ms: int | None = None

    def keeps(self, partition: TopicPartition) -> bool:
        """Returns whether the topic and the number of `partition` pass the filters."""
        is_topic = self.topics is None or partition.topic in self.topics
        is_partition = self.partitions is None or partition.partition in self.partitions
        return is_topic and is_partition and self.first_partition <= partition.partition < self.end_partition


def row_filters(filters: Iterable[Any]) -> RowFilters:
    """Returns the combination of those filters that restrict topics, partitions, offsets or timestamps.

    `filters` are objects of the filter classes in `pyspark.sql.datasource`, recognised by the names of the classes.
    Other filters are ignored.
    """
    found = RowFilters()
    for each in filters:
        path: tuple[str, ...] = getattr(each, "attribute", ())
        if len(path) == 1:
            found = _with(found, type(each).__name__, path[0], getattr(each, "value", None))
    return found


def _with(found: RowFilters, kind: str, column: str, value: Any) -> RowFilters:
    values = value if kind == "In" else (value,) if kind in ("EqualTo", "EqualNullSafe") else None
    if column == "topic" and values is not None:
        wanted = frozenset(each for each in values if isinstance(each, str))
        return found._replace(topics=wanted if found.topics is None else found.topics & wanted)
    if column == "partition":
        return _with_partitions(found, kind, value, values)
    if column == "offset":
        first, end = _bounds(kind, value, values)
        return found._replace(first_offset=max(found.first_offset, first), end_offset=min(found.end_offset, end))
    if column == "timestamp":
        first_ms = _first_ms(kind, value, values)
        if first_ms is not None:
            return found._replace(first_ms=first_ms if found.first_ms is None else max(found.first_ms, first_ms))
    return found


def _with_partitions(found: RowFilters, kind: str, value: Any, values: Iterable[Any] | None) -> RowFilters:
    if values is None:
        first, end = _bounds(kind, value, None)
        return found._replace(
            first_partition=max(found.first_partition, first), end_partition=min(found.end_partition, end)
        )
    wanted = frozenset(each for each in values if isinstance(each, int))
    return found._replace(partitions=wanted if found.partitions is None else found.partitions & wanted)


def _bounds(kind: str, value: Any, values: Iterable[Any] | None) -> tuple[int, int]:
    """Returns the range of numbers, without its end, that pass a filter of class `kind`.

    `values` are the numbers of a filter that lists them; otherwise it is None, and `value` is the number to compare
    with.
    """
    if values is not None:
        numbers = [each for each in values if isinstance(each, int)]
        return (min(numbers), max(numbers) + 1) if numbers else (0, 0)
    if not isinstance(value, int):
        return 0, MOST
    return {
        "GreaterThan": (value + 1, MOST),
        "GreaterThanOrEqual": (value, MOST),
        "LessThan": (0, value),
        "LessThanOrEqual": (0, value + 1),
    }.get(kind, (0, MOST))


def _first_ms(kind: str, value: Any, values: Iterable[Any] | None) -> int | None:
    if values is not None:
        times = list(values)
        value = min(times) if times and all(isinstance(each, datetime) and each.tzinfo for each in times) else None
    elif kind not in ("GreaterThan", "GreaterThanOrEqual"):
        return None
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    first_ms = int(value.timestamp() * 1000) - 1  # timestamps have microseconds; Spark compares exactly
    # Records without a timestamp have -1, pass a bound before 1970, and are not found by a look-up of a timestamp.
    return first_ms if first_ms >= 0 else None
