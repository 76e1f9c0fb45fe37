"""The lines of the stream jobs show null for a missing value only, as Kafka Streams prints them."""

from __future__ import annotations

from pyspark.sql import Row

import click_enrichment
import stream_joins
import stream_table
from kafkapy_jobs.transactional_topic import _headers


def test_lines_of_a_table_and_its_stream():
    rows = [Row(key="a", value="", old_value=None), Row(key="b", value=None, old_value="")]
    assert stream_table.stream_lines(rows) == [
        "[KSTREAM-SOURCE-0000000000]: a , ",
        "[KSTREAM-SOURCE-0000000000]: b , null",
    ]
    assert stream_table.table_lines(rows) == [
        "[KTABLE-SOURCE-0000000001]: a , (<-null)",
        "[KTABLE-SOURCE-0000000001]: b , (null<-)",
    ]


def test_lines_of_a_join():
    rows = [Row(key="a", left_value="", right_value=None)]
    assert stream_joins.lines(rows) == ["a , left:, right:null"]


def test_lines_of_clicks():
    rows = [Row(user="u", page="p", time=1, profile=None, search="")]
    assert click_enrichment.lines(rows) == ["u p , profile:null, search:"]


def test_a_header_without_a_value_stays_without_one():
    row = Row(headers=[Row(key="a", value=bytearray(b"x")), Row(key="b", value=None)])
    assert _headers(row) == [("a", b"x"), ("b", None)]
