"""Trending search: rising terms against a plain-Python oracle, addresses, tenants, and bounded memory."""

from __future__ import annotations

import json
import math
import random
from collections import Counter

import pytest

from tests.spark.topic_records import SCHEMA, record, records, run_stream, values
from trending_search import lines_by, parser, trends, with_searches

MINUTE_MS = 60_000


def searches(spark, rows):
    """Returns a DataFrame of records; each of `rows` is (value, seconds after START, key)."""
    made = [record(value, second, key, offset=index) for index, (value, second, key) in enumerate(rows)]
    return spark.createDataFrame(made, SCHEMA)


def rising(counts, before, minimum=1):
    """Returns (term, count, previous) for each term, in the descending order in which the job ranks rising terms."""
    scores = {
        term: ((count - before[term]) / math.sqrt(count + before[term]), count, term.encode())
        for term, count in counts.items()
        if count >= minimum
    }
    return [(term, counts[term], before[term]) for term in sorted(scores, key=scores.__getitem__, reverse=True)]


def by_window(found, *names):
    windows = {}
    for row in sorted(found, key=lambda row: (row["window_end"], row["tenant"], row["rank"])):
        key = (round((row["window_end"].timestamp() - 1493640000) / 60), row["tenant"])
        windows.setdefault(key, []).extend(values([row], *names))
    return windows


def test_terms_rise_against_the_window_before(spark):
    chance = random.Random(1)
    first = Counter({f"t{number}": chance.randrange(1, 9) for number in range(12)})
    second = Counter({f"t{number}": chance.randrange(1, 9) for number in range(4, 16)})
    rows = [(term, 0, None) for term in first.elements()] + [(term, 60, None) for term in second.elements()]
    found = trends(with_searches(searches(spark, rows)), MINUTE_MS, "1 minute", 100, minimum=2).collect()
    assert by_window(found, "term", "count", "previous") == {
        (1, ""): rising(first, Counter(), 2),
        (2, ""): rising(second, first, 2),
    }
    assert {(row["window_end"] - row["window_start"]).total_seconds() for row in found} == {60}


def test_the_order_may_be_that_of_counts(spark):
    rows = [("old", 0, None)] * 9 + [("old", 60, None)] * 5 + [("new", 60, None)] * 4
    found = trends(with_searches(searches(spark, rows)), MINUTE_MS, "1 minute", 1, rank_by="count").collect()
    assert by_window(found, "term", "count") == {(1, ""): [("old", 9)], (2, ""): [("old", 5)]}
    found = trends(with_searches(searches(spark, rows)), MINUTE_MS, "1 minute", 1).collect()
    assert by_window(found, "term", "count")[2, ""] == [("new", 4)]


def as_json(term, client, tenant="t"):
    return json.dumps({"term": term, "client": client, "shop": tenant})


def test_an_address_counts_a_few_times_only(spark):
    spam = [(as_json("spam", "10.0.0.1"), 0, None)] * 50
    real = [(as_json("real", f"10.0.1.{number}"), 0, None) for number in range(5)]
    rows = with_searches(searches(spark, spam + real), "json", address="client")
    (found,) = by_window(trends(rows, MINUTE_MS, "1 minute", 5, per_address=2).collect(), "term", "count").values()
    assert found == [("real", 5), ("spam", 2)]
    (found,) = by_window(trends(rows, MINUTE_MS, "1 minute", 5).collect(), "term", "count").values()
    assert found == [("spam", 50), ("real", 5)]


@pytest.mark.parametrize("tenant", ["key", "shop"])
def test_each_tenant_has_its_own_terms(spark, tenant):
    rows = [(as_json("a", "c", "x"), 0, "x")] * 2 + [(as_json("b", "c", "y"), 0, "y"), (as_json("a", "c", "y"), 0, "y")]
    found = trends(with_searches(searches(spark, rows), "json", tenant=tenant), MINUTE_MS, "1 minute", 1).collect()
    assert by_window(found, "term", "count") == {(1, "x"): [("a", 2)], (1, "y"): [("b", 1)]}


def test_records_without_tenant_or_address_have_a_reason(spark):
    rows = records(spark, [as_json("a", "c"), '{"term": "a"}', '{"client": "c"}', None, "{"])
    found = with_searches(rows, "json", tenant="shop", address="client").orderBy("offset").collect()
    assert values(found, "reason") == [None, "no shop", "no term", None, "not JSON"]


STREAM = [
    [record(term, second) for second in range(0, 60, 10) for term in ("a", "b", "b")],
    [record(term, second) for second in range(60, 120, 10) for term in ("c", "b")],
    [record("", 300)],
    [record("late", 30)],
    [record("", 700)],
]


def test_windows_of_a_stream_appear_once(spark, tmp_path):
    exact = run_stream(spark, tmp_path, STREAM, lambda rows: trends(with_searches(rows), MINUTE_MS, "30 seconds", 2))
    windows = by_window([row for rows in exact for row in rows], "term", "count", "previous")
    assert windows == {(1, ""): [("b", 12, 0), ("a", 6, 0)], (2, ""): [("c", 6, 0), ("b", 6, 12)]}


def test_options_that_contradict_each_other_are_refused(capsys):
    import trending_search

    for words, error in [
        (["--per-address", "2", "--approximate", "9"], "--approximate has no memory for addresses"),
        (["--per-address", "2"], "--address client is a member of values: give --value-format json"),
        (["--tenant", "shop"], "--tenant shop is a member of values"),
    ]:
        with pytest.raises(SystemExit):
            trending_search.main(words)
        assert error in capsys.readouterr().err
    assert parser().parse_args(["--tenant", "key"]).window == "300000 milliseconds"


def test_output(spark):
    rows = trends(with_searches(searches(spark, [("a", 0, None)] * 3)), MINUTE_MS, "1 minute", 1).collect()
    assert lines_by("rise")(rows) == ["2017-05-01 12:01:00", "   1 a: 3, 0 before, +1.7"]
    assert lines_by("count")(rows) == ["2017-05-01 12:01:00", "   1 a: 3"]
