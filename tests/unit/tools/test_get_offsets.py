"""The partitions that `kafka-get-offsets` chooses, and its times."""

from __future__ import annotations

import pytest

from kafkapy.tools.get_offsets import by_rules, by_topic_and_partitions, parse_time
from kafkapy.tools.option import ToolError
from kafkapy.types import TopicPartition

PARTITIONS = [TopicPartition(topic, number) for topic in ("one", "two", "three") for number in range(4)]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("one", "one-0 one-1 one-2 one-3"),
        ("one:1", "one-1"),
        ("one:1-3", "one-1 one-2"),
        ("one:2-", "one-2 one-3"),
        ("one:-2", "one-0 one-1"),
        (":3", "one-3 two-3 three-3"),
        ("t.*:0,one:3", "one-3 two-0 three-0"),
    ],
)
def test_rules_choose_partitions(rules: str, expected: str) -> None:
    assert " ".join(str(where) for where in PARTITIONS if by_rules(rules)(where)) == expected


def test_a_topic_and_numbers_choose_partitions() -> None:
    chosen = by_topic_and_partitions("o.*|two", "0,2")
    assert [str(where) for where in PARTITIONS if chosen(where)] == ["one-0", "one-2", "two-0", "two-2"]
    assert all(map(by_topic_and_partitions(None, ""), PARTITIONS))


def test_invalid_rules_numbers_and_times_are_refused() -> None:
    with pytest.raises(ToolError, match="Invalid rule specification: a:b"):
        by_rules("a:b")
    with pytest.raises(ToolError, match="comma separated list of numeric"):
        by_topic_and_partitions("a", "x")
    with pytest.raises(ToolError, match="Malformed time argument soon"):
        parse_time("soon")
    assert [parse_time(text) for text in ("latest", "earliest", "-3", "17")] == [-1, -2, -3, 17]
