"""Envelope: the payloads of records that Kafka Connect's JSON converter wrote with their schemas."""

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
from kafkapy_jobs.values import add_reason, with_text

TOPIC = "connect-test"


def with_payloads(records: DataFrame) -> DataFrame:
    """Adds `payload`, as text whatever its type, and `reason`.

    A value that is not `{"schema": ..., "payload": ...}` has a reason; other values have null.
    """
    rows = with_text(records, "json")
    is_envelope = F.from_json("text", "schema string, payload string").alias("envelope")
    rows = rows.withColumn("envelope", is_envelope).withColumn("payload", F.col("envelope.payload"))
    names = F.json_object_keys("text")
    has_both = F.array_contains(names, "schema") & F.array_contains(names, "payload")
    return add_reason(rows, ~F.coalesce(has_both, F.lit(False)), "not an envelope").drop("envelope")


def payloads(rows: DataFrame) -> DataFrame:
    """Returns the column payload of the rows without a `reason`; it is null if the envelope contains null."""
    return rows.where(F.col("reason").isNull()).select("payload")


def lines(rows: list[Row]) -> list[str]:
    return [str(row["payload"]) for row in rows]


def parser() -> JobParser:
    options = JobParser(__doc__)
    return add_stream(options, TOPIC, value_formats=())


def main(words: Sequence[str] | None = None) -> None:
    arguments = parser().parse_args(words)
    spark = start_session("connect-envelope", arguments)
    rows = with_payloads(read_stream(spark, arguments))
    found = payloads(observed(rows))
    run_stream(rows, found, as_records(found, F.lit(None)), arguments, lines)


if __name__ == "__main__":
    run(main)
