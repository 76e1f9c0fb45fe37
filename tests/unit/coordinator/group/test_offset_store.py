"""Committed offsets as readers see them while newer ones wait for the high watermark, and in transactions."""

from __future__ import annotations

import pytest

from kafkapy.coordinator.group.committed_offset import CommittedOffset
from kafkapy.coordinator.group.offset_store import OffsetStore


class Horizon:
    def __init__(self) -> None:
        self.offset = 0

    def __call__(self) -> int:
        return self.offset


def entry(offset: int, log_offset: int) -> CommittedOffset:
    return CommittedOffset(offset, log_offset=log_offset)


def seen(store: OffsetStore) -> int | None:
    found = store.get("g", "t", 0)
    return None if found is None else found.offset


def test_reader_sees_what_is_below_the_high_watermark() -> None:
    horizon = Horizon()
    store = OffsetStore(horizon)
    for log_offset in range(3):
        store.put("g", "t", 0, entry(100 + log_offset, log_offset))
    assert seen(store) is None
    for committed in range(1, 4):
        horizon.offset = committed
        assert seen(store) == 99 + committed
    store.put("g", "t", 0, entry(200, 3))
    assert seen(store) == 102
    newest = next(store.newest("g"))[2]
    assert newest.previous is not None
    assert newest.previous.previous is None  # The older entries, which no reader can see, are dropped.


def test_an_older_commit_does_not_replace_a_newer_one() -> None:
    store = OffsetStore(Horizon())
    store.put("g", "t", 0, entry(5, 3))
    with pytest.raises(AssertionError, match="at 2 after 3"):
        store.put("g", "t", 0, entry(4, 2))


def test_deletion_is_seen_when_committed_and_then_forgotten() -> None:
    horizon = Horizon()
    store = OffsetStore(horizon)
    store.put("g", "t", 0, entry(5, 0))
    horizon.offset = 1
    store.delete("g", "t", 0, 1)
    assert seen(store) == 5
    assert store.partitions("g") == set()
    horizon.offset = 2
    assert seen(store) is None
    store.put("h", "t", 0, entry(1, 2))
    assert store.group_ids() == ["h"]


def test_deleting_what_is_not_there_keeps_nothing() -> None:
    store = OffsetStore(Horizon())
    store.delete("g", "t", 0, 0)
    assert store.group_ids() == []


def test_partitions_include_those_that_are_pending_in_a_transaction() -> None:
    store = OffsetStore(Horizon())
    store.put("g", "t", 0, entry(1, 0))
    store.put_pending(7, "g", "t", 1, entry(2, 1))
    store.put_pending(7, "h", "t", 2, entry(3, 2))
    assert store.partitions("g") == {("t", 0), ("t", 1)}
    assert store.pending_partitions("g") == {("t", 1)}
    assert store.group_ids() == ["g", "h"]
    store.delete("g", "t", 1, 3)
    assert store.partitions("g") == {("t", 0)}
    store.end_transaction(7, committed=True)
    assert store.partitions("g") == {("t", 0)}


def test_transactional_offsets_count_from_their_marker() -> None:
    horizon = Horizon()
    horizon.offset = 100
    store = OffsetStore(horizon)
    store.put("g", "t", 0, entry(1, 0))
    store.put_pending(7, "g", "t", 0, entry(2, 1))
    assert seen(store) == 1
    assert store.has_pending("g", "t", 0)
    store.end_transaction(7, committed=True)
    assert seen(store) == 2
    assert not store.has_pending("g", "t", 0)
    store.put_pending(7, "g", "t", 0, entry(3, 2))
    store.end_transaction(7, committed=False)
    assert seen(store) == 2
    # A commit outside the transaction replaces an older pending commit, even if the transaction's marker follows later.
    store.put_pending(8, "g", "t", 0, entry(4, 3))
    store.put("g", "t", 0, entry(5, 4))
    store.end_transaction(8, committed=True)
    assert seen(store) == 5
