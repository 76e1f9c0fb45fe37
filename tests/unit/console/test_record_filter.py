"""Filters select the records that their field, operation and text describe."""

from __future__ import annotations

import pytest

from kafkapy.console.message_query import time_of
from kafkapy.console.problem import Problem
from kafkapy.console.record_filter import Filter, Record, parse_filters

RECORD = Record(
    0,
    7,
    1000,
    0,
    b"key-1",
    b'{"id": 5, "name": "M\\u00fcller", "tags": ["a", {"deep": true}]}',
    (("h", b"x-1"), ("n", None)),
)


@pytest.mark.parametrize(
    ("chosen", "is_accepted"),
    [
        (Filter("key", "equals", "key-1"), True),
        (Filter("key", "equals", "key"), False),
        (Filter("key", "starts", "key"), True),
        (Filter("value", "contains", '"id": 5'), True),
        (Filter("value", "lacks", '"id": 5'), False),
        (Filter("value", "lacks", "nowhere"), True),
        (Filter("key", "matches", "^KEY-[0-9]$"), False),
        (Filter("key", "matches", "(?i)^KEY-[0-9]$"), True),
        (Filter("value", "matches", r'"id": \d,'), True),
        (Filter("header", "matches", "x.1", "h"), True),
        (Filter("header", "matches", "null", "n"), False),
        (Filter("json", "matches", "^M.ller$", "name"), True),
        (Filter("header", "contains", "x", "h"), True),
        (Filter("header", "contains", "x", "other"), False),
        (Filter("header", "contains", "x"), True),
        (Filter("header", "equals", "null", "n"), True),
        (Filter("json", "equals", "5", "id"), True),
        (Filter("json", "greater", "4.5", "$.id"), True),
        (Filter("json", "less", "5", "id"), False),
        (Filter("json", "equals", "Müller", "name"), True),
        (Filter("json", "equals", "true", "tags.1.deep"), True),
        (Filter("json", "equals", "5", "missing.path"), False),
        (Filter("json", "lacks", "5", "missing.path"), True),
        (Filter("json", "equals", "5", "tags.9"), False),
    ],
)
def test_a_filter_accepts(chosen, is_accepted):
    assert chosen.accepts(RECORD) is is_accepted


def test_an_expression_that_takes_exponential_time_elsewhere_takes_little():
    record = RECORD._replace(value=b"a" * 1_000_000 + b"\xff")
    assert not Filter("value", "matches", "(a+)+(a|aa)+b").accepts(record)
    assert Filter("value", "matches", "(a+)+(a|aa)+a").accepts(record)


def test_null_equals_null_only():
    record = RECORD._replace(value=None)
    assert Filter("value", "equals", "null").accepts(record)
    assert not Filter("value", "contains", "n").accepts(record)
    assert Filter("value", "lacks", "n").accepts(record)


def test_rows_of_a_form_without_text_are_no_filters():
    assert parse_filters(["value", "key"], ["", ""], ["contains", "equals"], ["", "5"]) == (
        Filter("key", "equals", "5"),
    )
    assert parse_filters([], [], [], ["x"]) == (Filter("value", "contains", "x"),)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("code", "", "contains", "x"), "A filter has the field"),
        (("value", "", "eval", "x"), "A filter has the field"),
        (("json", "", "equals", "x"), "needs the path"),
        (("value", "", "less", "many"), "is not a number"),
        (("value", "", "matches", "(unclosed"), "is not a regular expression of RE2: missing"),
        (("value", "", "matches", "(?=look)"), "is not a regular expression of RE2: invalid perl operator"),
        (("value", "", "matches", "((x{100}){100}){100}"), "is not a regular expression of RE2: "),
    ],
)
def test_an_invalid_row_is_refused(row, reason):
    with pytest.raises(Problem, match=reason):
        parse_filters(*([each] for each in row))


@pytest.mark.parametrize(
    ("text", "wall_ms"),
    [
        ("1700000000000", 1_700_000_000_000),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
        ("15 min", 1_000_000_000 - 900_000),
        ("2h", 1_000_000_000 - 7_200_000),
    ],
)
def test_a_time_has_several_forms(text, wall_ms):
    assert time_of(text, now_ms=1_000_000_000) == wall_ms


@pytest.mark.parametrize("text", ["soon", "", "2023-13-01", "99999999999999999999", "1 year"])
def test_another_text_is_not_a_time(text):
    with pytest.raises(Problem, match="is not a time"):
        time_of(text)


def test_a_value_that_no_text_or_float_can_hold_is_not_accepted_and_ends_no_search():
    half, large = (RECORD._replace(value=b'{"a": %s}' % value) for value in (b'"\\ud800"', b"1" + b"0" * 400))
    assert not Filter("json", "contains", "x", "a").accepts(half)
    assert not Filter("json", "greater", "1", "a").accepts(large)
