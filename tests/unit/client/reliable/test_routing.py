"""Conditions and routing rules."""

from __future__ import annotations

import json

import pytest

from kafkapy.client.reliable.conditions import RecordView, parse_condition
from kafkapy.client.reliable.routing import HOPS, MOST_HOPS, parse_rules
from kafkapy.errors import ConfigError
from tests.unit.client.reliable.simulated_record import SimulatedRecord

ORDER = SimulatedRecord(
    "orders",
    key=b"k1",
    value=json.dumps({"amount": 1500.5, "lines": [{"sku": "a.b"}], "eu": True, "none": None}).encode(),
    headers=(("type", b"old"), ("type", b"order"), ("empty", None)),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key=k1", True),
        ("key!=k1", False),
        ("key^=k", True),
        ("key$=1", True),
        ("value~sku", True),
        ("topic=orders", True),
        ("offset>=7", True),
        ("offset<7", False),
        ("header.type=order", True),
        ("header.type", True),
        ("!header.type", False),
        ("!header.other", True),
        ("header.other!=x", False),
        ("json.amount>1500", True),
        ("json.amount<=1500", False),
        ("json.lines.0.sku=a.b", True),
        ("json.lines.1.sku", False),
        ("json.eu=true", True),
        ("json.none=null", True),
        ("json.amount.deeper", False),
        ("key>3", False),
        ("key=", False),
    ],
)
def test_a_condition_holds_or_not(text, expected):
    assert parse_condition(text).holds(RecordView(ORDER)) is expected


@pytest.mark.parametrize("text", ["", "=a", "size=3", "header=3", "json.a>x", "!key=a", "partition.x=1"])
def test_an_invalid_condition_is_refused(text):
    with pytest.raises(ConfigError):
        parse_condition(text)


@pytest.mark.parametrize("value", [None, b"", b"{", b"\xff", b"[" * 100_000])
def test_a_value_that_is_not_json_meets_no_condition_on_it(value):
    view = RecordView(ORDER._replace(value=value))
    assert not parse_condition("json.a=1").holds(view) and view.has_invalid_json


def rules(**content) -> str:
    return json.dumps({"from": ["in"], **content})


def test_every_matching_rule_counts_until_one_stops():
    table = parse_rules(
        rules(
            rules=[
                {"name": "big", "when": ["json.amount>=1000"], "to": ["big", "audit"]},
                {"name": "order", "when": "header.type=order", "to": "audit", "stop": True},
                {"name": "all", "to": ["never"]},
            ],
            otherwise=["rest"],
        )
    )
    route = table.route(ORDER)
    assert (route.targets, route.rules) == (("big", "audit"), ("big", "order"))
    other = table.route(SimulatedRecord(value=b"{}"))
    assert (other.targets, other.rules) == (("never",), ("all",))
    assert parse_rules(rules(otherwise="rest")).route(ORDER).targets == ("rest",)
    assert table.targets == {"big", "audit", "never", "rest"}


def test_a_record_that_goes_in_circles_is_recognized():
    table = parse_rules(rules(otherwise=["out"]))
    record = ORDER
    for hop in range(1, MOST_HOPS + 1):
        route = table.route(record)
        assert not route.is_loop and dict(route.headers)[HOPS] == b"%d" % hop
        record = record._replace(headers=route.headers)
    assert table.route(record).is_loop
    assert not table.route(record._replace(headers=((HOPS, b"many"),))).is_loop


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not an object"),
        ("{}", '"from"'),
        (rules(rules=[{"to": ["in"]}]), "a loop"),
        (rules(otherwise=["in"]), "a loop"),
        (rules(rules={}), "list"),
        (rules(rules=[3]), "not an object"),
        (rules(rules=[{"too": ["x"]}]), "'too' is unknown"),
        (rules(rules=[{"to": [3]}]), "list of texts"),
        (rules(rules=[{"to": ["x"], "when": ["?"]}]), "not a condition"),
        (rules(rules=[{"to": ["x"], "stop": 1}]), "neither true nor false"),
    ],
)
def test_faulty_rules_are_refused_with_the_reason(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_rules(text)
