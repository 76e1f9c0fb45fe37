"""Access log: lines of a web server's log as records with fields, from a topic to a topic, Parquet or the console.

A line that does not have this format becomes a dead letter:
client [date time zone] "method path... HTTP/1.1" response ... cost "...".
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from kafkapy_jobs.arguments import JobParser, add_stream
from kafkapy_jobs.program import run
from kafkapy_jobs.report import observed
from kafkapy_jobs.session import start_session
from kafkapy_jobs.sink import as_records, run_stream
from kafkapy_jobs.source import read_stream
from kafkapy_jobs.values import add_reason, member, with_text

TOPIC = "account-access-log"
FIELDS = ("client", "access_date", "access_time", "method", "request", "response", "cost")
LINE = (
    r"^(\d{1,3}(?:\.\d{1,3}){3}|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)\s+"
    r"\[(\d{4}-\d{2}-\d{2})\s+(\S+)\s+[+-]\d{4}\]\s+"
    r'"(\w+) (/[^\s?]*(?:\?\S*)?)[^\n]*?HTTP/\d(?:\.\d)?" '
    r"(\d{3})\b[^\n]* (\d+(?:\.\d+)?)(?=\s|$)"
)


def with_fields(records: DataFrame, value_format: str = "text", field: str = "message") -> DataFrame:
    """Adds the fields of a line as text columns, and `reason`, which says why a value is not such a line."""
    rows = with_text(records, value_format).withColumn("line", member(value_format, field))
    rows = add_reason(rows, ~F.coalesce(F.col("line").rlike(LINE), F.lit(False)), "not a line of an access log")
    for index, name in enumerate(FIELDS, 1):
        rows = rows.withColumn(name, F.regexp_extract("line", LINE, index))
    return rows


def accesses(rows: DataFrame) -> DataFrame:
    """Returns the fields of the rows without a `reason`, with response and cost as numbers."""
    found = rows.where(F.col("reason").isNull()).select(*FIELDS)
    return found.withColumn("response", F.col("response").cast("int")).withColumn("cost", F.col("cost").cast("double"))


def lines(rows: list[Row]) -> list[str]:
    return ["\t".join(str(value) for value in row) for row in rows]


def parser() -> JobParser:
    options = JobParser(__doc__)
    options.add_argument(
        "--field", default="message", metavar="NAME", help="of JSON and msgpack values; default message"
    )
    return add_stream(options, TOPIC)


def main(words: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(words)
    spark = start_session("access-log", arguments)
    rows = with_fields(read_stream(spark, arguments), arguments.value_format, arguments.field)
    found = accesses(observed(rows))
    records = as_records(found, "client")
    run_stream(rows, found, records, arguments, lines)


if __name__ == "__main__":
    run(main)
