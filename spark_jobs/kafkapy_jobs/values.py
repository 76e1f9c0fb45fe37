"""Turns values of records into text, and says why a value cannot be read.

`with_text` adds two columns: `text` is the value as text (JSON text for json and msgpack); `reason` says why the value
cannot be read, and is null for readable values. A job adds reasons of its own. Rows with a reason become dead letters
and are left out of the result.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from kafkapy_jobs.arguments import RegistryFormat

# The characters that Java's String.trim removes: the space and all control characters below it.
_EDGES = r"^[\x00-\x20]+|[\x00-\x20]+$"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


# Objects with names and texts in single quotes are accepted too.
LENIENT = {"allowSingleQuotes": "true"}


def valid_text(column: str) -> Column:
    """Decodes bytes as UTF-8; the result is null if they are not UTF-8."""
    return F.try_validate_utf8(F.col(column).cast("string"))


def columns_of_schema(records: DataFrame, schema: str) -> DataFrame:
    """Returns the columns of a schema (Spark's DDL) from the JSON object in each value.

    A member that is missing is null; so are all columns of a value that is not an object.
    """
    return records.select(F.from_json(valid_text("value"), schema, LENIENT).alias("row")).select("row.*")


def with_text(records: DataFrame, value_format: str) -> DataFrame:
    """Adds `text` and `reason`, which is null if the value is valid in `value_format`.

    The format is text, json, msgpack, or a RegistryFormat, whose values become JSON text.
    """
    value, text = F.col("value"), F.col("text")
    if isinstance(value_format, RegistryFormat):
        from kafkapy.spark.schemas import registry_text

        decoded = records.withColumn("decoded", registry_text(value, value_format.url, str(value_format)))
        reason = F.when(value.isNull(), "null value").otherwise(F.col("decoded.error"))
        return decoded.withColumn("text", F.col("decoded.text")).withColumn("reason", reason).drop("decoded")
    is_msgpack = value_format == "msgpack"
    as_text = _msgpack_as_json()(value) if is_msgpack else valid_text("value")
    reason = F.when(value.isNull(), "null value").when(text.isNull(), "not msgpack" if is_msgpack else "not UTF-8")
    if value_format == "json":
        reason = reason.when(F.try_parse_json(text).isNull(), "not JSON")
    return records.withColumn("text", as_text).withColumn("reason", reason)


def _msgpack_as_json() -> Callable[[Column], Column]:
    def as_json(value: bytes | None) -> str | None:
        # This function runs on executors, where only its own imports are available.
        import json

        import msgpack

        if value is None:
            return None
        try:
            return json.dumps(msgpack.unpackb(value), ensure_ascii=False, allow_nan=False)
        except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
            return None

    # useArrow is given, because Spark would derive it from the annotations and warn that it cannot.
    function: Callable[[Column], Column] = F.udf(as_json, StringType(), useArrow=False)
    return function


def add_reason(records: DataFrame, condition: Column, reason: str) -> DataFrame:
    """Sets `reason` of the rows for which the condition is true and that have no reason yet."""
    return records.withColumn("reason", F.coalesce("reason", F.when(condition, reason)))


def member(value_format: str, name: str) -> Column:
    """Returns the text itself or, for json and msgpack, a member of its object as text.

    `name` may be a path such as `a.b`.
    """
    return F.col("text") if value_format == "text" else F.get_json_object("text", f"$.{name}")


def trimmed(text: Column) -> Column:
    """Removes white space and control characters at both ends."""
    return F.regexp_replace(text, _EDGES, "")


def unquoted(text: Column) -> Column:
    """Removes a single quote at each end."""
    return F.regexp_replace(text, "^'|'$", "")


def number(text: Column) -> Column:
    """Parses a finite number as a double; null for any other text, such as `NaN` and `Infinity`."""
    plain = trimmed(text)
    found = F.when(plain.rlike(_NUMBER), plain).try_cast("double")
    return F.when(F.abs(found) < float("inf"), found)


def or_null(value: object) -> str:
    """Returns a value as text, and null for None, as Java prints them; an empty text stays empty."""
    return "null" if value is None else str(value)
