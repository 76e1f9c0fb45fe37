"""Out-of-order events: the number of events of each key and window, corrected as late events arrive.

A window is one of event time. Its result appears with its first event, and again, with the next `revision`, whenever a
micro-batch brings more events of it. `out_of_order` counts the events that were older than an event of the same key
that had arrived before. The last result of a window is right: events may be late by `--lateness`, and those that are
later are left out and reported.

In a topic, the key of a result is the key of the events and the window's start, so that a compacted topic has the last
result of each window.

Needs PySpark 4.1 or newer, and protobuf.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from kafkapy_jobs.arguments import JobParser, add_stream, add_windows, milliseconds
from kafkapy_jobs.program import run
from kafkapy_jobs.report import observed
from kafkapy_jobs.session import require_stateful_processors, start_session
from kafkapy_jobs.sink import as_records, run_stream
from kafkapy_jobs.source import read_stream
from kafkapy_jobs.values import valid_text

TOPIC = "events"
COUNTS = (
    "key string, window_start timestamp, window_end timestamp, count long, out_of_order long, revision long, "
    "newest timestamp"
)


class Windows(StatefulProcessor):
    """The state of each key: the time of the newest event, and the counts of the windows that may still change.

    Times are event time in milliseconds. A timer removes a window when the watermark has passed its end.
    """

    def __init__(self, window_ms: int, start_ms: int) -> None:
        self._window_ms = window_ms
        self._start_ms = start_ms

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._newest = handle.getValueState("newest", "time_ms long")
        self._windows = handle.getMapState("windows", "start long", "events long, out_of_order long, revision long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Yields the windows that the events of this micro-batch have changed, in the order of their starts."""
        known = self._newest.get()
        newest = None if known is None else known[0]
        added: dict[int, list[int]] = {}
        for row in sorted(rows, key=lambda row: (row["partition"], row["offset"])):
            time = row["time_ms"]
            seen = added.setdefault(time - (time - self._start_ms) % self._window_ms, [0, 0])
            seen[0] += 1
            seen[1] += newest is not None and time < newest
            newest = time if newest is None else max(newest, time)
        self._newest.update((newest,))
        for start in sorted(added):
            before = self._windows.getValue((start,))
            if before is None:
                self._handle.registerTimer(start + self._window_ms)
            events, out_of_order, revision = before or (0, 0, 0)
            counts = (events + added[start][0], out_of_order + added[start][1], revision + 1)
            self._windows.updateValue((start,), counts)
            yield self._result(key[0], start, counts, newest)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Removes the window that has ended. If the key has no other window, also removes the time of its newest
        event."""
        start = expiredTimerInfo.getExpiryTimeInMs() - self._window_ms
        self._windows.removeKey((start,))
        if next(iter(self._windows.keys()), None) is None:
            self._newest.clear()
        return iter(())

    def _result(self, key: str, start: int, counts: tuple[int, int, int], newest: int | None) -> Row:
        import datetime

        def moment(ms: int) -> datetime.datetime:
            return datetime.datetime.fromtimestamp(ms / 1000, datetime.UTC)

        count, out_of_order, revision = counts
        assert newest is not None
        return Row(key=key, window_start=moment(start), window_end=moment(start + self._window_ms), count=count,
                   out_of_order=out_of_order, revision=revision, newest=moment(newest))  # fmt: skip


def with_names(records: DataFrame) -> DataFrame:
    """Adds `name`, the key as text, which is empty for records without one, and `reason` for keys that are no text."""
    rows = records.withColumn("name", F.when(F.col("key").isNull(), "").otherwise(valid_text("key")))
    return rows.withColumn("reason", F.when(F.col("name").isNull(), "the key is not UTF-8"))


def corrected_counts(rows: DataFrame, window_ms: int, lateness: str, start_ms: int = 0) -> DataFrame:
    """Returns the columns of COUNTS for a stream; the query needs the append mode."""
    good = rows.where(F.col("reason").isNull()).withWatermark("timestamp", lateness)
    events = good.select("name", "timestamp", "partition", "offset", F.unix_millis("timestamp").alias("time_ms"))
    return events.groupBy("name").transformWithState(Windows(window_ms, start_ms), COUNTS, "append", "eventTime")


def lines(rows: list[Row]) -> list[str]:
    """Formats each result as a line, in the order of windows and keys."""
    return [
        f"{row['window_start']:%Y-%m-%d %H:%M:%S} {row['key']}: {row['count']} ({row['out_of_order']} out of order, "
        f"revision {row['revision']})"
        for row in sorted(rows, key=lambda row: (row["window_start"], row["key"]))
    ]


def parser() -> JobParser:
    options = JobParser(__doc__)
    add_windows(options, "1 min", "10 min", slides=False)
    return add_stream(options, TOPIC, value_formats=(), is_final=False)


def main(words: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(words)
    require_stateful_processors()
    spark = start_session("out-of-order", arguments)
    rows = with_names(read_stream(spark, arguments))
    start_ms = int(arguments.window_start.split()[0])
    found = corrected_counts(observed(rows), milliseconds(arguments.window), arguments.lateness, start_ms)
    start = F.date_format("window_start", "yyyy-MM-dd'T'HH:mm:ssXXX")
    run_stream(rows, found, as_records(found, F.concat_ws(" ", "key", start)), arguments, lines)


if __name__ == "__main__":
    run(main)
