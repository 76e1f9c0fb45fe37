"""Reprocessing: sends the records of a topic again, all of them or those of a time, as they are or changed.

The job reads what the topic has now, from `--from` to `--until` (timestamps of records), and ends. `--where` chooses
records, `--new-key` and `--new-value` change them: they are expressions of Spark's SQL over the columns key and value
(binary), text (the value as text), topic, partition, offset, timestamp and headers. Send dead letters to their topic
again with it, or the history of a topic to a new topic, for a new version of a program.

Each record is written once: an interrupted run continues from its checkpoint, and a further run with the checkpoint
sends what has arrived since. Headers stay, and the header `reprocessed-from` names topic, partition and offset. A
record for which an expression fails is a dead letter.
"""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafkapy_jobs.arguments import AVAILABLE_NOW, JobParser, add_session, add_sinks, add_source
from kafkapy_jobs.program import run
from kafkapy_jobs.report import observed
from kafkapy_jobs.session import start_session
from kafkapy_jobs.sink import run_stream
from kafkapy_jobs.source import read_stream
from kafkapy_jobs.values import valid_text

ORIGIN = "reprocessed-from"


def moment(text: str) -> datetime.datetime:
    """Parses an option that is a time with its offset from UTC, such as 2017-03-01T09:30:00+08:00."""
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 2017-03-01T09:30:00+08:00")
    return found


def changed(
    records: DataFrame,
    *,
    where: str = "true",
    new_key: str = "key",
    new_value: str = "value",
    since: datetime.datetime | None = None,
    until: datetime.datetime | None = None,
) -> DataFrame:
    """Returns the chosen records, with `new_key` and `new_value` as binary, and `reason` if one of them is lost.

    A key or value that was not null and becomes null counts as a failed expression, except by a constant `null`.
    """
    rows = records.withColumn("text", valid_text("value"))
    if since is not None:
        rows = rows.where(F.col("timestamp") >= F.lit(since))
    if until is not None:
        rows = rows.where(F.col("timestamp") < F.lit(until))
    rows = rows.where(F.expr(where))
    for name, expression in (("key", new_key), ("value", new_value)):
        rows = rows.withColumn(f"new_{name}", F.expr(f"try_cast(({expression}) as string)").cast("binary"))
        if expression.strip().lower() in ("key", "value"):  # bytes that are no text stay as they are
            rows = rows.withColumn(f"new_{name}", F.expr(expression))
    is_lost = F.lit(False)
    for name, expression in (("key", new_key), ("value", new_value)):
        if expression.strip().lower() != "null":
            is_lost = is_lost | (F.col(name).isNotNull() & F.col(f"new_{name}").isNull())
    return rows.withColumn("reason", F.when(is_lost, "an expression has no result"))


def again(rows: DataFrame) -> DataFrame:
    """Returns the records to send: key, value and headers."""
    origin = F.concat_ws("-", "topic", F.col("partition").cast("string"), F.col("offset").cast("string"))
    header = F.struct(F.lit(ORIGIN).alias("key"), origin.cast("binary").alias("value"))
    kept = F.coalesce(F.col("headers"), F.array().cast("array<struct<key string, value binary>>"))
    good = rows.where(F.col("reason").isNull())
    return good.select(
        F.col("new_key").alias("key"),
        F.col("new_value").alias("value"),
        F.concat(kept, F.array(header)).alias("headers"),
    )


def no_lines(rows: list[Row]) -> list[str]:
    return []


def parser() -> JobParser:
    options = JobParser(__doc__)
    options.add_argument("--from", dest="since", type=moment, metavar="TIME", help="the first timestamp; default: all")
    options.add_argument("--until", type=moment, metavar="TIME", help="timestamps before this one; default: all")
    options.add_argument("--where", default="true", metavar="SQL", help="a condition; default: all records")
    options.add_argument("--new-key", default="key", metavar="SQL", help="default: the same")
    options.add_argument("--new-value", default="value", metavar="SQL", help="default: the same")
    add_source(options, "words-search", is_stream=True, value_formats=())
    add_sinks(options, is_stream=True, is_final=False, names=("topic",))
    add_session(options)
    options.set_defaults(trigger=AVAILABLE_NOW, is_written_by_tasks=True)
    return options


def main(words: Sequence[str] | None = None) -> None:
    options = parser()
    arguments = options.parse_args(words)
    if arguments.output_topic == arguments.topic and arguments.trigger != AVAILABLE_NOW:
        options.error("--output-topic is --topic: with --trigger LENGTH the job would read what it has written")
    if arguments.since is not None and arguments.source != "files":
        first_ms = str(int(arguments.since.timestamp() * 1000))
        start = [("startingTimestamp", first_ms), ("startingOffsetsByTimestampStrategy", "latest")]
        arguments.source_option = [*start, *arguments.source_option]
    spark = start_session("reprocess", arguments)
    records = read_stream(spark, arguments, has_headers=True)
    rows = changed(
        records,
        where=arguments.where,
        new_key=arguments.new_key,
        new_value=arguments.new_value,
        since=arguments.since,
        until=arguments.until,
    )
    sent = again(observed(rows))
    run_stream(rows, sent, sent, arguments, no_lines)


if __name__ == "__main__":
    run(main)
