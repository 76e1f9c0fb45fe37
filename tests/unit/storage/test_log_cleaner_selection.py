"""The selection of the offsets that may be cleaned, and of the next log."""

import pytest

from kafkapy.storage.log_cleaner_selection import NO_LAG_LIMIT, CompactedLog, SegmentAge, filthiest, log_to_clean
from kafkapy.types import TopicPartition

NOW = 1_000_000
SEGMENTS = tuple(SegmentAge(base, 100, NOW - 1000 + base, NOW - 1100 + base) for base in (0, 10, 20))


def log(**changes):
    described = CompactedLog(TopicPartition("t", 0), SEGMENTS, 30, 0, 40, 40, 0.5, 0, NO_LAG_LIMIT)
    return described._replace(**changes)


@pytest.mark.parametrize(
    ("changes", "checkpoint", "expected"),
    [
        ({}, None, (0, 30, 0, 300)),
        ({}, 10, (10, 30, 100, 200)),
        ({}, 30, (30, 30, 300, 0)),
        ({"log_start_offset": 20, "segments": SEGMENTS[2:]}, 10, (20, 30, 0, 100)),  # records were deleted since
        ({}, 41, (0, 30, 0, 300)),  # the log was truncated since
        ({"last_stable_offset": 10}, None, (0, 10, 0, 100)),
        ({"last_stable_offset": 15}, None, (0, 15, 0, 200)),
        ({"last_stable_offset": 5}, 10, (10, 10, 100, 0)),
        ({"min_compaction_lag_ms": 985}, None, (0, 20, 0, 200)),
        ({"min_compaction_lag_ms": 2000}, None, (0, 0, 0, 0)),
        ({"segments": ()}, None, (0, 30, 0, 0)),
    ],
)
def test_the_range_to_clean_and_its_bytes(changes, checkpoint, expected):
    found = log_to_clean(log(**changes), checkpoint, NOW)
    assert expected == (
        found.first_dirty_offset,
        found.first_uncleanable_offset,
        found.clean_bytes,
        found.cleanable_bytes,
    )


def test_a_log_is_due_above_the_dirty_ratio():
    assert log_to_clean(log(), 10, NOW).is_due
    assert not log_to_clean(log(), 20, NOW).is_due
    # the dirty ratio must be above the limit, not equal to it
    assert not log_to_clean(log(min_cleanable_ratio=2 / 3), 10, NOW).is_due
    assert not log_to_clean(log(segments=(), min_cleanable_ratio=0.0), None, NOW).is_due


def test_a_log_is_due_once_the_lag_limit_has_passed():
    assert not log_to_clean(log(max_compaction_lag_ms=1080), 20, NOW).is_due
    assert log_to_clean(log(max_compaction_lag_ms=1079), 20, NOW).is_due
    assert not log_to_clean(log(max_compaction_lag_ms=1), 30, NOW).is_due


def test_the_filthiest_of_those_that_are_due():
    logs = [log_to_clean(log(partition=TopicPartition("t", n)), n * 10, NOW) for n in (2, 1, 0)]
    assert filthiest(logs).partition == TopicPartition("t", 0)
    assert filthiest(logs[:1]) is None
    assert filthiest([]) is None
