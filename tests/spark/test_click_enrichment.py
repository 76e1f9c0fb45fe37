"""Click enrichment: the profile and the search that a click gets, over several micro-batches."""

from __future__ import annotations

import datetime

from pyspark.sql import Row
from pyspark.sql import functions as F

from click_enrichment import enriched, lines, with_kinds
from tests.spark.topic_records import SCHEMA, record, run_stream, values


def kinds(rows):
    """Returns the records of the three topics as one stream with the kind of each record."""
    return with_kinds(*(rows.where(F.col("topic") == topic) for topic in ("clicks", "profiles", "searches")))


def click(user, page, seconds):
    return record(page, seconds, key=user, topic="clicks")


def profile(user, text, seconds):
    return record(text, seconds, key=user, topic="profiles")


def search(user, term, seconds):
    return record(term, seconds, key=user, topic="searches")


def test_a_click_has_the_last_profile_and_a_recent_search(spark, tmp_path):
    batches = [
        [
            click("a", "/early", 0),
            profile("a", '{"zip":"1"}', 1),
            search("a", "kafka", 10),
            click("a", "/with-search", 10.9),
            click("a", "/too-late-for-it", 11.1),
            click("b", "/unknown-user", 10.5),
        ],
        [search("a", "spark", 20), profile("a", '{"zip":"2"}', 20)],
        [click("a", "/next-batch", 21), profile("a", None, 30), click("a", "/removed", 31)],
    ]
    found = run_stream(spark, tmp_path, batches, lambda rows: enriched(kinds(rows), 1000))
    assert [sorted(values(rows, "user", "page", "profile", "search")) for rows in found] == [
        [
            ("a", "/early", None, None),
            ("a", "/too-late-for-it", '{"zip":"1"}', None),
            ("a", "/with-search", '{"zip":"1"}', "kafka"),
            ("b", "/unknown-user", None, None),
        ],
        [("a", "/next-batch", '{"zip":"2"}', "spark"), ("a", "/removed", None, None)],
    ]


def test_what_cannot_be_joined_has_a_reason(spark):
    made = [click("a", "/x", 0), click(None, "/x", 1), click("a", " ", 2), click("a", None, 3),
            profile("a", None, 4), search("a", None, 5)]  # fmt: skip
    rows = kinds(spark.createDataFrame(made, SCHEMA)).orderBy("timestamp").collect()
    assert values(rows, "reason") == [None, "no user as the key", "blank", "null value", None, "null value"]


def test_output():
    time = datetime.datetime(2017, 5, 1)
    row = Row(user="a", page="/x", time=time, profile='{"zip":"1"}', search=None)
    assert lines([row]) == ['a /x , profile:{"zip":"1"}, search:null']
