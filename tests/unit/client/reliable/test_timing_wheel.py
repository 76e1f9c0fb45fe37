"""The timing wheel, compared with a plain set of due times."""

from __future__ import annotations

import random

import pytest

from kafkapy.client.reliable.timing_wheel import MOST_MOVED, TimingWheel

DELAYS_MS = (0, -5, 1, 7, 300, 5000, 70_000, 3_000_000, 40_000_000, 10**12)
ALL = 10**9


def advanced(wheel: TimingWheel, now_ms: int, most: int = ALL) -> list[int]:
    wheel.advance(now_ms)
    return wheel.take(most)


@pytest.mark.parametrize("seed", range(20))
def test_every_entry_is_due_in_its_tick(seed):
    chance = random.Random(seed)
    tick_ms = chance.choice((1, 8))
    now_ms = chance.randrange(10**9)
    due: dict[int, int] = {}
    wheel = TimingWheel(now_ms, due.__getitem__, tick_ms)
    pending: set[int] = set()
    for _ in range(150):
        for _ in range(chance.randrange(5)):
            entry = len(due)
            due[entry] = max(now_ms + chance.choice(DELAYS_MS) + chance.randrange(50), 0)
            wheel.add(entry)
            pending.add(entry)
        for entry in [each for each in sorted(pending) if chance.random() < 0.05]:
            wheel.remove(entry)
            pending.discard(entry)
        now_ms += chance.choice((0, 1, 8, 50, 2048, 2049, 70_000, 600_000, 200_000_000))
        found = advanced(wheel, now_ms)
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
        assert not advanced(wheel, now_ms)
    assert advanced(wheel, century_ms + 8) == [0]


def test_the_next_time_leads_to_the_due_time_of_the_only_entry():
    due_ms = 40_000_000
    wheel = TimingWheel(0, lambda entry: due_ms, 8)
    wheel.add(0)
    calls = 0
    while (now_ms := wheel.next_ms()) is not None and not advanced(wheel, now_ms):
        calls += 1
    assert now_ms == due_ms and calls <= 3


def test_the_entries_of_a_slot_move_before_their_turn_begins_a_part_at_each_call():
    turn_ms = 256 * 256 * 8
    count = 5 * MOST_MOVED
    reads: list[int] = []

    def due_ms_of(entry: int) -> int:
        reads.append(entry)
        return 2 * turn_ms + entry  # in the second slot of the third level

    wheel = TimingWheel(0, due_ms_of, 8)
    for entry in range(count):
        wheel.add(entry)
    for second in range(300, turn_ms // 1000, 10):
        reads.clear()
        assert not advanced(wheel, turn_ms + 1000 * second)
        assert len(reads) <= 3 * MOST_MOVED
    reads.clear()
    assert not advanced(wheel, 2 * turn_ms - 8) and len(reads) <= 3 * MOST_MOVED
    assert advanced(wheel, 2 * turn_ms + count) == list(range(count))


def test_due_entries_are_taken_in_the_order_of_their_times_and_put_back_before_the_others():
    due = [1000, 500, 500, 800, 90_000]
    wheel = TimingWheel(0, due.__getitem__, 8)
    for entry in range(len(due)):
        wheel.add(entry)
    assert advanced(wheel, 2000, most=2) == [1, 2]
    assert wheel.next_ms() <= 2000
    for entry in (2, 1):
        wheel.put_back(entry)
    wheel.remove(3)
    assert wheel.take(ALL) == [1, 2, 0]
    assert len(wheel) == 1 and wheel.next_ms() > 2000
