"""The strategies of --reset-offsets: times, durations, files, and the limits of a partition's offsets."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.tools.consumer_groups import TOOL
from kafkapy.tools.offset_reset import OffsetReset, parse_datetime, parse_duration, parse_partitions, read_plans
from kafkapy.tools.option import ToolError, UsageError
from kafkapy.tools.option_parser import OptionParser
from kafkapy.types import TopicPartition
from tests.unit.tools.simulated_client import SimulatedAdmin

NOON = 1_700_049_600_000
A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
TOPICS = {"a": [(10, 100), (0, 50)]}


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
def test_other_texts_are_refused_as_times(text: str) -> None:
    with pytest.raises(ToolError, match="ParseException"):
        parse_datetime(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("PT1H", 3_600_000), ("P1DT2H3M4.5S", 93_784_500), ("P2D", 172_800_000), ("-PT1S", -1000), ("PT-1S", -1000)],
)
def test_durations_are_iso_8601(text: str, expected: int) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "1H", "P1H", "PT1D"])
def test_other_texts_are_refused_as_durations(text: str) -> None:
    with pytest.raises(ToolError, match="Text cannot be parsed to a Duration"):
        parse_duration(text)


def test_a_file_holds_plans_of_one_group_or_of_several(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    path.write_text("a,0,5\n\na,1,6\n")
    assert read_plans(str(path), "g") == {"g": {TopicPartition("a", 0): 5, TopicPartition("a", 1): 6}}
    path.write_text("g,a,0,5\nh,a,0,6\n")
    assert set(read_plans(str(path), None)) == {"g", "h"}
    path.write_text("g,a,x,5\n")
    with pytest.raises(ToolError, match="not a list of topic, partition and offset"):
        read_plans(str(path), None)
    with pytest.raises(ToolError, match="No such file"):
        read_plans(str(tmp_path / "absent"), None)


def prepared(
    words: str, committed: dict[TopicPartition, int] | None = None, times: dict[int, int] | None = None
) -> dict[TopicPartition, int]:
    """Returns the new offsets of the topic a, whose partitions have the offsets 10 to 100 and 0 to 50."""
    arguments = OptionParser(TOOL.all_options).parse(["--reset-offsets", "--group", "g", *words.split()])
    admin = SimulatedAdmin(TOPICS, times=times)
    return OffsetReset(admin, arguments).prepare("g", [A0, A1], committed or {})


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--to-earliest", (10, 0)),
        ("--to-latest", (100, 50)),
        ("--to-offset 20", (20, 20)),
        ("--to-offset 0", (10, 0)),
        ("--to-offset 10", (10, 10)),
        ("--to-offset 50", (50, 50)),
        ("--to-offset 51", (51, 50)),
        ("--to-offset 1000", (100, 50)),
        ("--shift-by 5", (35, 45)),
        ("--shift-by 10", (40, 50)),
        ("--shift-by 11", (41, 50)),
        ("--shift-by -20", (10, 20)),
        ("--shift-by -1000", (10, 0)),
        ("--shift-by 1000", (100, 50)),
        ("--to-current", (30, 40)),
    ],
)
def test_new_offsets_stay_between_the_ends_of_a_partition(words: str, expected: tuple[int, int]) -> None:
    assert prepared(words, {A0: 30, A1: 40}) == dict(zip((A0, A1), expected, strict=True))


def test_clamped_offsets_are_reported(caplog: pytest.LogCaptureFixture) -> None:
    prepared("--to-offset 60")
    assert caplog.messages == [
        "New offset (60) is higher than latest offset for topic partition a-1. Value will be set to 50"
    ]
    caplog.clear()
    prepared("--to-offset 5")
    assert caplog.messages == [
        "New offset (5) is lower than earliest offset for topic partition a-0. Value will be set to 10"
    ]


def test_offsets_of_a_file_stay_between_the_ends_too(tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    path.write_text("a,0,5\na,1,51\n")
    assert prepared(f"--from-file {path}") == {A0: 10, A1: 50}


def test_a_partition_without_a_committed_offset_is_not_shifted_and_current_means_its_end() -> None:
    with pytest.raises(UsageError, match="Cannot shift offset for partition a-1"):
        prepared("--shift-by 1", {A0: 30})
    assert prepared("--to-current", {A0: 30}) == {A0: 30, A1: 50}


def test_a_time_after_the_last_record_means_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--to-datetime 2023-11-15T12:00:00.000"
    assert prepared(words, times={NOON: 42}) == {A0: 42, A1: 42}
    assert prepared(words) == {A0: 100, A1: 50}
    assert capsys.readouterr().out.count("Falling back to latest known offset.") == 2


def test_a_strategy_is_required() -> None:
    with pytest.raises(UsageError, match="requires one of the following scenarios"):
        prepared("")


def test_partitions_must_exist_and_have_a_leader() -> None:
    arguments = OptionParser(TOOL.all_options).parse(["--to-earliest"])
    admin = SimulatedAdmin(TOPICS)
    with pytest.raises(ToolError, match='The partitions "a-2,b-0" do not exist'):
        OffsetReset(admin, arguments).prepare("g", [A0, TopicPartition("a", 2), TopicPartition("b", 0)], {})
    admin.leaders[A1] = -1
    with pytest.raises(ToolError, match='The partitions "a-1" have no leader'):
        OffsetReset(admin, arguments).prepare("g", [A0, A1], {})


def test_topics_are_named_whole_or_with_partitions() -> None:
    admin = SimulatedAdmin(TOPICS)
    assert parse_partitions(admin, ["a"]) == [A0, A1]
    assert parse_partitions(admin, ["a:1", "b:0,3"]) == [A1, TopicPartition("b", 0), TopicPartition("b", 3)]
    for word in ("a:", ":1", "a:1:2", "a:x", "a:-1"):
        with pytest.raises(UsageError, match="Invalid"):
            parse_partitions(admin, [word])
    with pytest.raises(ToolError):
        parse_partitions(admin, ["missing"])
