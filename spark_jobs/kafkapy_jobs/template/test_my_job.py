"""Tests of my job on rows, without a broker. Run them with `pytest`."""

from __future__ import annotations

import datetime

from my_job import counts, lines, parser, with_kinds

from kafkapy_jobs.source import RECORD

START = datetime.datetime(2026, 1, 1, 12, 0, tzinfo=datetime.UTC)


def records(spark, *values):
    """Returns a record for each value, one for each second."""
    times = [START + datetime.timedelta(seconds=index) for index in range(len(values))]
    rows = [(None, value, "my-job", 0, index, times[index]) for index, value in enumerate(values)]
    return spark.createDataFrame(rows, RECORD)


def test_kinds_are_counted_by_window(spark):
    rows = with_kinds(records(spark, b"a", b" b", b"a"), "text", "kind")
    found = counts(rows, "1 minute", "1 minute", "10 seconds").collect()
    assert {row["kind"]: row["count"] for row in found} == {"a": 2, "b": 1}
    assert [line.rpartition(" ")[0].rpartition(" ")[2] for line in lines(found)] == ["a:", "b:"]


def test_values_that_cannot_be_read_have_a_reason(spark):
    rows = with_kinds(records(spark, b'{"kind": "a"}', b"{}", b"{", None, b"\xff"), "json", "kind")
    reasons = [row["reason"] for row in rows.orderBy("offset").collect()]
    assert reasons == [None, "no kind", "not JSON", "null value", "not UTF-8"]


def test_the_default_topic():
    assert parser().parse_args([]).topic == "my-job"
