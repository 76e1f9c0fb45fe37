"""The offsets up to which a redrive has moved dead letters back, which are metadata of a committed offset."""

from __future__ import annotations

import random

import pytest

from kafkapy.client.reliable.moved_offsets import MOST_METADATA_BYTES, MovedOffsets


def test_the_text_has_the_same_offsets():
    for seed in range(20):
        chance = random.Random(seed)
        moved, expected = MovedOffsets(100), set(range(100))
        for offset in chance.sample(range(100, 400), 120):
            assert moved.add(offset)
            expected.add(offset)
        again = MovedOffsets(moved.first, moved.text())
        assert {each for each in range(500) if each in again} == expected
        assert again.first == moved.first == next(each for each in range(500) if each not in expected)


def test_gaps_in_the_log_do_not_end_a_range():
    moved = MovedOffsets(0)
    moved.add(0)
    moved.add(2, previous_end=1)
    moved.add(9, previous_end=5)
    assert (moved.first, moved.text()) == (3, "moved:6:1")


def test_a_full_text_refuses_further_ranges():
    moved = MovedOffsets(0)
    added = 0
    while moved.add(1000 + added * 1000):
        added += 1
    assert added > 500 and len(moved.text()) <= MOST_METADATA_BYTES
    assert 1000 + added * 1000 not in moved
    assert moved.add(1001)


@pytest.mark.parametrize("text", ["moved:x", "moved:1:", "moved:1:0", "moved:,", "moved:!:!"])
def test_damaged_metadata_are_refused(text):
    with pytest.raises(ValueError, match=r"moved|base 36"):
        MovedOffsets(0, text)


def test_the_metadata_of_others_are_ignored():
    assert MovedOffsets(4, "some note").text() == ""
