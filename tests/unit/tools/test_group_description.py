"""The tables of `kafka-consumer-groups`."""

from __future__ import annotations

import pytest

from kafkapy.tools.group_description import PartitionRow, assignment_text, print_offsets, print_table
from kafkapy.types import TopicPartition


def test_columns_have_their_widths(capsys: pytest.CaptureFixture[str]) -> None:
    columns = [
        ("A", 3, lambda row: row[0]),
        ("B", -4, lambda row: row[1]),
        ("C", 0, lambda row: None),
    ]
    print_table(columns, [("longer", 1), ("x", 22222)])
    assert capsys.readouterr().out == "\nA      B    C\nlonger 1    -\nx      22222 -\n"
    print_table(columns[:1], [], begins_with_a_line=False, ends_with_a_space=True)
    assert capsys.readouterr().out == "A   \n"


def test_the_lag_needs_both_offsets(capsys: pytest.CaptureFixture[str]) -> None:
    row = PartitionRow("g", "t", 0, None, 3, 10, "-", "-", "-")
    assert row.lag == 7
    assert row._replace(current_offset=None).lag is None
    print_offsets([row], verbose=False)
    assert capsys.readouterr().out.split()[9:] == ["g", "t", "0", "3", "10", "7", "-", "-", "-"]


def test_assignments_are_grouped_by_topic() -> None:
    partitions = [TopicPartition("b", 1), TopicPartition("a", 2), TopicPartition("b", 0)]
    assert assignment_text(partitions) == "a:2;b:0,1"
    assert assignment_text(()) == "-"
