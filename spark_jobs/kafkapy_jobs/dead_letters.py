"""Records for a topic of dead letters: the values that could not be read."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def dead_letters(rejected: DataFrame) -> DataFrame:
    """Returns the records with their keys and values, and with headers that say where they come from and what is wrong.

    The headers are `error`, `topic`, `partition`, `offset` and `timestamp` (ISO 8601 with milliseconds and the offset
    of the session's time zone); they replace those of the record.
    """
    headers = F.array(
        _header("error", F.col("reason")),
        *(_header(name, F.col(name)) for name in ("topic", "partition", "offset")),
        _header("timestamp", F.date_format("timestamp", "yyyy-MM-dd'T'HH:mm:ss.SSSXXX")),
    )
    return rejected.select(
        "key", "value", F.filter(headers, lambda header: header["value"].isNotNull()).alias("headers")
    )


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
