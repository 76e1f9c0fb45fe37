"""The IP blacklist: thresholds by minutes of the clock, entries that expire, values that are not addresses."""

from __future__ import annotations

import datetime
import json

from pyspark.sql import Row

from ip_blacklist import blacklist, lines, list_records, with_addresses
from tests.spark.topic_records import at, record, records, run_stream, values

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"


def test_addresses_at_the_threshold_within_a_minute_are_listed_and_expire(spark, tmp_path):
    batches = [
        [record(A, 1), record(A, 2), record(A, 3), record(B, 4)],
        [record(A, 70), record(B, 75), record(C, 119)],
        [record(C, 121), record(B, 122), record(B, 123)],  # C has one request on each side of a full minute
        [record(C, 4000)],
        [record(C, 4200)],
    ]
    found = run_stream(
        spark, tmp_path, batches, lambda rows: blacklist(with_addresses(rows), 2, 30 * 60 * 1000, "0 seconds")
    )
    entries = [values(rows, "ip", "is_listed", "requests") for rows in found]
    assert entries[0] == [(A, True, 3)]
    assert entries[1] == [(B, True, 2)]
    assert sorted(entry for rows in entries[2:] for entry in rows) == [(A, False, None), (B, False, None)]
    (entry,) = found[0]
    assert (entry["until"] - entry["time"]) == datetime.timedelta(minutes=30)


def test_on_a_topic_the_end_of_an_entry_is_a_null_value(spark):
    entries = spark.createDataFrame(
        [(A, True, 3, at(0), at(1800)), (A, False, None, at(1800), None)],
        "ip string, is_listed boolean, requests long, time timestamp, until timestamp",
    )
    listed, ended = list_records(entries).collect()
    assert (bytes(listed["key"]), json.loads(listed["value"])["requests"]) == (A.encode(), 3)
    assert (bytes(ended["key"]), ended["value"]) == (A.encode(), None)


def test_what_is_no_address_is_set_aside(spark):
    rows = with_addresses(records(spark, [f" {A} ", "2001:db8::1", "localhost", "", None, b"\xff"]))
    reasons = values(rows.orderBy("offset").collect(), "reason")
    assert reasons == [None, None, "not an address", "not an address", "null value", "not UTF-8"]


def test_output_is_the_documents():
    time = datetime.datetime(2017, 5, 1, 12, 0, 3)
    rows = [Row(ip=A, is_listed=True, requests=3, time=time), Row(ip=B, is_listed=False, requests=None, time=time)]
    assert lines(rows) == [
        f"请求时间:12:00:03,IP:{A},请求次数:3",
        f"ip:{A}被加入到黑名单,请求次数为:3",
        f"ip:{B}被移出黑名单",
    ]
