"""The columns that are written: key, value, headers, topic, partition, as Spark's own Kafka sink takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kafkapy.errors import ConfigError
from kafkapy.spark.options import WriteOptions

_TYPES = {
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "headers": ("array<struct<key:string,value:binary>>",),
    "topic": ("string",),
    "partition": ("int",),
}
_HINTS = {
    "value": "Required attribute 'value' not found",
    "topic": "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic.",
}


class SinkColumns(NamedTuple):
    """Which columns of the rows are there, by number. `topic` is the option, which goes before the column."""

    topic: str | None
    topic_at: int | None
    key_at: int | None
    value_at: int
    partition_at: int | None
    headers_at: int | None


class SinkRecords(NamedTuple):
    """Records of one topic and partition (None: as their keys have it), in columns. Keys and headers may be missing."""

    topic: str
    partition: int | None
    values: Sequence[Any]
    keys: Sequence[Any] | None
    headers: Sequence[Any] | None


def sink_columns(schema: Any, options: WriteOptions) -> SinkColumns:
    """Of a DataFrame's schema; ConfigError for one that cannot be written."""
    at: dict[str, int] = {}
    for number, field in enumerate(schema.fields):
        expected = _TYPES.get(field.name)
        if expected is None:
            continue
        if field.dataType.simpleString() not in expected:
            raise ConfigError(
                f"{field.name} attribute unsupported type {field.dataType.simpleString()}. "
                f"{field.name} must be a {' or '.join(expected)}"
            )
        at[field.name] = number
    if "value" not in at:
        raise ConfigError(_HINTS["value"])
    if "topic" not in at and options.topic is None:
        raise ConfigError(_HINTS["topic"])
    return SinkColumns(
        options.topic, at.get("topic"), at.get("key"), at["value"], at.get("partition"), at.get("headers")
    )


def sink_records(columns: SinkColumns, batch: Any) -> Iterator[SinkRecords]:
    """A pyarrow.RecordBatch, in runs of equal topic and partition; ValueError for a row without a topic."""
    count = batch.num_rows
    values = batch.column(columns.value_at).to_pylist()
    keys = None if columns.key_at is None else batch.column(columns.key_at).to_pylist()
    headers = None if columns.headers_at is None else batch.column(columns.headers_at).to_pylist()
    topics = _column(batch, columns.topic_at) if columns.topic is None else None
    partitions = _column(batch, columns.partition_at)
    start = 0
    for end in _run_ends(topics, partitions, count):
        topic = columns.topic if topics is None else topics[start]
        if topic is None:
            raise ValueError("null topic present in the data. Use the topic option for setting a topic.")
        yield SinkRecords(
            topic,
            None if partitions is None else partitions[start],
            values[start:end],
            None if keys is None else keys[start:end],
            None if headers is None else headers[start:end],
        )
        start = end


def _column(batch: Any, at: int | None) -> Sequence[Any] | None:
    found: Sequence[Any] | None = None if at is None else batch.column(at).to_pylist()
    return found


def _run_ends(topics: Sequence[Any] | None, partitions: Sequence[Any] | None, count: int) -> Iterator[int]:
    """Behind each run of rows that go to the same place."""
    if topics is not None or partitions is not None:
        for row in range(1, count):
            changes = topics is not None and topics[row] != topics[row - 1]
            if changes or (partitions is not None and partitions[row] != partitions[row - 1]):
                yield row
    if count:
        yield count
