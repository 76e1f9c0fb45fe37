"""The columns of the data source: those of Spark's own Kafka source, in its order and with its types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkapy.errors import ConfigError

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
HEADERS = "headers"
# As DDL and as simpleString of a type has them.
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
    """The schema as Spark's DDL."""
    names = (*COLUMNS, HEADERS) if include_headers else COLUMNS
    return ", ".join(f"{name} {_TYPES[name]}" for name in names)


def chosen_columns(schema: Any) -> tuple[str, ...]:
    """The names of a schema that the user may have given: any of the columns, in any order. The rest is not decoded.

    ConfigError for a column that there is not, or with another type.
    """
    for field in schema.fields:
        expected = _TYPES.get(field.name)
        if expected is None:
            raise ConfigError(f"The data source kafkapy has no column {field.name}: it has {', '.join(_TYPES)}")
        if field.dataType.simpleString() != expected:
            raise ConfigError(f"Column {field.name} is {expected}, not {field.dataType.simpleString()}")
    return tuple(field.name for field in schema.fields)


def arrow_schema(names: Sequence[str]) -> Any:
    """The same as Arrow's schema, which Spark compares with what comes."""
    import pyarrow as arrow  # only where rows are made

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
