"""Streams and tables: one topic read as Kafka Streams' KStream and KTable, and the aggregates of both.

`--as stream` prints every record. `--as table` prints changes: the last value of each key in each micro-batch, like a
table whose cache is flushed at each commit. `--as max` prints the greatest whole number of each key so far, or with
`--window` of each key in each window. `--as table-max` prints the greatest integer (4 bytes, big-endian) that each key
of a table has had. The result does not decrease if a smaller value replaces the value of a key: it is that of an
aggregate in Kafka Streams whose adder and subtractor are both `max`.

`--as table` needs PySpark 4.1 or newer, and protobuf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from kafkapy_jobs.arguments import JobParser, add_stream, duration
from kafkapy_jobs.program import run
from kafkapy_jobs.report import observed
from kafkapy_jobs.session import require_stateful_processors, start_session
from kafkapy_jobs.sink import as_records, run_stream
from kafkapy_jobs.source import read_stream
from kafkapy_jobs.values import add_reason, or_null, trimmed, valid_text, with_text

TOPIC = "streams-foo"
CHANGE = "key string, value string, old_value string"


class LastValue(StatefulProcessor):
    """The state of each key of a table: its value."""

    def __init__(self, sends_old_values: bool) -> None:
        self._sends_old_values = sends_old_values

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("value", "value string")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Yields one change of this key, from the value before these rows to the last of their values."""
        known = self._state.get()
        old = known[0] if known else None
        last = max(rows, key=lambda row: (row["partition"] or 0, row["offset"] or 0))
        if last["text"] is None:
            self._state.clear()
        else:
            self._state.update((last["text"],))
        yield Row(key=key[0], value=last["text"], old_value=old if self._sends_old_values else None)


def with_keys(records: DataFrame) -> DataFrame:
    """Adds `name`, the key as text, with `text` and `reason`; a null value is a deletion and has no reason."""
    rows = with_text(records, "text").withColumn("name", valid_text("key"))
    return rows.withColumn("reason", F.when(F.col("value").isNotNull(), F.col("reason")))


def stream(rows: DataFrame) -> DataFrame:
    """Returns the columns key and value of every row without a `reason`."""
    return rows.where(F.col("reason").isNull()).select(F.col("name").alias("key"), F.col("text").alias("value"))


def table(rows: DataFrame, *, sends_old_values: bool = False) -> DataFrame:
    """Returns the changes of a table as the columns key, value and old_value; the query needs the append mode.

    Records without a key are ignored. `old_value` is null unless `sends_old_values` is set.
    """
    named = rows.where(F.col("reason").isNull() & F.col("name").isNotNull())
    return named.groupBy("name").transformWithState(LastValue(sends_old_values), CHANGE, "append", "none")


def with_numbers(rows: DataFrame) -> DataFrame:
    """Adds `number`, parsed from a text such as 42, and `reason`."""
    rows = rows.withColumn("number", trimmed(F.col("text")).try_cast("long"))
    return add_reason(rows, F.col("value").isNotNull() & F.col("number").isNull(), "not a whole number")


def with_integers(records: DataFrame) -> DataFrame:
    """Adds `name`, `number`, decoded from four bytes, and `reason`."""
    unsigned = F.conv(F.hex("value"), 16, 10).cast("long")
    rows = records.withColumn("name", valid_text("key"))
    rows = rows.withColumn(
        "number", F.when(F.length("value") == 4, unsigned - F.when(unsigned >= 2**31, 2**32).otherwise(0))
    )
    return rows.withColumn(
        "reason", F.when(F.col("value").isNotNull() & F.col("number").isNull(), "not an integer of 4 bytes")
    )


def greatest(rows: DataFrame, window: str | None = None) -> DataFrame:
    """Returns the greatest `number` of each key as the columns key and value, with `window_start` if there are windows.

    A stream needs the update mode.
    """
    good = rows.where(F.col("reason").isNull() & F.col("number").isNotNull() & F.col("name").isNotNull())
    value = F.max("number").alias("value")
    if window is None:
        return good.groupBy(F.col("name").alias("key")).agg(value)
    # There is no watermark, because the published example of a KTable never closes a window.
    windows: Column = F.window("timestamp", window)
    found = good.groupBy(windows, F.col("name").alias("key")).agg(value)
    return found.select("key", "value", F.col("window.start").alias("window_start"))


def stream_lines(rows: list[Row]) -> list[str]:
    return [f"[KSTREAM-SOURCE-0000000000]: {or_null(row['key'])} , {or_null(row['value'])}" for row in rows]


def table_lines(rows: list[Row]) -> list[str]:
    return [
        f"[KTABLE-SOURCE-0000000001]: {row['key']} , ({or_null(row['value'])}<-{or_null(row['old_value'])})"
        for row in sorted(rows, key=lambda row: row["key"])
    ]


def greatest_lines(rows: list[Row]) -> list[str]:
    found = []
    for row in sorted(rows, key=lambda row: row["key"]):
        key = f"[{row['key']}@{row['window_start']:%H:%M:%S}]" if "window_start" in row else row["key"]
        found.append(f"{key} , {row['value']}")
    return found


def parser() -> JobParser:
    options = JobParser(__doc__)
    options.add_argument("--as", choices=("stream", "table", "max", "table-max"), default="stream", dest="form")
    options.add_argument(
        "--window", type=duration, metavar="LENGTH", help="with --as max: of each window, not of all time"
    )
    options.add_argument("--old-values", action="store_true", help="with --as table: show the replaced value")
    options.fix_in_checkpoint("--as", "--window")
    return add_stream(options, TOPIC, is_final=False, value_formats=())


def main(words: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(words)
    if arguments.form == "table":
        require_stateful_processors()
    spark = start_session("streams-and-tables", arguments)
    records = read_stream(spark, arguments)
    printer: Callable[[list[Row]], list[str]] = greatest_lines
    mode = "update"
    if arguments.form in ("stream", "table"):
        rows = with_keys(records)
        seen, mode = observed(rows), "append"
        is_stream = arguments.form == "stream"
        result = stream(seen) if is_stream else table(seen, sends_old_values=arguments.old_values)
        printer = stream_lines if is_stream else table_lines
    else:
        rows = with_integers(records) if arguments.form == "table-max" else with_numbers(with_keys(records))
        result = greatest(observed(rows), arguments.window)
    run_stream(rows, result, as_records(result, "key"), arguments, printer, mode=mode)


if __name__ == "__main__":
    run(main)
