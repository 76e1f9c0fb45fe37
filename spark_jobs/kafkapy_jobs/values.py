"""Values of records as text, and what is wrong with those that are none.

`with_text` adds two columns: `text`, the value as text (JSON text for json and msgpack), and `reason`, why it could
not be read (null if it could). A job adds reasons of its own; what has one goes to the dead letters and not into the
result.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

# What Java's String.trim takes away: everything up to the space, control characters too.
_EDGES = r"^[\x00-\x20]+|[\x00-\x20]+$"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


# Objects whose members and texts stand in single quotes are read too.
LENIENT = {"allowSingleQuotes": "true"}


def valid_text(column: str) -> Column:
    """Bytes as text; null if they are not UTF-8."""
    return F.try_validate_utf8(F.col(column).cast("string"))


def columns_of_schema(records: DataFrame, schema: str) -> DataFrame:
    """The columns of a schema, in Spark's words, from each value's JSON object; nulls where it has none, or is none."""
    return records.select(F.from_json(valid_text("value"), schema, LENIENT).alias("row")).select("row.*")


def with_text(records: DataFrame, value_format: str) -> DataFrame:
    """Adds `text` and `reason`. A value has to be there and to be what `value_format` (text, json, msgpack) says."""
    value, text = F.col("value"), F.col("text")
    is_msgpack = value_format == "msgpack"
    as_text = _msgpack_as_json()(value) if is_msgpack else valid_text("value")
    reason = F.when(value.isNull(), "null value").when(text.isNull(), "not msgpack" if is_msgpack else "not UTF-8")
    if value_format == "json":
        reason = reason.when(F.try_parse_json(text).isNull(), "not JSON")
    return records.withColumn("text", as_text).withColumn("reason", reason)


def _msgpack_as_json() -> Callable[[Column], Column]:
    def as_json(value: bytes | None) -> str | None:
        # Runs on executors: what it needs it imports itself.
        import json

        import msgpack

        if value is None:
            return None
        try:
            return json.dumps(msgpack.unpackb(value), ensure_ascii=False, allow_nan=False)
        except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
            return None

    # Said outright, because Spark would look for a form in the annotations, and warn that it found none.
    return F.udf(as_json, StringType(), useArrow=False)


def add_reason(records: DataFrame, condition: Column, reason: str) -> DataFrame:
    """`reason` for the rows that a condition finds, unless they have one."""
    return records.withColumn("reason", F.coalesce("reason", F.when(condition, reason)))


def member(value_format: str, name: str) -> Column:
    """The text itself, or, for json and msgpack, one member of its object as text (a path: `a.b`)."""
    return F.col("text") if value_format == "text" else F.get_json_object("text", f"$.{name}")


def trimmed(text: Column) -> Column:
    """Without white space and control characters at both ends."""
    return F.regexp_replace(text, _EDGES, "")


def unquoted(text: Column) -> Column:
    """Without single quotes around it."""
    return F.regexp_replace(text, "^'|'$", "")


def number(text: Column) -> Column:
    """A finite number as a double; null for anything else, `NaN` and `Infinity` among it."""
    plain = trimmed(text)
    found = F.when(plain.rlike(_NUMBER), plain).try_cast("double")
    return F.when(F.abs(found) < float("inf"), found)
