"""Server metrics: average, minimum and maximum of each metric that servers report, for each server and window of time.

Values are the JSON events of Metricbeat (`@timestamp`, `beat.name` or `host.name`, and numbers at paths such as
`system.cpu.user.pct`); time is the event's `@timestamp`. An event without any of the requested metrics is ignored, one
without time or server becomes a dead letter.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafkapy_jobs.arguments import OBJECT_FORMATS, JobParser, add_stream, add_windows
from kafkapy_jobs.program import run
from kafkapy_jobs.report import observed
from kafkapy_jobs.session import start_session
from kafkapy_jobs.sink import as_records, run_stream
from kafkapy_jobs.source import read_stream
from kafkapy_jobs.values import add_reason, member, number, with_text

TOPIC = "server-metrics"
METRICS = ("system.cpu.user.pct", "system.cpu.system.pct", "system.memory.used.pct", "system.load.1")


def with_events(records: DataFrame, value_format: str = "json") -> DataFrame:
    """Adds `time`, `server`, and `reason`, which says why a value is not an event of a server."""
    rows = with_text(records, value_format)
    rows = rows.withColumn("time", F.get_json_object("text", "$['@timestamp']").try_cast("timestamp"))
    names = [member("json", name) for name in ("beat.name", "host.name", "beat.hostname", "agent.name")]
    rows = rows.withColumn("server", F.coalesce(*names))
    rows = add_reason(rows, F.col("time").isNull(), "no @timestamp")
    return add_reason(rows, F.col("server").isNull(), "no name of a server")


def summaries(
    rows: DataFrame, metrics: tuple[str, ...], window: str, slide: str, lateness: str, window_start: str = "0 seconds"
) -> DataFrame:
    """Returns the summary of each metric, for each server and window, of the rows without a `reason`.

    The columns are window_start, window_end, server, metric, count, average, least and greatest. A stream needs the
    append mode.
    """
    found = F.array(
        *(F.struct(F.lit(name).alias("metric"), number(member("json", name)).alias("value")) for name in metrics)
    )
    values = rows.where(F.col("reason").isNull()).select("time", "server", F.inline(found))
    grouped = (
        values.where(F.col("value").isNotNull())
        .withWatermark("time", lateness)
        .groupBy(F.window("time", window, slide, window_start), "server", "metric")
        .agg(
            F.count("value").alias("count"),
            F.avg("value").alias("average"),
            F.min("value").alias("least"),
            F.max("value").alias("greatest"),
        )
    )
    start, end = F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end")
    return grouped.select(start, end, "server", "metric", "count", "average", "least", "greatest")


def lines(rows: list[Row]) -> list[str]:
    ordered = sorted(rows, key=lambda row: (row["window_end"], row["server"], row["metric"]))
    return [
        f"{row['window_end']:%Y-%m-%d %H:%M:%S} {row['server']} {row['metric']}: average {row['average']:g}, "
        f"least {row['least']:g}, greatest {row['greatest']:g} of {row['count']}"
        for row in ordered
    ]


def parser() -> JobParser:
    options = JobParser(__doc__)
    options.add_argument(
        "--metric", action="append", metavar="PATH", help=f"may be repeated; default {', '.join(METRICS)}"
    )
    add_windows(options, "5 min", "1 min")
    return add_stream(options, TOPIC, value_formats=OBJECT_FORMATS)


def main(words: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(words)
    spark = start_session("server-metrics", arguments)
    rows = with_events(read_stream(spark, arguments), arguments.value_format)
    metrics = tuple(arguments.metric or METRICS)
    window = (arguments.window, arguments.slide, arguments.lateness, arguments.window_start)
    found = summaries(observed(rows), metrics, *window)
    records = as_records(found, "server")
    run_stream(rows, found, records, arguments, lines)


if __name__ == "__main__":
    run(main)
