"""Times and durations of --reset-offsets, and its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.tools.offset_reset import parse_datetime, parse_duration, read_plans
from kafkapy.tools.option import ToolError
from kafkapy.types import TopicPartition

NOON = 1_700_049_600_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2023-11-15T12:00:00.000", NOON),
        ("2023-11-15T12:00:00.001Z", NOON + 1),
        ("2023-11-15T14:00:00.000+02:00", NOON),
        ("2023-11-15T12:00:00", NOON),
    ],
)
def test_a_time_without_a_zone_is_utc(text: str, expected: int) -> None:
    assert parse_datetime(text) == expected


@pytest.mark.parametrize("text", ["2023-11-15", "2023-11-15T99:00:00.000", "T"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ToolError, match="ParseException"):
        parse_datetime(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("PT1H", 3_600_000), ("P1DT2H3M4.5S", 93_784_500), ("P2D", 172_800_000), ("-PT1S", -1000), ("PT-1S", -1000)],
)
def test_durations(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "1H", "P1H", "PT1D"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ToolError, match="Text cannot be parsed to a Duration"):
        parse_duration(text)


def test_plans(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    path.write_text("a,0,5\n\na,1,6\n")
    assert read_plans(str(path), "g") == {"g": {TopicPartition("a", 0): 5, TopicPartition("a", 1): 6}}
    path.write_text("g,a,0,5\nh,a,0,6\n")
    assert set(read_plans(str(path), None)) == {"g", "h"}
    path.write_text("g,a,x,5\n")
    with pytest.raises(ToolError, match="no list of topic, partition and offset"):
        read_plans(str(path), None)
    with pytest.raises(ToolError, match="No such file"):
        read_plans(str(tmp_path / "absent"), None)
