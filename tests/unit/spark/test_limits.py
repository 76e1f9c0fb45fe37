"""Limits of a batch, and its division into tasks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafkapy.spark.limits import TriggerDelay, divide, limit_offsets
from kafkapy.spark.stream_offset import OffsetRange
from kafkapy.types import TopicPartition

A0, A1, A2 = (TopicPartition("a", number) for number in range(3))


def test_a_limit_is_divided_in_proportion_and_exactly():
    assert limit_offsets(10, {A0: 0, A1: 0}, {A0: 30, A1: 10}) == {A0: 8, A1: 2}
    assert limit_offsets(1, {A0: 5, A1: 5}, {A0: 8, A1: 6}) == {A0: 6, A1: 5}
    assert limit_offsets(100, {A0: 5}, {A0: 8}) == {A0: 8}


def test_what_the_division_leaves_over_goes_to_the_largest_remainders():
    assert limit_offsets(2, {A0: 0, A1: 0, A2: 0}, {A0: 1, A1: 1, A2: 3}) == {A0: 1, A1: 0, A2: 1}


@given(st.integers(1, 50), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 40)), min_size=1, max_size=6))
def test_the_sum_is_the_limit_and_nothing_is_passed(most, partitions):
    starts = {TopicPartition("t", n): start for n, (start, _) in enumerate(partitions)}
    latest = {TopicPartition("t", n): start + size for n, (start, size) in enumerate(partitions)}
    ends = limit_offsets(most, starts, latest)
    assert sum(ends[each] - starts[each] for each in ends) == min(most, sum(size for _, size in partitions))
    assert all(starts[each] <= ends[each] <= latest[each] for each in ends)


def test_a_partition_that_lost_records_keeps_its_end():
    assert limit_offsets(1, {A0: 9, A1: 0}, {A0: 4, A1: 10}) == {A0: 4, A1: 1}


def test_a_batch_waits_for_enough_but_not_for_ever():
    delay = TriggerDelay(10, 1000)
    assert not delay.holds_back(1, 0)
    assert delay.holds_back(9, 500)
    assert not delay.holds_back(10, 600)
    assert delay.holds_back(9, 1500)
    assert not delay.holds_back(9, 1600)
    assert not TriggerDelay(None, 1000).holds_back(0, 0)


def test_ranges_are_divided_by_size():
    whole = [OffsetRange(A0, 0, 30), OffsetRange(A1, 5, 15), OffsetRange(A2, 3, 3)]
    assert divide(whole, None, None) == whole[:2]
    parts = divide(whole, 4, None)
    assert parts == [OffsetRange(A0, 0, 10), OffsetRange(A0, 10, 20), OffsetRange(A0, 20, 30), OffsetRange(A1, 5, 15)]
    assert [each.size for each in divide([OffsetRange(A0, 0, 10)], None, 4)] == [3, 3, 4]


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=5),
    st.none() | st.integers(1, 30),
    st.none() | st.integers(1, 20),
)
def test_dividing_loses_nothing(sizes, least, most):
    whole = [OffsetRange(TopicPartition("t", n), 7, 7 + size) for n, size in enumerate(sizes)]
    parts = divide(whole, least, most)
    assert len(parts) >= min(least or 1, sum(sizes))
    assert all(each.size >= 1 and (most is None or each.size <= most) for each in parts)
    for each in whole:
        mine = [part for part in parts if part.partition == each.partition]
        assert [mine[0].start, *(part.end for part in mine)] == [*(part.start for part in mine), each.end]
