"""The command line of `kafka-topics`: assignments, expressions, contradictory flags."""

from __future__ import annotations

import pytest

from kafkapy.tools.option import UsageError
from kafkapy.tools.option_parser import OptionParser
from kafkapy.tools.topic_filter import chosen_topics
from kafkapy.tools.topics import OPTIONS, check, parse_assignments

NAMES = ["b", "alpha", "a.b"]


def test_assignments_are_parsed() -> None:
    assert parse_assignments(None) is None
    assert parse_assignments("1:2,2:3") == [[1, 2], [2, 3]]
    with pytest.raises(ValueError, match="duplicate entries: 1"):
        parse_assignments("1:1")
    with pytest.raises(ValueError, match="Partition 1 has different replication factor"):
        parse_assignments("1,1:2")


def test_expressions_match_the_whole_name() -> None:
    assert chosen_topics(NAMES, "a.*, b") == ["a.b", "alpha", "b"]
    assert chosen_topics(NAMES, "'b'") == ["b"]
    assert chosen_topics(NAMES, None) == ["a.b", "alpha", "b"]
    with pytest.raises(ValueError, match="is an invalid regex"):
        chosen_topics(NAMES, "a(")


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("--list --create", "exactly one action"),
        ("--create", r"Missing required argument \"\[topic\]\""),
        ("--alter --topic a", r"Missing required argument \"\[partitions\]\""),
        ("--list --partitions 3", r"\"\[partitions\]\" can't be used with option \"\[list\]\""),
        ("--describe --if-exists", "--topic or --topic-id is required"),
    ],
)
def test_contradictory_flags_are_refused(words: str, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        check(OptionParser(OPTIONS).parse(["--bootstrap-server", "a:1", *words.split()]))
