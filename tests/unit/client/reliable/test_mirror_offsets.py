"""The translation of a mirror's offsets."""

from __future__ import annotations

import random

import pytest

from kafkapy.client.reliable.mirror_offsets import (
    MOST_RUNS,
    OffsetMap,
    Run,
    pack_position,
    pack_runs,
    parse_position_key,
    position_key,
    runs_of,
    unpack_position,
    unpack_runs,
)
from kafkapy.types import TopicPartition


def test_offsets_that_follow_each_other_are_one_run():
    assert list(runs_of([(5, 0), (6, 1), (8, 2), (9, 3), (10, 7)])) == [Run(5, 0, 2), Run(8, 2, 2), Run(10, 7, 1)]
    assert list(runs_of([])) == []


@pytest.mark.parametrize("seed", range(5))
def test_an_offset_is_translated_to_the_next_copy(seed):
    chance = random.Random(seed)
    source = sorted(chance.sample(range(10, 300), 150))
    target, pairs = 0, []
    for offset in source:
        target += chance.choice((1, 1, 1, 2))
        pairs.append((offset, target))
    offsets = OffsetMap()
    for run in runs_of(pairs):
        offsets.add(run)
        offsets.add(run)
    for offset in range(310):
        expected = next((copy for original, copy in pairs if original >= offset), pairs[-1][1] + 1)
        assert offsets.translate(offset) == expected


def test_the_runs_are_bounded_and_old_offsets_repeat():
    offsets = OffsetMap()
    assert offsets.translate(3) is None
    for number in range(3 * MOST_RUNS):
        offsets.add(Run(number * 3, number * 2, 1))
    assert len(offsets._runs) <= 2 * MOST_RUNS
    assert offsets.translate(0) == offsets._runs[0].target > 0


def test_the_stored_forms_are_read_again():
    runs = [Run(1, 2, 3), Run(9, 10**12, 1)]
    assert unpack_runs(pack_runs(runs)) == runs
    assert parse_position_key(position_key(TopicPartition("a:b", 3))) == ("a:b", 3)


def test_a_source_that_was_created_again_has_runs_of_its_own():
    offsets = OffsetMap()
    offsets.add(Run(0, 0, 10))
    offsets.add(Run(0, 10, 3))
    offsets.add(Run(3, 13, 3))
    assert [offsets.translate(each) for each in (0, 2, 5, 9)] == [10, 12, 15, 16]


def test_a_truncation_of_the_source_keeps_the_runs_before_it():
    offsets = OffsetMap()
    for run in (Run(0, 0, 50), Run(60, 50, 40), Run(90, 100, 5)):
        offsets.add(run)
    assert [offsets.translate(each) for each in (20, 55, 60, 89, 90, 99)] == [20, 50, 50, 79, 100, 105]


def test_positions_have_the_id_of_their_topic_if_it_is_known():
    assert unpack_position(pack_position(7, "AAAAAAAAAAAAAAAAAAAAAQ")) == (7, "AAAAAAAAAAAAAAAAAAAAAQ")
    assert unpack_position(pack_position(7)) == unpack_position(b"7") == (7, "")


@pytest.mark.parametrize("content", [None, b"", b"\x01", b"\x92\x01\x02", b"\x91\x02", b"\x94\x01\xa1a\x01\x01"])
def test_other_bytes_are_refused(content):
    with pytest.raises(ValueError, match="runs of a mirror"):
        unpack_runs(content)
    with pytest.raises(ValueError, match=r"mirror|literal|decode"):
        parse_position_key(content)
