"""Hot search: the most searched terms of each window of time, from a topic of search terms.

A value is one search term. Windows are windows of event time (the records' timestamps), aligned to the
epoch. A window's result appears once, when the watermark (the newest timestamp less `--lateness`) has passed the
window's end. Records that are late are counted until then; after that they are left out and reported. Time advances
only with records: a value that is empty (null or blank) is not counted but advances time, as a heartbeat.

The most frequent terms come first. Terms with the same count are in descending order of their characters.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from kafkapy_jobs.arguments import JobParser, add_stream, add_windows, count
from kafkapy_jobs.program import run
from kafkapy_jobs.report import observed
from kafkapy_jobs.session import start_session
from kafkapy_jobs.sink import as_records, run_stream
from kafkapy_jobs.source import read_stream
from kafkapy_jobs.values import member, trimmed, with_text

TOPIC = "words-search"
RULE = "=" * 37
HEADINGS = {
    "en": "Most searched until {:%Y-%m-%d %H:%M:%S}:",
    "zh": "时间:[{:%Y-%m-%d %H:%M:%S}],热搜词如下:",
}
NORMALISATIONS = {
    "trim": trimmed,
    "spaces": lambda term: F.regexp_replace(term, r"\s+", " "),
    "lower": F.lower,
}


def with_terms(records: DataFrame, value_format: str = "text", field: str = "term") -> DataFrame:
    """Adds `text`, `term`, and `reason`, which says why a value cannot be read.

    A null value is a heartbeat and has no reason.
    """
    rows = with_text(records, value_format).withColumn("term", member(value_format, field))
    is_fault = F.col("value").isNotNull()
    rows = rows.withColumn("reason", F.when(is_fault, F.col("reason")))
    if value_format != "text":
        rows = rows.withColumn("reason", F.coalesce("reason", F.when(is_fault & F.col("term").isNull(), "no " + field)))
    return rows


def top_terms(
    rows: DataFrame,
    window: str,
    slide: str,
    lateness: str,
    limit: int,
    normalise: tuple[str, ...] = ("trim",),
    window_start: str = "0 seconds",
) -> DataFrame:
    """Returns (window_start, window_end, rank from 1, term, count) of the first `limit` terms of each window.

    `rows` need `timestamp` and `term`; durations are Spark's. A stream needs the append mode.
    """
    term: Column = F.col("term")
    for name in normalise:
        term = NORMALISATIONS[name](term)
    # Heartbeats have to advance the watermark. Spark would apply the condition before the watermark if it did not
    # contain the timestamp.
    is_term = F.when(F.col("timestamp").isNotNull(), F.length("term") > 0)
    counts = (
        rows.withColumn("term", term)
        .withWatermark("timestamp", lateness)
        .where(is_term)
        .groupBy(F.window("timestamp", window, slide, window_start), "term")
        .agg(F.count(F.lit(1)).alias("count"))
    )
    entry = F.struct("count", "term")
    top = counts.groupBy("window").agg(first_of(entry, limit).alias("top"))
    ranked = top.select("window", F.posexplode("top").alias("position", "entry"))
    return ranked.select(
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        (F.col("position") + 1).alias("rank"),
        F.col("entry.term").alias("term"),
        F.col("entry.count").alias("count"),
    )


def first_of(entry: Column, limit: int) -> Column:
    """Returns the `limit` greatest entries of a group, greatest first.

    From Spark 4.2 on this does not collect all entries of the group.
    """
    if "k" in inspect.signature(F.max_by).parameters:
        return F.max_by(entry, entry, limit)
    return F.slice(F.sort_array(F.collect_list(entry), asc=False), 1, limit)


def lines(rows: list[Row], language: str = "zh") -> list[str]:
    """Formats the windows of a batch, each as a line with the window's end and a line for each term."""
    windows: dict[Any, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["window_end"], row["rank"])):
        windows.setdefault(row["window_end"], []).append(row)
    found = []
    for end, terms in windows.items():
        found += [RULE, HEADINGS[language].format(end)]
        found += [f"{row['term']}:{row['count']}" for row in terms]
        found.append(RULE)
    return found


def ranking(rows: list[Row], language: str) -> tuple[str, list[tuple[str, float]]]:
    """Returns the heading and the terms of the last window, for the page."""
    end = max(row["window_end"] for row in rows)
    last = sorted((row for row in rows if row["window_end"] == end), key=lambda row: row["rank"])
    return HEADINGS[language].format(end), [(row["term"], row["count"]) for row in last]


def parser() -> JobParser:
    options = JobParser(__doc__)
    add_windows(options, "5 min", "1 min")
    options.add_argument("--top", type=count, default=10, metavar="N", help="terms of each window; default 10")
    options.add_argument(
        "--normalise",
        choices=NORMALISATIONS,
        action="append",
        help="in this order: trim (alone the default), spaces (runs of white space become one space), lower",
    )
    options.add_argument("--field", default="term", metavar="NAME", help="of JSON and msgpack values; default term")
    add_stream(options, TOPIC)
    options.set_defaults(language="zh")  # the output of the published example, which is in Chinese
    return options


def main(words: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(words)
    spark = start_session("hot-search", arguments)
    rows = with_terms(read_stream(spark, arguments), arguments.value_format, arguments.field)
    normalise = tuple(arguments.normalise or ("trim",))
    window = (arguments.window, arguments.slide, arguments.lateness)
    top = top_terms(observed(rows), *window, arguments.top, normalise, arguments.window_start)
    records = as_records(top, F.date_format("window_end", "yyyy-MM-dd'T'HH:mm:ssXXX"))
    language = arguments.language
    run_stream(
        rows,
        top,
        records,
        arguments,
        lambda rows: lines(rows, language),
        ranking=lambda rows: ranking(rows, language),
    )


if __name__ == "__main__":
    run(main)
