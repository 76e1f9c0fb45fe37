"""The columns that the sink writes: key, value, headers, topic and partition, as in Spark's own Kafka sink."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kafkapy.errors import ConfigError
from kafkapy.named_tuple import NamedTuple
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
    """The indexes of the columns in the rows, None for a column that the rows lack.

    `topic` is the topic that the option gives, which takes precedence over the column.
    """

    topic: str | None
    topic_index: int | None
    key_index: int | None
    value_index: int
    partition_index: int | None
    headers_index: int | None


class SinkRecords(NamedTuple):
    """Records of one topic and partition, in columns.

    `keys` and `headers` are None if the rows lack the column. If `partition` is None, the producer's partitioner
    chooses the partition of each record, by its key.
    """

    topic: str
    partition: int | None
    values: Sequence[Any]
    keys: Sequence[Any] | None
    headers: Sequence[Any] | None


def sink_columns(schema: Any, options: WriteOptions) -> SinkColumns:
    """Finds the columns in a DataFrame's schema. Raises ConfigError for a schema that cannot be written."""
    indexes: dict[str, int] = {}
    for number, field in enumerate(schema.fields):
        expected = _TYPES.get(field.name)
        if expected is None:
            continue
        if field.dataType.simpleString() not in expected:
            raise ConfigError(
                f"{field.name} attribute unsupported type {field.dataType.simpleString()}. "
                f"{field.name} must be a {' or '.join(expected)}"
            )
        indexes[field.name] = number
    if "value" not in indexes:
        raise ConfigError(_HINTS["value"])
    if "topic" not in indexes and options.topic is None:
        raise ConfigError(_HINTS["topic"])
    return SinkColumns(
        topic=options.topic,
        topic_index=indexes.get("topic"),
        key_index=indexes.get("key"),
        value_index=indexes["value"],
        partition_index=indexes.get("partition"),
        headers_index=indexes.get("headers"),
    )


def sink_records(columns: SinkColumns, batch: Any) -> Iterator[SinkRecords]:
    """Divides a pyarrow.RecordBatch into runs of equal topic and partition.

    Raises ValueError for a row without a topic.
    """
    count = batch.num_rows
    values = batch.column(columns.value_index).to_pylist()
    keys = _column(batch, columns.key_index)
    headers = _column(batch, columns.headers_index)
    topics = _column(batch, columns.topic_index) if columns.topic is None else None
    partitions = _column(batch, columns.partition_index)
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


def _column(batch: Any, index: int | None) -> Sequence[Any] | None:
    values: Sequence[Any] | None = None if index is None else batch.column(index).to_pylist()
    return values


def _run_ends(topics: Sequence[Any] | None, partitions: Sequence[Any] | None, count: int) -> Iterator[int]:
    """Yields the end of each run of rows that have the same topic and partition: the number of the row after it.

    `count` is the number of rows. None for a column means that it is the same in all rows.
    """
    if topics is not None or partitions is not None:
        for row in range(1, count):
            changes = topics is not None and topics[row] != topics[row - 1]
            if changes or (partitions is not None and partitions[row] != partitions[row - 1]):
                yield row
    if count:
        yield count
