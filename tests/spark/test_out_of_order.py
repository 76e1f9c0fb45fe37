"""Out-of-order events: corrected counts against a plain-Python oracle, and the end of a window's state."""

from __future__ import annotations

import datetime
import random
from collections import Counter

from pyspark.sql import Row

from out_of_order import corrected_counts, lines, with_names
from tests.spark.topic_records import SCHEMA, record, run_stream, values

MINUTE_MS = 60_000


def test_results_are_corrected_by_events_that_come_late(spark, tmp_path):
    batches = [
        [record("x", 10, "a", 0), record("x", 70, "a", 1)],
        [record("x", 50, "a", 2), record("x", 71, "a", 3), record("x", 20, "b", 4)],
        [record("x", 500, "a", 5)],
        [record("x", 501, "a", 6)],
        [record("too late", 15, "a", 7)],  # a record is compared with the watermark of the micro-batch before
        [record("x", 502, "a", 8)],
    ]
    found = run_stream(
        spark, tmp_path, batches, lambda rows: corrected_counts(with_names(rows), MINUTE_MS, "2 minutes")
    )
    shown = [sorted(values(rows, "key", "count", "out_of_order", "revision")) for rows in found]
    assert shown[0] == [("a", 1, 0, 1), ("a", 1, 0, 1)]
    assert shown[1] == [("a", 2, 0, 2), ("a", 2, 1, 2), ("b", 1, 0, 1)]
    assert shown[2:] == [[("a", n, 0, n)] for n in (1, 2, 3)], "an event that is too late is left out"


def test_the_last_results_are_those_of_all_events(spark, tmp_path):
    chance = random.Random(5)
    events = [(chance.choice("ab"), number + chance.randrange(60)) for number in range(0, 600, 3)]
    made = [record("x", second, key, offset) for offset, (key, second) in enumerate(events)]
    batches = [made[first : first + 50] for first in range(0, len(made), 50)]
    found = run_stream(
        spark, tmp_path, batches, lambda rows: corrected_counts(with_names(rows), MINUTE_MS, "2 minutes")
    )
    last = {(row["key"], row["window_start"].minute): row["count"] for rows in found for row in rows}
    assert last == Counter((key, second // 60) for key, second in events)
    newest: dict[str, int] = {}
    late: Counter[str] = Counter()
    for key, second in events:
        late[key] += second < newest.get(key, 0)
        newest[key] = max(second, newest.get(key, 0))
    counted = {(row["key"], row["window_start"].minute): row["out_of_order"] for rows in found for row in rows}
    assert sum(counted.values()) == late.total() > 0


def test_records_without_a_key_are_events_too(spark):
    rows = with_names(spark.createDataFrame([record("x"), record("x", key="a")], SCHEMA)).collect()
    assert values(rows, "name", "reason") == [("", None), ("a", None)]
    bad = with_names(spark.createDataFrame([(b"\xff", *record("x")[1:])], SCHEMA)).first()
    assert bad["reason"] == "the key is not UTF-8"


def test_output():
    row = Row(key="a", window_start=datetime.datetime(2017, 5, 1, 12), count=3, out_of_order=1, revision=2)
    assert lines([row]) == ["2017-05-01 12:00:00 a: 3 (1 out of order, revision 2)"]
