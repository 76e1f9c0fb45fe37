"""What could not be read, as records for a topic of dead letters."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def dead_letters(rejected: DataFrame) -> DataFrame:
    """The records unchanged, with the headers `error`, `topic`, `partition`, `offset` and `timestamp` of where they
    were."""
    headers = F.array(
        _header("error", F.col("reason")),
        *(_header(name, F.col(name)) for name in ("topic", "partition", "offset", "timestamp")),
    )
    return rejected.select(
        "key", "value", F.filter(headers, lambda header: header["value"].isNotNull()).alias("headers")
    )


def _header(name: str, value: Column) -> Column:
    return F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
