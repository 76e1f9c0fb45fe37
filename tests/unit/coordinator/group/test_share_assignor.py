"""The assignor `simple` of share groups."""

from __future__ import annotations

from kafkapy.coordinator.group.share_assignor import SharingMember, assign_simple

T, U = b"t" * 16, b"u" * 16


def members(
    number: int, topics: frozenset[bytes], previous: dict[str, dict[bytes, frozenset[int]]] | None = None
) -> list[SharingMember]:
    had = previous or {}
    return [SharingMember(name, topics, had.get(name, {})) for name in "abcdef"[:number]]


def test_partitions_are_shared_evenly() -> None:
    assert assign_simple(members(2, frozenset({T})), {T: frozenset(range(4))}) == {
        "a": {T: frozenset({0, 2})},
        "b": {T: frozenset({1, 3})},
    }
    assert assign_simple(members(4, frozenset({T})), {T: frozenset({0, 1})}) == {
        "a": {T: frozenset({0})},
        "b": {T: frozenset({0})},
        "c": {T: frozenset({1})},
        "d": {T: frozenset({1})},
    }


def test_members_keep_their_partitions_as_far_as_the_balance_allows() -> None:
    before = {"a": {T: frozenset({0, 1, 2, 3})}, "b": {T: frozenset({3})}}
    assert assign_simple(members(2, frozenset({T}), before), {T: frozenset(range(4))}) == {
        "a": {T: frozenset({0, 1})},
        "b": {T: frozenset({2, 3})},
    }
    both = {"a": {T: frozenset({1})}, "b": {T: frozenset({1})}}
    assert assign_simple(members(2, frozenset({T}), both), {T: frozenset({0, 1})}) == {
        "a": {T: frozenset({1})},
        "b": {T: frozenset({0})},
    }


def test_topics_are_balanced_separately_if_subscriptions_differ() -> None:
    group = [SharingMember("a", frozenset({T}), {}), SharingMember("b", frozenset({T, U}), {})]
    assert assign_simple(group, {T: frozenset({0, 1}), U: frozenset({0})}) == {
        "a": {T: frozenset({0})},
        "b": {T: frozenset({1}), U: frozenset({0})},
    }
