"""Daily quotes of stocks, as text separated by commas, or as JSON or msgpack objects.

The columns, or members, are stock_name, stock_code, trade_date, previous_close, open, high, low and close. Text is
split at each comma: the single quotes around name, code and date belong to the data, and a ninth column is allowed. As
in Java's split, empty columns at the end of a row do not count.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafkapy_jobs.values import add_reason, number, trimmed, unquoted, with_text

COLUMNS = ("stock_name", "stock_code", "trade_date", "previous_close", "open", "high", "low", "close")
_NAMES = COLUMNS[:3]


def with_quotes(records: DataFrame, value_format: str = "text") -> DataFrame:
    """Adds the columns, `trade_day` (yyyy-MM-dd) and `reason`, which is null for good rows.

    Prices are doubles, which are exact enough to be compared for equality. Only high and low have to be positive
    numbers: the strategy needs no others, and a row of a suspended stock may lack them. A high or low of 0, which some
    vendors write for a suspended stock, is not a price.
    """
    rows = with_text(records, value_format)
    rows = add_reason(rows, F.length(trimmed(F.col("text"))) == 0, "blank")
    rows = rows.withColumn("fields", _text_fields() if value_format == "text" else _object_fields())
    rows = add_reason(rows, F.size("fields") < len(COLUMNS), f"fewer than {len(COLUMNS)} fields")
    for index, name in enumerate(COLUMNS):
        field = F.get("fields", F.lit(index))
        rows = rows.withColumn(name, trimmed(field) if name in _NAMES else number(field))
    day = F.substring(unquoted(F.col("trade_date")), 1, 10)
    is_date = day.rlike(r"^\d{4}-\d{2}-\d{2}$") & day.try_cast("date").isNotNull()
    rows = rows.withColumn("trade_day", F.when(is_date, day))
    rows = add_reason(rows, F.col("high").isNull(), "the highest price is not a number")
    rows = add_reason(rows, F.col("low").isNull(), "the lowest price is not a number")
    rows = add_reason(rows, (F.col("high") <= 0) | (F.col("low") <= 0), "the highest or lowest price is not positive")
    rows = add_reason(rows, F.col("trade_day").isNull(), "the trade date is not a date")
    return rows.drop("fields", "text")


def _text_fields() -> Column:
    return F.split(F.regexp_replace("text", ",+$", ""), ",")


def _object_fields() -> Column:
    """Returns the members that the JSON object has; fewer than eight show that the row is incomplete."""
    members = F.array(*(F.get_json_object("text", f"$.{name}") for name in COLUMNS))
    return F.filter(members, lambda member: member.isNotNull())


def good(rows: DataFrame) -> DataFrame:
    """Returns the rows that have no `reason`, without that column."""
    return rows.where(F.col("reason").isNull()).drop("reason")


def without_quotes(result: DataFrame) -> DataFrame:
    """Removes the single quotes of the data around names, codes and dates, for results that programs read."""
    texts = {field.name for field in result.schema.fields if field.dataType.simpleString() == "string"}
    return result.select(*(unquoted(F.col(name)).alias(name) if name in texts else name for name in result.columns))
