"""The name and the columns of the data source. Spark's own Kafka source has the same columns, order and types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkapy.errors import ConfigError

FORMAT = "kafkapy"
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
HEADERS = "headers"
# Types in the notation of DDL, which a type's simpleString uses too.
_TYPES = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    HEADERS: "array<struct<key:string,value:binary>>",
}


def schema_text(*, include_headers: bool) -> str:
    """Returns the schema as Spark's DDL; `include_headers` adds the column headers."""
    names = (*COLUMNS, HEADERS) if include_headers else COLUMNS
    return ", ".join(f"{name} {_TYPES[name]}" for name in names)


def chosen_columns(schema: Any) -> tuple[str, ...]:
    """Returns the names of the columns of `schema`, which is the source's schema or one that the user has given.

    The user's schema may have any of the source's columns in any order; the other columns are not decoded. Raises
    ConfigError for a column that the source does not have, or has with another type.
    """
    for field in schema.fields:
        expected = _TYPES.get(field.name)
        if expected is None:
            raise ConfigError(f"The data source kafkapy has no column {field.name}: it has {', '.join(_TYPES)}")
        if field.dataType.simpleString() != expected:
            raise ConfigError(f"Column {field.name} is {expected}, not {field.dataType.simpleString()}")
    return tuple(field.name for field in schema.fields)


def arrow_schema(names: Sequence[str]) -> Any:
    """Returns the Arrow schema of columns, which Spark compares with the schema of the batches."""
    import pyarrow as arrow  # the driver does not need it

    types = {
        "key": arrow.binary(),
        "value": arrow.binary(),
        "topic": arrow.string(),
        "partition": arrow.int32(),
        "offset": arrow.int64(),
        "timestamp": arrow.timestamp("us", tz="UTC"),
        "timestampType": arrow.int32(),
        HEADERS: arrow.list_(
            arrow.field("element", arrow.struct([("key", arrow.string()), ("value", arrow.binary())]))
        ),
    }
    return arrow.schema([(name, types[name]) for name in names])
