"""The timing wheel against a sorted list, and the pending records."""

from __future__ import annotations

import random

import pytest

from kafkapy.client.reliable.pending_records import PendingRecords
from kafkapy.client.reliable.timing_wheel import TimingWheel

DELAYS_MS = (0, -5, 1, 7, 300, 5000, 70_000, 3_000_000, 40_000_000, 10**12)


@pytest.mark.parametrize("seed", range(12))
def test_every_entry_is_due_in_its_tick(seed):
    chance = random.Random(seed)
    tick_ms = chance.choice((1, 8))
    now_ms = chance.randrange(10**9)
    due: dict[int, int] = {}
    wheel = TimingWheel(now_ms, due.__getitem__, tick_ms)
    pending: set[int] = set()
    for _ in range(120):
        for _ in range(chance.randrange(5)):
            entry = len(due)
            due[entry] = max(now_ms + chance.choice(DELAYS_MS) + chance.randrange(50), 0)
            wheel.add(entry)
            pending.add(entry)
        now_ms += chance.choice((0, 1, 8, 50, 2048, 2049, 70_000, 600_000))
        found = wheel.advance(now_ms)
        assert len(found) == len(set(found)) and pending.issuperset(found)
        assert all(due[each] <= now_ms for each in found)
        pending.difference_update(found)
        assert all(-(-due[each] // tick_ms) > now_ms // tick_ms for each in pending)
        assert len(wheel) == len(pending)
        next_ms = wheel.next_ms()
        assert (next_ms is None) is not bool(pending)
        if next_ms is not None:
            assert next_ms <= max(min(due[each] for each in pending), now_ms) + tick_ms


def test_an_entry_of_the_far_future_waits_its_time():
    century_ms = 100 * 366 * 24 * 3600 * 1000
    wheel = TimingWheel(0, lambda entry: century_ms, 8)
    wheel.add(0)
    now_ms = 0
    for _ in range(60):
        now_ms += century_ms // 64
        assert not wheel.advance(now_ms)
    assert wheel.advance(century_ms + 8) == [0]


def test_pending_records_are_returned_with_their_contents():
    with PendingRecords(1000) as pending:
        pending.add(0, 1100, b"a", None)
        pending.add(1, 1050, b"bb", b"id")
        pending.add(1, 9000, b"ccc", b"id")
        assert pending.count == 2
        due = list(pending.advance(1200))
        assert [(partition, pending.content(entry)) for partition, entry in due] == [(0, b"a")]
        pending.release(due[0][1])
        assert pending.remove_key(1, b"id") and not pending.remove_key(1, b"id")
        assert pending.count == 0 and not list(pending.advance(10_000))


def test_only_the_records_of_assigned_partitions_stay():
    with PendingRecords(0) as pending:
        for number in range(10):
            pending.add(number % 2, 100 + number, b"%d" % number, b"id%d" % number)
        list(pending.advance(105))  # due records that were not sent are kept
        pending.keep_only(frozenset((1,)), 105)
        assert pending.count == 5
        assert sorted(pending.content(entry) for _, entry in pending.advance(1000)) == [b"1", b"3", b"5", b"7", b"9"]
        assert not pending.remove_key(0, b"id0")


def test_the_space_of_removed_records_is_given_back(monkeypatch):
    monkeypatch.setattr("kafkapy.client.reliable.pending_records._LEAST_GARBAGE", 1000)
    with PendingRecords(0) as pending:
        for _ in range(100):
            pending.add(0, 10**9, b"x" * 100, b"same")
        pending.tidy(0)
        assert pending.count == 1 and pending._end == 100
        assert pending.remove_key(0, b"same")
