"""KStream and KTable in Structured Streaming, with the output of published examples, and the aggregates of both."""

from __future__ import annotations

from stream_table import (
    greatest,
    greatest_lines,
    stream,
    stream_lines,
    table,
    table_lines,
    with_integers,
    with_keys,
    with_numbers,
)
from tests.spark.topic_records import SCHEMA, record, run_stream, values

CITIES = [record(city, key="jetty", offset=index) for index, city in enumerate(("shanghai", "beijing", "hangzhou"))]


def test_a_stream_prints_every_record(spark):
    rows = stream(with_keys(spark.createDataFrame([*CITIES, record("keyless")], SCHEMA))).collect()
    assert stream_lines(rows) == [
        "[KSTREAM-SOURCE-0000000000]: jetty , shanghai",
        "[KSTREAM-SOURCE-0000000000]: jetty , beijing",
        "[KSTREAM-SOURCE-0000000000]: jetty , hangzhou",
        "[KSTREAM-SOURCE-0000000000]: null , keyless",
    ]


def test_a_table_prints_the_last_value_of_each_key(spark, tmp_path):
    """A null value deletes; the replaced value is shown on demand, as in Kafka Streams."""
    batches = [[*CITIES, record("keyless")], [record("suzhou", key="jetty", offset=4)], [record(None, key="jetty")]]
    found = run_stream(spark, tmp_path, batches, lambda rows: table(with_keys(rows), sends_old_values=True))
    assert [line for rows in found for line in table_lines(rows)] == [
        "[KTABLE-SOURCE-0000000001]: jetty , (hangzhou<-null)",
        "[KTABLE-SOURCE-0000000001]: jetty , (suzhou<-hangzhou)",
        "[KTABLE-SOURCE-0000000001]: jetty , (null<-suzhou)",
    ]


def test_the_greatest_number_of_each_key_with_and_without_windows(spark):
    rows = [record(text, second, key="a") for text, second in (("3", 0), ("7", 10), ("5", 70), ("x", 71))]
    numbers = with_numbers(with_keys(spark.createDataFrame([*rows, record("-1", key="b"), record("9")], SCHEMA)))
    assert greatest_lines(greatest(numbers).collect()) == ["a , 7", "b , -1"]
    windows = greatest(numbers, "60 seconds").collect()
    assert sorted(values(windows, "key", "value")) == [("a", 5), ("a", 7), ("b", -1)]
    assert values(numbers.where("reason is not null").collect(), "reason") == ["not a whole number"]


def test_the_greatest_of_a_table_never_decreases(spark):
    """The subtractor of the published example returns the greatest value, like the adder."""
    integers = [(5).to_bytes(4, "big"), (3).to_bytes(4, "big"), (-2).to_bytes(4, "big", signed=True), b"\1", None]
    rows = with_integers(spark.createDataFrame([record(value, key="a") for value in integers], SCHEMA))
    assert values(rows.collect(), "number") == [5, 3, -2, None, None]
    assert greatest_lines(greatest(rows).collect()) == ["a , 5"]
    assert values(rows.collect(), "reason") == [None, None, None, "not an integer of 4 bytes", None]
