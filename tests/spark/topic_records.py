"""Records with the columns of both data sources, without a broker: of a batch, and of a stream with chosen
micro-batches."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from kafkapy_jobs.source import RECORD

SCHEMA = RECORD
START = datetime.datetime(2017, 5, 1, 12, 0, tzinfo=datetime.UTC)
_NUMBERS = count()


def at(seconds: float) -> datetime.datetime:
    """Returns the time that many seconds after START."""
    return START + datetime.timedelta(seconds=seconds)


def as_bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def record(
    value: str | bytes | None, seconds: float = 0, key: str | None = None, offset: int = 0, topic: str = "t"
) -> tuple:
    return as_bytes(key), as_bytes(value), topic, 0, offset, at(seconds)


def records(spark: SparkSession, values: Sequence[str | bytes | None]) -> DataFrame:
    """Returns records with these values, one for each second."""
    return spark.createDataFrame([record(value, index, offset=index) for index, value in enumerate(values)], SCHEMA)


def run_stream(
    spark: SparkSession,
    directory: Path,
    batches: Iterable[Iterable[tuple]],
    transform: Callable[[DataFrame], DataFrame],
    *,
    mode: str = "append",
) -> list[list[Row]]:
    """Runs a stream and returns the rows of each micro-batch that has rows. Each element of `batches` is a micro-batch
    of `record`s. With the directory of an earlier run, the stream continues where that run ended."""
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
    """Returns the columns of rows as tuples, or a single column as values."""
    if len(names) == 1:
        return [row[names[0]] for row in rows]
    return [tuple(row[name] for name in names) for row in rows]
