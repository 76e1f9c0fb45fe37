"""Joins of streams and tables: the pairs of each kind of join, and when they appear."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from stream_joins import join_streams, join_tables, lines, with_sides
from tests.spark.topic_records import SCHEMA, record, run_stream, values

FIVE_MINUTES = "300000 milliseconds"


def sides(rows):
    """Returns the records of both topics as one stream with the side of each record."""
    return with_sides(rows.where(F.col("topic") == "left"), rows.where(F.col("topic") == "right"))


def left(key, value, seconds=0.0):
    return record(value, seconds, key=key, topic="left")


def right(key, value, seconds=0.0):
    return record(value, seconds, key=key, topic="right")


@pytest.mark.parametrize(
    ("before", "after", "partners"),
    [
        (FIVE_MINUTES, FIVE_MINUTES, ["r-300", "r0", "r300"]),
        (FIVE_MINUTES, "0 milliseconds", ["r-300", "r0"]),
        ("0 milliseconds", FIVE_MINUTES, ["r0", "r300"]),
    ],
    ids=["both", "before", "after"],
)
def test_two_streams_join_within_the_window(spark, before, after, partners):
    rights = [right("a", f"r{seconds}", 1000 + seconds) for seconds in (-301, -300, 0, 300, 301)]
    rows = spark.createDataFrame([left("a", "l", 1000), left("b", "l", 1000), *rights], SCHEMA)
    found = join_streams(sides(rows), "inner", before, after, "0 seconds").collect()
    assert sorted(values(found, "right_value")) == partners
    assert lines(found[:1])[0].startswith("a , left:l, right:r")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("left", [("a", "l", "r"), ("b", "l", None)]), ("outer", [("a", "l", "r"), ("b", "l", None), ("c", None, "r")])],
)
def test_what_finds_no_partner_joins_nothing(spark, kind, expected):
    rows = spark.createDataFrame([left("a", "l"), right("a", "r"), left("b", "l"), right("c", "r")], SCHEMA)
    found = join_streams(sides(rows), kind, FIVE_MINUTES, FIVE_MINUTES, "0 seconds").collect()
    assert sorted(values(found, "key", "left_value", "right_value")) == expected


BATCHES = [
    [left("a", "l1", 1), right("a", "r1", 2)],
    [left("a", "l2", 3), right("b", "r1", 3)],
    [right("a", "r2", 4), right("a", None, 5), left("a", "l3", 6)],
]


@pytest.mark.parametrize(
    ("kind", "left_is_stream", "expected"),
    [
        ("inner", False, [("a", "l1", "r1"), ("a", "l2", "r1"), ("a", "l2", "r2")]),
        ("left", True, [("a", "l1", None), ("a", "l2", "r1"), ("a", "l3", None)]),
    ],
    ids=["tables", "stream-table"],
)
def test_tables_join_by_their_last_values(spark, tmp_path, kind, left_is_stream, expected):
    found = run_stream(
        spark, tmp_path, BATCHES, lambda rows: join_tables(sides(rows), kind, left_is_stream=left_is_stream)
    )
    assert [each for rows in found for each in values(rows, "key", "left_value", "right_value")] == expected
