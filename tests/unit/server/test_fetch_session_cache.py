"""The choice of the fetch session that a new one replaces (KIP-227)."""

from __future__ import annotations

from itertools import count

import pytest

from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.server.fetch_session_cache import EVICTION_MS, CachedPartition, FetchSessionCache, next_epoch


@pytest.fixture
def cache():
    ids = count(1)
    return FetchSessionCache(2, lambda: next(ids))


def partitions(number):
    return {
        ("t", index): CachedPartition("t", bytes(16), FetchRequest.FetchPartition(partition=index))
        for index in range(number)
    }


def create(cache, monotonic_ms, size, *, is_privileged=False):
    return cache.maybe_create(monotonic_ms, partitions(size), is_privileged=is_privileged, uses_topic_ids=False)


def test_ids_differ_and_epochs_begin_with_1(cache):
    assert [create(cache, 0, 1).session_id for _ in range(2)] == [1, 2]
    assert cache.get(1).epoch == 1
    assert next_epoch(1) == 2
    assert next_epoch((1 << 31) - 1) == 1


def test_a_full_cache_of_young_sessions_takes_no_consumer(cache):
    create(cache, 0, 1)
    create(cache, 0, 1)
    assert create(cache, EVICTION_MS, 100) is None
    assert len(cache) == 2


def test_an_unused_session_goes_after_two_minutes(cache):
    stale, used = create(cache, 0, 5), create(cache, 0, 5)
    cache.touch(used, EVICTION_MS)
    new = create(cache, EVICTION_MS + 1, 1)
    assert new is not None
    assert cache.get(stale.session_id) is None
    assert cache.get(used.session_id) is used
    assert cache.evictions == 1


def test_an_old_smaller_session_makes_room_for_a_larger_one(cache):
    small, large = create(cache, 0, 2), create(cache, 0, 9)
    for session in (small, large):
        cache.touch(session, EVICTION_MS + 1)
    assert create(cache, EVICTION_MS + 2, 1) is None
    assert create(cache, EVICTION_MS + 2, 3) is not None
    assert cache.get(small.session_id) is None


def test_a_follower_displaces_a_young_consumer_but_no_follower(cache):
    consumer, follower = create(cache, 0, 50), create(cache, 0, 1, is_privileged=True)
    assert create(cache, 1, 1, is_privileged=True) is not None
    assert cache.get(consumer.session_id) is None
    assert cache.get(follower.session_id) is follower
    assert create(cache, 2, 1, is_privileged=True) is None
    assert create(cache, 2, 100) is None


def test_worth_follows_the_size(cache):
    shrinking, other = create(cache, 0, 9), create(cache, 0, 5)
    for index in range(9):
        shrinking.partitions.pop(("t", index))
    for session in (shrinking, other):
        cache.touch(session, EVICTION_MS + 1)
    assert create(cache, EVICTION_MS + 2, 1) is not None
    assert cache.get(shrinking.session_id) is None
    cache.remove(other.session_id)
    cache.remove(other.session_id)
    assert len(cache) == 1


def test_no_slots_no_sessions():
    cache = FetchSessionCache(0, lambda: 1)
    assert create(cache, 0, 1) is None
