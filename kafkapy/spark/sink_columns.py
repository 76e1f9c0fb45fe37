"""The columns that the sink writes: key, value, headers, topic and partition, as in Spark's own Kafka sink."""

from __future__ import annotations

from collections.abc import Iterator
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

    `topic` is the value of the option topic, None if the option is not set. It takes precedence over the column topic.
    """

    topic: str | None
    topic_index: int | None
    key_index: int | None
    value_index: int
    partition_index: int | None
    headers_index: int | None


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


def rows_by_topic(columns: SinkColumns, batch: Any) -> Iterator[tuple[str, Any]]:
    """Yields each topic of a pyarrow.RecordBatch with its rows, in their order, as `Producer.send_arrow` accepts them.

    Raises ValueError for a row without a topic.
    """
    import pyarrow as arrow  # the driver does not need it
    from pyarrow import compute

    indexes = {
        "key": columns.key_index,
        "value": columns.value_index,
        "partition": columns.partition_index,
        "headers": columns.headers_index,
    }
    rows = arrow.RecordBatch.from_pydict(
        {name: batch.column(index) for name, index in indexes.items() if index is not None}
    )
    if not rows.num_rows:
        return
    if columns.topic is not None:
        yield columns.topic, rows
        return
    topics = batch.column(columns.topic_index)
    if topics.null_count:
        raise ValueError("null topic present in the data. Use the topic option for setting a topic.")
    encoded = topics.dictionary_encode()
    counts = encoded.indices.value_counts().field("counts")  # in the order of the codes, because that of their rows
    if len(counts) > 1:
        rows = rows.take(compute.sort_indices(encoded.indices))
    start = 0
    for topic, count in zip(encoded.dictionary.to_pylist(), counts.to_pylist(), strict=True):
        yield topic, rows.slice(start, count)
        start += count
