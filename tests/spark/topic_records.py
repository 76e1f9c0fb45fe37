"""Records as both data sources give them, without a broker: of a batch, and of a stream whose micro-batches are
chosen."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

SCHEMA = "key binary, value binary, topic string, partition int, offset long, timestamp timestamp"
START = datetime.datetime(2017, 5, 1, 12, 0, tzinfo=datetime.UTC)
_NUMBERS = count()


def at(seconds: float) -> datetime.datetime:
    """So long after the start of the tests' time."""
    return START + datetime.timedelta(seconds=seconds)


def as_bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def record(
    value: str | bytes | None, seconds: float = 0, key: str | None = None, offset: int = 0, topic: str = "t"
) -> tuple:
    return as_bytes(key), as_bytes(value), topic, 0, offset, at(seconds)


def records(spark: SparkSession, values: Sequence[str | bytes | None]) -> DataFrame:
    """One record a second."""
    return spark.createDataFrame([record(value, index, offset=index) for index, value in enumerate(values)], SCHEMA)


def run_stream(
    spark: SparkSession,
    directory: Path,
    batches: Iterable[Iterable[tuple]],
    transform: Callable[[DataFrame], DataFrame],
    *,
    mode: str = "append",
) -> list[list[Row]]:
    """The rows that each micro-batch gave, those that nothing came of left out. Each element of `batches` is one
    micro-batch of `record`s; the same directory again goes on where the last run stopped."""
    folder = directory / "records"
    folder.mkdir(exist_ok=True)
    for rows in batches:
        staged = directory / f"staged-{next(_NUMBERS)}"
        spark.createDataFrame(list(rows), SCHEMA).coalesce(1).write.parquet(str(staged))
        (part,) = staged.glob("*.parquet")
        part.rename(folder / f"{next(_NUMBERS):08d}.parquet")
    found: list[list[Row]] = []
    source = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))
    writer = transform(source).writeStream.outputMode(mode).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(directory / "checkpoint"))
    query = writer.foreachBatch(lambda rows, batch_id: found.append(rows.collect())).start()
    query.awaitTermination()
    return [rows for rows in found if rows]


def values(rows: Iterable[Row], *names: str) -> list[Any]:
    """Columns of rows as plain tuples; a single column as plain values."""
    if len(names) == 1:
        return [row[names[0]] for row in rows]
    return [tuple(row[name] for name in names) for row in rows]
