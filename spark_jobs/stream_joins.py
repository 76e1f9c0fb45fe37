"""Joins: two topics as Kafka Streams joins them, as streams, as tables, or a stream with a table.

Two streams are joined within a window: keys are equal, and the right record is at most `--before` older and at most
`--after` newer than the left one. A join of two tables has the last values of each key, and a new row after every
change of either table. A join of a stream with a table has a row for every record of the stream, with the table's value
at that time; a change of the table alone has no result.

Joins with tables need PySpark 4.1 or newer, and protobuf.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from kafkapy_jobs.arguments import JobParser, add_stream, length_or_zero
from kafkapy_jobs.program import run
from kafkapy_jobs.report import observed
from kafkapy_jobs.session import require_stateful_processors, start_session
from kafkapy_jobs.sink import as_records, run_stream
from kafkapy_jobs.source import read_stream
from kafkapy_jobs.values import or_null, valid_text, with_text

KINDS = ("inner", "left", "outer")
JOINED = "key string, left_value string, right_value string"


class LastValues(StatefulProcessor):
    """The state of each key: its last values on both sides.

    If the left side is a stream, only the value of the right side is stored.
    """

    def __init__(self, kind: str, left_is_stream: bool) -> None:
        self._kind = kind
        self._left_is_stream = left_is_stream

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("values", "left_value string, right_value string")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Yields the joined rows in the order of timestamps.

        For equal timestamps the right side comes first, and each side in the order of arrival.
        """
        left, right = self._state.get() or (None, None)
        for row in sorted(rows, key=lambda row: (row["timestamp"], row["is_left"], row["partition"], row["offset"])):
            if not row["is_left"]:
                right = row["text"]
            else:
                left = row["text"]
            if (row["is_left"] or not self._left_is_stream) and self._is_joined(left, right):
                yield Row(key=key[0], left_value=left, right_value=right)
            if self._left_is_stream:
                left = None
        self._state.update((left, right))

    def _is_joined(self, left: str | None, right: str | None) -> bool:
        if self._kind == "inner":
            return left is not None and right is not None
        return left is not None or (self._kind == "outer" and right is not None)


def with_sides(left: DataFrame, right: DataFrame) -> DataFrame:
    """Returns the records of both sides with `name`, `text`, `is_left` and `reason`.

    A record without a key is not joined.
    """

    def side(records: DataFrame, is_left: bool) -> DataFrame:
        rows = with_text(records, "text").withColumn("name", valid_text("key"))
        rows = rows.withColumn("reason", F.when(F.col("value").isNotNull(), F.col("reason")))
        return rows.withColumn("is_left", F.lit(is_left))

    return side(left, True).unionByName(side(right, False))


def join_streams(rows: DataFrame, kind: str, before: str, after: str, lateness: str) -> DataFrame:
    """Returns the columns key, left_value and right_value; the query needs the append mode.

    A record without a partner appears when the watermark excludes a later partner.
    """
    good = rows.where(F.col("reason").isNull() & F.col("name").isNotNull() & F.col("text").isNotNull())
    good = good.withWatermark("timestamp", lateness)
    left = good.where("is_left").select(
        F.col("name").alias("left_key"), F.col("text").alias("left_value"), F.col("timestamp").alias("left_time")
    )
    right = good.where("not is_left").select(
        F.col("name").alias("right_key"), F.col("text").alias("right_value"), F.col("timestamp").alias("right_time")
    )
    is_within = f"right_time between left_time - interval {before} and left_time + interval {after}"
    condition = F.expr(f"left_key = right_key and {is_within}")
    joined = left.join(right, condition, {"inner": "inner", "left": "leftOuter", "outer": "fullOuter"}[kind])
    return joined.select(F.coalesce("left_key", "right_key").alias("key"), "left_value", "right_value")


def join_tables(rows: DataFrame, kind: str, *, left_is_stream: bool) -> DataFrame:
    """Returns the columns key, left_value and right_value of a stream; the query needs the append mode.

    The right side is a table, and the left side is a stream or a table. `kind` is one of KINDS.
    """
    good = rows.where(F.col("reason").isNull() & F.col("name").isNotNull())
    return good.groupBy("name").transformWithState(LastValues(kind, left_is_stream), JOINED, "append", "none")


def lines(rows: list[Row]) -> list[str]:
    """Formats rows with their key and both values; a missing value is shown as null."""
    return [f"{row['key']} , left:{or_null(row['left_value'])}, right:{or_null(row['right_value'])}" for row in rows]


def parser() -> JobParser:
    options = JobParser(__doc__)
    options.add_argument("--join", choices=("streams", "tables", "stream-table"), default="streams")
    options.add_argument("--kind", choices=KINDS, default="inner", help="default inner")
    options.add_argument("--right-topic", default="right-source", metavar="NAME", help="default right-source")
    window: dict[str, Any] = {"type": length_or_zero, "default": length_or_zero("5 min"), "metavar": "LENGTH"}
    options.add_argument("--before", **window, help="of two streams; default 5 min")
    options.add_argument("--after", **window, help="of two streams; default 5 min")
    options.add_argument(
        "--lateness", type=length_or_zero, default="0 milliseconds", metavar="LENGTH", help="default 0 s"
    )
    options.fix_in_checkpoint("--join", "--kind", "--before", "--after")
    return add_stream(options, "left-source", value_formats=())


def main(words: Sequence[str] | None = None) -> None:
    options = parser()
    arguments = options.parse_args(words)
    if arguments.source == "files":
        options.error("--source files has one side only")
    if arguments.join == "stream-table" and arguments.kind == "outer":
        options.error("a stream is joined with a table by --kind inner or left")
    if arguments.join != "streams":
        require_stateful_processors()
    spark = start_session("joins", arguments)
    rows = with_sides(read_stream(spark, arguments), read_stream(spark, arguments, arguments.right_topic))
    if arguments.join == "streams":
        joined = join_streams(rows, arguments.kind, arguments.before, arguments.after, arguments.lateness)
    else:
        joined = join_tables(observed(rows), arguments.kind, left_is_stream=arguments.join == "stream-table")
    run_stream(rows, joined, as_records(joined, "key"), arguments, lines)


if __name__ == "__main__":
    run(main)
