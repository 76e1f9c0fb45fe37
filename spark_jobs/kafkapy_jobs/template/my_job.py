"""My job: the number of values of each kind and window of time, from a topic.

Run it with `kafkapy jobs submit ./my_job.py --help`. The options of source, windows and sinks are those of the bundled
jobs; see "Jobs of your own" in kafkapy's docs/spark-jobs.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafkapy_jobs.arguments import JobParser, add_stream, add_windows
from kafkapy_jobs.program import run
from kafkapy_jobs.report import observed
from kafkapy_jobs.session import start_session
from kafkapy_jobs.sink import as_records, run_stream
from kafkapy_jobs.source import read_stream
from kafkapy_jobs.values import add_reason, member, trimmed, with_text

NAME = "my-job"
TOPIC = "my-job"


def with_kinds(records: DataFrame, value_format: str, field: str) -> DataFrame:
    """Adds the column `kind`, and `reason`, which says why a value cannot be read and is null for good values."""
    rows = with_text(records, value_format)
    rows = rows.withColumn("kind", trimmed(member(value_format, field)))
    return add_reason(rows, F.coalesce(F.col("kind"), F.lit("")) == "", f"no {field}")


def counts(rows: DataFrame, window: str, slide: str, lateness: str, window_start: str = "0 seconds") -> DataFrame:
    """Returns window_start, window_end, kind and count; a window appears when the watermark has passed its end."""
    good = rows.where(F.col("reason").isNull()).withWatermark("timestamp", lateness)
    counted = good.groupBy(F.window("timestamp", window, slide, window_start), "kind").count()
    return counted.select(
        F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end"), "kind", "count"
    )


def lines(rows: list[Row]) -> list[str]:
    """Formats the rows of a micro-batch for the console."""
    ordered = sorted(rows, key=lambda row: (row["window_end"], -row["count"], row["kind"]))
    return [f"{row['window_end']:%Y-%m-%d %H:%M:%S} {row['kind']}: {row['count']}" for row in ordered]


def parser() -> JobParser:
    options = JobParser(__doc__)
    add_windows(options, "1 min", "10 s")
    options.add_argument("--field", default="kind", metavar="NAME", help="of JSON and msgpack values; default kind")
    return add_stream(options, TOPIC)


def main(words: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(words)
    spark = start_session(NAME, arguments)
    rows = with_kinds(read_stream(spark, arguments), arguments.value_format, arguments.field)
    window = (arguments.window, arguments.slide, arguments.lateness, arguments.window_start)
    found = counts(observed(rows), *window)
    run_stream(rows, found, as_records(found, "kind"), arguments, lines)


if __name__ == "__main__":
    run(main)
