"""Sample data: reproducible by a seed, in the format of the jobs, with the documented distribution."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice

import pytest

from kafkapy.tools.sample_data import GENERATORS, STOCKS, quotes, search_terms, server_metrics


@pytest.mark.parametrize("name", GENERATORS)
def test_a_seed_fixes_the_data(name):
    make = GENERATORS[name][0]
    assert list(islice(make(7), 200)) == list(islice(make(7), 200))
    assert list(islice(make(7), 2000)) != list(islice(make(8), 2000))


def test_terms_follow_zipfs_law_and_are_of_both_languages():
    counts = Counter(sample.text for sample in islice(search_terms(1), 100_000))
    ordered = [count for _, count in counts.most_common()]
    assert 1.7 < ordered[0] / ordered[1] < 2.6
    assert ordered[0] > 8 * ordered[9]
    assert len(counts) > 400
    terms = set(counts)
    assert any(term.isascii() for term in terms) and any(not term.isascii() for term in terms)


def test_quotes_have_eight_columns_and_prices_that_agree():
    days = [list(islice(market, len(STOCKS))) for market in [quotes(3)] for _ in range(50)]
    dates = [{sample.members["trade_date"] for sample in day} for day in days]
    assert all(len(each) == 1 for each in dates)
    assert [min(each) for each in dates] == sorted(min(each) for each in dates)
    close = {}
    for sample in (sample for day in days for sample in day):
        columns = sample.text.split(",")
        assert len(columns) == 8
        name, code, date = columns[:3]
        assert (name[0], name[-1], code[0], code[-1], date[0], date[-1]) == ("'",) * 6
        previous, first, high, low, last = map(float, columns[3:])
        assert low <= min(first, last) <= max(first, last) <= high
        assert close.get(code, previous) == previous
        assert previous * 0.89 < low and high < previous * 1.11
        close[code] = last
        assert sample.key == sample.members["stock_code"] == code.strip("'")


def test_metrics_are_events_of_metricbeat():
    event = json.loads(next(server_metrics(0)).text)
    assert event["@timestamp"].endswith("Z")
    assert event["beat"]["name"] == "server-1"
    assert 0 <= event["system"]["cpu"]["user"]["pct"] <= 1
