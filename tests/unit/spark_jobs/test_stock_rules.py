"""Rules over quotes: their language, what they refuse, calendars, suspended days, and returns."""

from __future__ import annotations

import pytest

from kafkapy_jobs.stock_rules import EVERY_DAY, RuleError, aligned, compile_rule, evaluate, signals

CLOSES = [10.0, 11.0, 9.0, 12.0, 12.0, 8.0]


def series(closes=CLOSES, volumes=None):
    names = ("open", "high", "low", "close", "previous_close")
    return {name: list(closes) for name in names} | {"volume": volumes or [None] * len(closes)}


def days_of(rule, closes=CLOSES, **more):
    """Returns the days, from 0, on which a rule is true."""
    found = evaluate(compile_rule(rule), series(closes, **more), len(closes))
    return [day for day, value in enumerate(found) if value]


@pytest.mark.parametrize(
    ("rule", "days"),
    [
        ("close >= highest(high, 3)", [3, 4]),
        ("close <= lowest(low, 3)", [2, 5]),
        ("close > average(close, 2)", [1, 3]),
        ("close > 1.2 * previous(close)", [3]),
        ("close < previous(close, 2)", [2, 5]),
        ("crosses_above(close, average(close, 3))", [3]),
        ("crosses_below(close, average(close, 3))", [5]),
        ("9 <= close < 12", [0, 1, 2]),
        ("close == 12 or close == 8", [3, 4, 5]),
        ("close > 9 and not close == 12", [0, 1]),
        ("total(close, 2) == 21", [1, 3]),
        ("-close < -11", [3, 4]),
        ("close / (close - close) > 1", []),
        ("volume > 0", []),
        ("close >= highest(high, 99)", []),
        ("previous(close, 99) > 0", []),
    ],
)
def test_rules(rule, days):
    assert days_of(rule) == days


def test_volumes():
    volumes = [100, 100, 300, None, 250, 900]
    assert days_of("volume > 2 * average(volume, 3)", volumes=volumes) == []
    assert days_of("volume > 1.5 * average(volume, 3)", volumes=volumes) == [2, 5]


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        ("", "is not an expression"),
        ("close >", "is not an expression"),
        ("close", "is a number and not a condition"),
        ("average(close, 5)", "is a number and not a condition"),
        ("price > 1", "'price' is not allowed"),
        ("__import__('os') > 1", "not a function of rules"),
        ("close.real > 1", "not allowed"),
        ("close > 'a'", "not allowed"),
        ("close > True", "is not a number"),
        ("close ** 2 > 1", "not allowed"),
        ("average(close) > 1", "average with 1 arguments"),
        ("average(close, 0) > 1", "'0' is not a whole number of days"),
        ("average(close, 2.5) > 1", "is not a whole number of days"),
        ("average(close, volume) > 1", "is not a whole number of days"),
        ("(close > 1) > 1", "is a condition and not a number"),
        ("close > 1 and close", "is a number and not a condition"),
        ("(close for close in high) > 1", "not allowed"),
        ("lambda: close", "not allowed"),
        ("average(close, n=2) > 1", "not allowed"),
    ],
)
def test_other_rules_are_refused(rule, error):
    with pytest.raises(RuleError, match=error.replace("(", r"\(")):
        compile_rule(rule)


def quotes(closes, first=1):
    """Returns quotes by day; None is a day on which the stock is not traded."""
    return {
        f"2017-03-{day:02d}": {"open": close, "high": close, "low": close, "close": close, "volume": 1.0}
        for day, close in enumerate(closes, first)
        if close is not None
    }


CALENDAR = [f"2017-03-{day:02d}" for day in range(1, 10)]


def test_a_calendar_adds_the_days_on_which_a_stock_is_suspended():
    days, values = aligned(quotes([5, None, 7], first=3), None)
    assert (days, values["close"]) == (["2017-03-03", "2017-03-05"], [5, 7])
    days, values = aligned(quotes([5, None, 7], first=3), CALENDAR)
    assert days[0] == "2017-03-03" and values["close"] == [5, None, 7, None, None, None, None]
    assert aligned({}, CALENDAR)[0] == []


def found(closes, rules, **more):
    compiled = {name: compile_rule(rule) for name, rule in rules.items()}
    return {(each.rule, each.trade_day): each for each in signals(quotes(closes), compiled, (1, 3), **more)}


def test_signals_have_the_returns_of_later_days():
    result = found([10, 11, 22, 11], {"up": "close > previous(close)"})
    assert set(result) == {("up", "2017-03-02"), ("up", "2017-03-03"), (EVERY_DAY, "")}
    first, second = result["up", "2017-03-02"], result["up", "2017-03-03"]
    assert (first.close, first.days, first.gains, first.wins, first.known) == (11, 1, [1.0, 0.0], [1, 0], [1, 0])
    assert (second.gains, second.wins, second.known) == ([-0.5, 0.0], [0, 0], [1, 0])
    every = result[EVERY_DAY, ""]
    assert (every.days, every.known, every.wins) == (4, [3, 1], [2, 1])
    assert every.gains == pytest.approx([0.1 + 1 - 0.5, 0.1])


def test_days_before_the_range_count_for_windows_and_later_days_for_returns():
    result = found([10, 11, 12, 24], {"high": "high >= highest(high, 3)"}, start="2017-03-03", end="2017-03-03")
    assert set(result) == {("high", "2017-03-03"), (EVERY_DAY, "")}
    assert result["high", "2017-03-03"].gains[0] == 1.0 and result[EVERY_DAY, ""].days == 1


def test_a_suspended_stock_has_no_signal_and_its_return_is_that_of_its_next_close():
    result = found([10, None, None, 20], {"any": "close > 0"}, calendar=CALENDAR[:4])
    assert set(result) == {("any", "2017-03-01"), ("any", "2017-03-04"), (EVERY_DAY, "")}
    assert result["any", "2017-03-01"].gains == [1.0, 1.0]
    assert found([10, None], {"any": "close > 0"}, calendar=CALENDAR)["any", "2017-03-01"].known == [0, 0]


def test_a_stock_without_days_in_the_range_has_no_rows():
    assert found([10], {"any": "close > 0"}, start="2018-01-01") == {}
