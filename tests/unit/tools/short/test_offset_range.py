"""The positions of --from and --to, and the partitions of -p."""

from __future__ import annotations

from datetime import datetime

import pytest

from kafkapy.client import TopicPartition
from kafkapy.client.admin import OffsetAndTimestamp
from kafkapy.tools.option import UsageError
from kafkapy.tools.short.offset_range import Position, offsets_of, parse_partition_numbers, parse_position

NOW_MS = 10_000_000
PARTITIONS = [TopicPartition("t", 0), TopicPartition("t", 1)]


class Log:
    """Two partitions: one with the offsets 5 to 19, and an empty one that begins at 3."""

    def beginning_offsets(self, partitions, timeout=None):
        return dict(zip(PARTITIONS, (5, 3), strict=True))

    def end_offsets(self, partitions, timeout=None):
        return dict(zip(PARTITIONS, (20, 3), strict=True))

    def offsets_for_times(self, timestamps, timeout=None):
        return {PARTITIONS[0]: OffsetAndTimestamp(11, 1, 0), PARTITIONS[1]: None}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("start", [5, 3]),
        ("Latest", [20, 3]),
        ("7", [7, 3]),
        ("1", [5, 3]),
        ("-4", [16, 3]),
        ("-400", [5, 3]),
        ("+4", [9, 3]),
        ("+400", [20, 3]),
        ("@123", [11, 3]),
    ],
)
def test_a_position_is_an_offset_of_each_partition(text: str, expected: list[int]):
    found = offsets_of(parse_position(text, NOW_MS), Log(), PARTITIONS)
    assert [found[each] for each in PARTITIONS] == expected


def test_times_are_dates_milliseconds_or_durations():
    assert parse_position("@-2m", NOW_MS) == Position("time", NOW_MS - 120_000)
    assert parse_position("@-9d", NOW_MS) == Position("time", 0)
    assert parse_position("@1970-01-01T00:00:05Z", NOW_MS) == Position("time", 5000)
    local = int(datetime(2026, 1, 31, 12).timestamp() * 1000)
    assert parse_position("@2026-01-31T12:00", NOW_MS) == Position("time", local)


@pytest.mark.parametrize("text", ["", "x", "1x", "--1", "@", "@yesterday", "@-1y", "٣"])
def test_another_text_is_refused(text: str):
    with pytest.raises(UsageError, match="is not a"):
        parse_position(text, NOW_MS)


def test_partitions_are_numbers_and_ranges():
    assert parse_partition_numbers("3,0-1,1") == [0, 1, 3]
    for text in ("", "a", "1-", "3-1", "0,,1"):
        with pytest.raises(UsageError, match="is not a list of partitions"):
            parse_partition_numbers(text)
