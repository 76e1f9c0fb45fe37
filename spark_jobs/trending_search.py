"""Trending search: the terms of each window that rise most against the window before, for each tenant.

A term rises by `(count - previous) / sqrt(count + previous)`, the distance of two counts in their standard deviations:
twice as many of a rare term say less than of a frequent one. `--rank-by count` orders by count instead.

`--per-address N` counts a term of one address at most N times in a window, so that a single client cannot make a term
popular. `--tenant` divides the records by the record's key or a member of the value, and each tenant has windows of its
own. `--approximate M` keeps only M terms of a tenant and window in memory: each count is too low by at most `error`,
which is at most the number of the window's terms divided by M + 1.

Windows, lateness and heartbeats are those of hot-search. `--approximate` needs PySpark 4.1 or newer, and protobuf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from hot_search import NORMALISATIONS, first_of, with_terms
from kafkapy_jobs import heavy_hitters
from kafkapy_jobs.arguments import JobParser, add_stream, add_windows, count, milliseconds
from kafkapy_jobs.heavy_hitters import Summary
from kafkapy_jobs.program import run
from kafkapy_jobs.report import observed
from kafkapy_jobs.session import require_stateful_processors, start_session
from kafkapy_jobs.shipping import ship
from kafkapy_jobs.sink import as_records, run_stream
from kafkapy_jobs.source import read_stream
from kafkapy_jobs.values import add_reason, member, trimmed, valid_text

TOPIC = "words-search"
TREND = (
    "window_start timestamp, window_end timestamp, tenant string, rank int, term string, count long, previous long, "
    "score double, error long"
)
KEY = "key"
RANKINGS = ("rise", "count")


def with_searches(
    records: DataFrame, value_format: str = "text", field: str = "term", tenant: str = "", address: str = ""
) -> DataFrame:
    """Adds `term`, `tenant`, `address` and `reason`, which says why a record is not counted.

    `tenant` and `address` are names of members, or `key` for the record's key, or empty for none.
    """
    rows = with_terms(records, value_format, field)
    for name, place in (("tenant", tenant), ("address", address)):
        found = valid_text("key") if place == KEY else member(value_format, place) if place else F.lit("")
        rows = rows.withColumn(name, trimmed(found))
        if place:
            is_missing = F.col("value").isNotNull() & (F.coalesce(F.col(name), F.lit("")) == "")
            rows = add_reason(rows, is_missing, f"no {place}")
    return rows


def _counted(rows: DataFrame, lateness: str, normalise: Sequence[str]) -> DataFrame:
    """Returns the rows whose term is counted, with a watermark of `lateness`.

    The condition also looks at the timestamp. Otherwise Spark would apply it before the watermark, and records without
    a term would not advance the watermark.
    """
    term: Column = F.when(F.col("reason").isNull(), F.col("term"))
    for name in normalise:
        term = NORMALISATIONS[name](term)
    is_term = F.when(F.col("timestamp").isNotNull(), F.length("term") > 0)
    return rows.withColumn("term", term).withWatermark("timestamp", lateness).where(is_term)


def rise(count: Column, previous: Column) -> Column:
    """Returns the distance of two counts in their standard deviations."""
    return (count - previous) / F.sqrt(count + previous)


def trends(
    rows: DataFrame,
    window_ms: int,
    lateness: str,
    limit: int,
    *,
    rank_by: str = "rise",
    minimum: int = 1,
    per_address: int | None = None,
    normalise: Sequence[str] = ("trim",),
    window_start: str = "0 seconds",
) -> DataFrame:
    """Returns the first terms of each tenant and window (the columns of TREND), with exact counts.

    Terms with fewer than `minimum` occurrences are left out. A stream needs the append mode.
    """
    # A window of twice the length has the window before in its first half.
    both = F.window("timestamp", f"{2 * window_ms} milliseconds", f"{window_ms} milliseconds", window_start)
    is_now = F.col("timestamp") >= F.col("window.start") + F.expr(f"interval {window_ms} milliseconds")
    # On Spark Connect, a window that `withColumn` adds has no watermark.
    marked = _counted(rows, lateness, normalise).select("*", both.alias("window")).select("*", is_now.alias("is_now"))
    keys = ["window", "tenant", "term"]
    if per_address is not None:
        keys_of_address = [*keys, "address"]
        limited = _halves(marked, keys_of_address)
        most = F.lit(per_address).cast("long")
        limited = limited.select(*keys_of_address, *(F.least(name, most).alias(name) for name in ("count", "previous")))
        sums = [F.sum(name).alias(name) for name in ("count", "previous")]
        counts = limited.groupBy(*keys).agg(*sums)
    else:
        counts = _halves(marked, keys)
    score = rise(F.col("count"), F.col("previous")) if rank_by == "rise" else F.col("count").cast("double")
    entry = F.struct(score.alias("score"), "count", "term", "previous")
    top = counts.where(F.col("count") >= minimum).groupBy("window", "tenant").agg(first_of(entry, limit).alias("top"))
    ranked = top.select("window", "tenant", F.posexplode("top").alias("position", "entry"))
    return ranked.select(
        (F.col("window.end") - F.expr(f"interval {window_ms} milliseconds")).alias("window_start"),
        F.col("window.end").alias("window_end"),
        "tenant",
        (F.col("position") + 1).alias("rank"),
        *(F.col(f"entry.{name}").alias(name) for name in ("term", "count", "previous", "score")),
        F.lit(0).cast("long").alias("error"),
    )


def _halves(marked: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Returns the number of rows of each key in the window (`count`) and in the window before (`previous`)."""
    return marked.groupBy(*keys).agg(
        F.count_if("is_now").alias("count"), F.count_if(~F.col("is_now")).alias("previous")
    )


class BoundedTerms(StatefulProcessor):
    """The state of each tenant and window: summaries of its terms and of those of the window before.

    A timer at the end of the window emits the first terms.
    """

    def __init__(self, capacity: int, limit: int, rank_by: str, minimum: int, window_ms: int) -> None:
        self._capacity = capacity
        self._limit = limit
        self._rank_by = rank_by
        self._minimum = minimum
        self._window_ms = window_ms

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("summaries", "now string, before string")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Counts the terms of a micro-batch."""
        known = self._state.get()
        if known is None:
            now, before = Summary(self._capacity), Summary(self._capacity)
            self._handle.registerTimer(key[1])
        else:
            now, before = Summary.from_json(known[0]), Summary.from_json(known[1])
        for row in rows:
            (now if row["is_now"] else before).add(row["term"])
        self._state.update((now.to_json(), before.to_json()))
        return iter(())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Yields the first terms of the window that has ended."""
        import datetime

        known = self._state.get()
        self._state.clear()
        now, before = Summary.from_json(known[0]), Summary.from_json(known[1])
        entries = []
        for term, number in now.counts.items():
            if number >= self._minimum:
                previous = before.counts.get(term, 0)
                score = (number - previous) / (number + previous) ** 0.5 if self._rank_by == "rise" else float(number)
                entries.append((score, number, term.encode("utf-8", "surrogatepass"), term, previous))
        end = datetime.datetime.fromtimestamp(key[1] / 1000, datetime.UTC)
        start = end - datetime.timedelta(milliseconds=self._window_ms)
        error = max(now.error, before.error) if self._rank_by == "rise" else now.error
        for position, (score, number, _, term, previous) in enumerate(sorted(entries, reverse=True)[: self._limit], 1):
            yield Row(window_start=start, window_end=end, tenant=key[0], rank=position, term=term, count=number,
                      previous=previous, score=score, error=error)  # fmt: skip


def bounded_trends(
    rows: DataFrame,
    window_ms: int,
    lateness: str,
    limit: int,
    capacity: int,
    *,
    rank_by: str = "rise",
    minimum: int = 1,
    normalise: Sequence[str] = ("trim",),
    window_start_ms: int = 0,
) -> DataFrame:
    """Returns what `trends` returns, for a stream, from at most `capacity` terms of each tenant and window.

    A record that is later than `lateness` is left out, although its window may still be open.
    """
    ship(heavy_hitters)
    counted = _counted(rows, lateness, normalise)
    time = F.unix_millis("timestamp")
    end = time - F.pmod(time - F.lit(window_start_ms), F.lit(window_ms)) + F.lit(window_ms)
    places = [F.struct(end.alias("end"), F.lit(True).alias("is_now"))]
    if rank_by == "rise":
        places.append(F.struct((end + F.lit(window_ms)).alias("end"), F.lit(False).alias("is_now")))
    placed = counted.select("tenant", "term", "timestamp", F.explode(F.array(*places)).alias("place"))
    flat = placed.select("tenant", "term", "timestamp", F.col("place.end").alias("end"), F.col("place.is_now"))
    processor = BoundedTerms(capacity, limit, rank_by, minimum, window_ms)
    return flat.groupBy("tenant", "end").transformWithState(processor, TREND, "append", "eventTime")


def lines_by(rank_by: str) -> Callable[[list[Row]], list[str]]:
    """Returns the printer of the windows of a batch: a line for each window and tenant, and one for each term."""

    def lines(rows: list[Row]) -> list[str]:
        found: list[str] = []
        place: Any = None
        for row in sorted(rows, key=lambda row: (row["window_end"], row["tenant"], row["rank"])):
            if (row["window_end"], row["tenant"]) != place:
                place = row["window_end"], row["tenant"]
                found.append(f"{row['window_end']:%Y-%m-%d %H:%M:%S} {row['tenant']}".rstrip())
            more = f", {row['previous']} before, {row['score']:+.1f}" if rank_by == "rise" else ""
            error = f" to {row['count'] + row['error']}" if row["error"] else ""
            found.append(f"{row['rank']:>4} {row['term']}: {row['count']}{error}{more}")
        return found

    return lines


def ranking(rows: list[Row]) -> tuple[str, list[tuple[str, float]]]:
    """Returns the end of the last window and the counts of its terms, for the page."""
    end = max(row["window_end"] for row in rows)
    last = sorted((row for row in rows if row["window_end"] == end), key=lambda row: (row["tenant"], row["rank"]))
    return f"{end:%Y-%m-%d %H:%M:%S}", [(f"{row['tenant']} {row['term']}".strip(), row["count"]) for row in last]


def parser() -> JobParser:
    options = JobParser(__doc__)
    add_windows(options, "5 min", "1 min", slides=False)
    group = options.add_argument_group("terms")
    group.add_argument("--top", type=count, default=10, metavar="N", help="terms of each window and tenant; default 10")
    group.add_argument("--rank-by", choices=RANKINGS, default="rise", help="default rise")
    group.add_argument("--minimum", type=count, default=5, metavar="N", help="of a term's occurrences; default 5")
    group.add_argument("--tenant", default="", metavar="NAME", help="key, or a member of JSON and msgpack values")
    group.add_argument("--per-address", type=count, metavar="N", help="at most N of a term from one address")
    group.add_argument(
        "--address", default="", metavar="NAME", help="with --per-address: key, or a member; default client"
    )
    group.add_argument("--approximate", type=count, metavar="M", help="keep M terms of each tenant and window")
    group.add_argument("--normalise", choices=NORMALISATIONS, action="append", help="as hot-search; default trim")
    group.add_argument("--field", default="term", metavar="NAME", help="of JSON and msgpack values; default term")
    options.fix_in_checkpoint("--tenant", "--per-address", "--approximate")
    return add_stream(options, TOPIC)


def main(words: Sequence[str] | None = None) -> None:
    options = parser()
    arguments = options.parse_args(words)
    if arguments.per_address and arguments.approximate:
        options.error("--approximate has no memory for addresses: give it or --per-address")
    address = (arguments.address or "client") if arguments.per_address else ""
    for name, place in (("--tenant", arguments.tenant), ("--address", address)):
        if arguments.value_format == "text" and place not in ("", KEY):
            options.error(f"{name} {place} is a member of values: give --value-format json or msgpack, or {name} key")
    if arguments.approximate:
        require_stateful_processors()
    spark = start_session("trending-search", arguments)
    rows = with_searches(
        read_stream(spark, arguments), arguments.value_format, arguments.field, arguments.tenant, address
    )
    window = (observed(rows), milliseconds(arguments.window), arguments.lateness, arguments.top)
    common = {
        "rank_by": arguments.rank_by,
        "minimum": arguments.minimum,
        "normalise": tuple(arguments.normalise or ("trim",)),
    }
    if arguments.approximate:
        start_ms = int(arguments.window_start.split()[0])
        found = bounded_trends(*window, arguments.approximate, window_start_ms=start_ms, **common)
    else:
        found = trends(*window, per_address=arguments.per_address, window_start=arguments.window_start, **common)
    key = "tenant" if arguments.tenant else F.date_format("window_end", "yyyy-MM-dd'T'HH:mm:ssXXX")
    run_stream(rows, found, as_records(found, key), arguments, lines_by(arguments.rank_by), ranking=ranking)


if __name__ == "__main__":
    run(main)
