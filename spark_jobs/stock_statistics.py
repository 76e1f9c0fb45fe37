"""Stock statistics: quotes, lowest and highest price, first and last close of each stock and window of time.

Windows are windows of the records' timestamps, the times at which the quotes were sent.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafkapy_jobs.arguments import JobParser, add_stream, add_windows
from kafkapy_jobs.program import run
from kafkapy_jobs.quotes import with_quotes
from kafkapy_jobs.report import observed
from kafkapy_jobs.session import start_session
from kafkapy_jobs.sink import as_records, run_stream
from kafkapy_jobs.source import read_stream
from kafkapy_jobs.values import unquoted

TOPIC = "stock-quotes"


def statistics(rows: DataFrame, window: str, slide: str, lateness: str, window_start: str = "0 seconds") -> DataFrame:
    """Returns the statistics of each stock and window, of the rows without a `reason`.

    The columns are window_start, window_end, stock_code, quotes, lowest, highest, average_close, first_close and
    last_close. First and last are by timestamp, then by partition and offset. A stream needs the append mode.
    """
    order = F.struct("timestamp", "partition", "offset")
    grouped = (
        rows.where(F.col("reason").isNull())
        .withWatermark("timestamp", lateness)
        .groupBy(F.window("timestamp", window, slide, window_start), unquoted(F.col("stock_code")).alias("stock_code"))
        .agg(
            F.count(F.lit(1)).alias("quotes"),
            F.min("low").alias("lowest"),
            F.max("high").alias("highest"),
            F.avg("close").alias("average_close"),
            F.min_by("close", order).alias("first_close"),
            F.max_by("close", order).alias("last_close"),
        )
    )
    start, end = F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end")
    return grouped.select(start, end, *(name for name in grouped.columns if name != "window"))


def lines(rows: list[Row]) -> list[str]:
    ordered = sorted(rows, key=lambda row: (row["window_end"], row["stock_code"]))
    return [
        f"{row['window_end']:%Y-%m-%d %H:%M:%S} {row['stock_code']}: {row['quotes']} quotes, {row['lowest']} to "
        f"{row['highest']}, close {row['first_close']} to {row['last_close']}"
        for row in ordered
    ]


def parser() -> JobParser:
    options = JobParser(__doc__)
    add_windows(options, "1 min", "10 s")
    return add_stream(options, TOPIC)


def main(words: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(words)
    spark = start_session("stock-statistics", arguments)
    rows = with_quotes(read_stream(spark, arguments), arguments.value_format)
    window = (arguments.window, arguments.slide, arguments.lateness, arguments.window_start)
    found = statistics(observed(rows), *window)
    records = as_records(found, "stock_code")
    run_stream(rows, found, records, arguments, lines)


if __name__ == "__main__":
    run(main)
