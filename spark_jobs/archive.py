"""Archive: keeps the records of a topic in files or a table, partitioned by hour, each record once.

`--sink parquet` (the default), `delta` and `iceberg` keep key, value, headers, topic, partition, offset and timestamp
as they are. `--sink text` keeps values as lines of text, so that it rejects values that are no UTF-8 or contain a line
break. The partition `hour` is that of the record's timestamp, such as 2017-05-01-12, in `--time-zone`.

The position is stored with the files, in `--output-path`, unless `--checkpoint` names another folder: the job
continues where it ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafkapy_jobs.arguments import JobParser, add_session, add_sinks, add_source
from kafkapy_jobs.program import run
from kafkapy_jobs.report import observed
from kafkapy_jobs.session import start_session
from kafkapy_jobs.sink import run_stream
from kafkapy_jobs.source import COLUMNS, read_stream
from kafkapy_jobs.tables import LAKES
from kafkapy_jobs.values import valid_text

TOPIC = "words-search"
HOUR = "yyyy-MM-dd-HH"


def with_hours(records: DataFrame, sink: str) -> DataFrame:
    """Adds `hour`, and `reason`, which says why a value cannot be a line of text; other sinks take every record."""
    rows = records.withColumn("hour", F.date_format("timestamp", HOUR))
    if sink != "text":
        return rows.withColumn("reason", F.lit(None).cast("string"))
    text = valid_text("value")
    reason = (
        F.when(F.col("value").isNull(), "null value")
        .when(text.isNull(), "not UTF-8")
        .when(text.rlike(r"[\r\n]"), "a line break")
    )
    return rows.withColumn("reason", reason)


def archived(rows: DataFrame, sink: str) -> DataFrame:
    """Returns the columns that the sink keeps, of the rows without a `reason`."""
    good = rows.where(F.col("reason").isNull())
    if sink == "text":
        return good.select(F.col("value").cast("string").alias("value"), "hour")
    return good.select(*COLUMNS, "headers", "hour")


def no_lines(rows: list[Row]) -> list[str]:
    return []


def parser() -> JobParser:
    options = JobParser(__doc__)
    add_source(options, TOPIC, is_stream=True, value_formats=())
    add_sinks(options, is_stream=True, names=("parquet", "text", *LAKES))
    add_session(options)
    options.set_defaults(default_sink="parquet", is_checkpoint_in_output=True, partition_by=["hour"])
    return options


def main(words: Sequence[str] | None = None) -> None:
    options = parser()
    arguments = options.parse_args(words)
    if len(arguments.sink) != 1:
        options.error("--sink may be given once; run the job for each of them")
    (sink,) = arguments.sink
    spark = start_session("archive", arguments)
    rows = with_hours(read_stream(spark, arguments, has_headers=True), sink)
    kept = archived(observed(rows), sink)
    run_stream(rows, kept, kept, arguments, no_lines)


if __name__ == "__main__":
    run(main)
