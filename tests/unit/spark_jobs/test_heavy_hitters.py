"""Misra-Gries summaries: the bound on the error, in every order of additions and merges."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy_jobs.heavy_hitters import Summary

TERMS = st.lists(st.lists(st.sampled_from([f"t{number}" for number in range(30)]), max_size=120), max_size=5)


def check(summary: Summary, true: Counter[str]) -> None:
    summary.prune()
    assert summary.total == true.total()
    assert len(summary.counts) <= summary.capacity
    assert summary.error <= true.total() / (summary.capacity + 1)
    for term, count in true.items():
        assert summary.counts.get(term, 0) <= count <= summary.counts.get(term, 0) + summary.error


@settings(max_examples=200, deadline=None)
@given(TERMS, st.integers(1, 12))
def test_each_count_is_right_up_to_the_error(parts, capacity):
    merged, one = Summary(capacity), Summary(capacity)
    for part in parts:
        summary = Summary(capacity)
        for term in part:
            summary.add(term)
            one.add(term)
        check(summary, Counter(part))
        read = Summary.from_json(summary.to_json())
        merged.merge(read.counts.items(), read.error, read.total)
    true = Counter(term for part in parts for term in part)
    check(merged, true)
    check(one, true)


def test_without_more_terms_than_the_capacity_counts_are_exact():
    summary = Summary(3)
    for term in ("a", "b", "a", "c", "a", "b"):
        summary.add(term)
    assert summary.top(2) == [("a", 3), ("b", 2)] and summary.error == 0
    assert summary.top(9) == [("a", 3), ("b", 2), ("c", 1)]


def test_a_million_terms_need_the_memory_of_the_capacity():
    summary = Summary(100)
    for number in range(200_000):
        summary.add("hot" if number % 10 == 0 else f"rare-{number}")
        assert len(summary.counts) <= 201
    ((term, count),) = summary.top(1)
    assert term == "hot" and count <= 20_000 <= count + summary.error
    assert summary.error <= 200_000 / 101


def test_of_equal_counts_the_greater_bytes_come_first():
    summary = Summary(5)
    for term in ("b", "\U0001f600", "\ue000", "a"):
        summary.add(term)
    assert [term for term, _ in summary.top(4)] == ["\U0001f600", "\ue000", "b", "a"]
