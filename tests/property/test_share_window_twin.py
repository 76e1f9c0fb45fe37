"""The runs of a share partition's window against one entry for each record, under random commands."""

from __future__ import annotations

import random

import pytest

from kafkapy.errors import ApiError
from kafkapy.replica.share.in_flight import AckBatch, InFlightRecords, Run
from tests.reference.share_window import SlowRecord, SlowWindow

MEMBERS = ("a", "b", "c")
LIMIT = 200  # so high that no delivery is throttled


def expanded(window: InFlightRecords) -> dict[int, tuple[object, ...]]:
    return {
        offset: (run.state, run.count, run.member, run.deadline_ms, run.pending, run.is_hole)
        for run in window.runs
        for offset in range(run.first, run.last + 1)
    }


def compare(window: InFlightRecords, slow: SlowWindow) -> None:
    expected = {
        offset: (each.state, each.count, each.member, each.deadline_ms, each.pending, each.is_hole)
        for offset, each in slow.records.items()
    }
    assert expanded(window) == expected
    assert (window.start_offset, window.end_offset) == (slow.start_offset, slow.end_offset)
    assert window.complete_count == slow.complete_count
    assert window.next_fetch_offset() == slow.next_fetch_offset()
    offset = window.start_offset
    for run in window.runs:
        assert run.first == offset <= run.last
        offset = run.last + 1


class Commands:
    """Runs random commands on both windows."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        start = self.random.randrange(5)
        self.window, self.slow = InFlightRecords(start), SlowWindow(start)
        self.log: list[tuple[int, int]] = []
        self.now_ms = 0
        self.pending: list[tuple[list[Run], list[SlowRecord]]] = []

    def step(self) -> None:
        self.now_ms += self.random.randrange(3)
        self.random.choice(
            (self.acquire, self.acquire, self.acknowledge, self.acknowledge, self.settle, self.expire, self.move)
        )()
        compare(self.window, self.slow)

    def log_from(self, offset: int) -> list[tuple[int, int]]:
        while not self.log or self.log[-1][1] < offset + 40:
            base = (self.log[-1][1] + 1 if self.log else 0) + self.random.choice((0, 0, 0, 3))
            self.log.append((base, base + self.random.randrange(8)))
        found = [each for each in self.log if each[1] >= offset]
        return found[: self.random.randrange(1, 6)]

    def acquire(self) -> None:
        most, most_in_flight = self.random.randrange(1, 20), self.random.randrange(5, 60)
        is_exact = self.random.random() < 0.3
        fetch_offset = self.window.next_fetch_offset()
        batches = self.log_from(fetch_offset)
        member, deadline_ms = self.random.choice(MEMBERS), self.now_ms + self.random.randrange(1, 20)
        ends = {run.last for run in self.window.runs} | {batches[-1][1]}
        expected = self.slow.acquire(member, batches, deadline_ms, most, most_in_flight, ends, is_exact)
        acquired = self.window.acquire(
            member, batches, fetch_offset, deadline_ms, max_records=most, max_in_flight=most_in_flight, limit=LIMIT,
            batch_size=self.random.randrange(1, 10), is_exact=is_exact,
        )  # fmt: skip
        found = [(o, each.delivery_count) for each in acquired for o in range(each.first, each.last + 1)]
        assert found == expected

    def acknowledge(self) -> None:
        member = self.random.choice(MEMBERS)
        batches, offset = [], max(0, self.window.start_offset - 2)
        for _ in range(self.random.randrange(1, 3)):
            first = offset + self.random.randrange(8)
            last = first + self.random.randrange(6)
            size = self.random.choice((1, last - first + 1))
            batches.append(AckBatch(first, last, [self.random.randrange(5) for _ in range(size)]))
            offset = last + 1
        if self.random.random() < 0.5:
            held = [run for run in self.window.runs if run.member == member and run.pending is None]
            if held:
                run = self.random.choice(held)
                batches = [AckBatch(run.first, run.last, [self.random.randrange(5)])]
        expected = self.slow.prepare(member, batches, LIMIT, self.now_ms + 9)
        try:
            prepared = self.window.prepare(member, batches, LIMIT, self.now_ms + 9)
        except ApiError:
            assert expected is None
            return
        assert expected is not None
        self.pending.append((prepared, expected))

    def settle(self) -> None:
        if not self.pending:
            return
        runs, records = self.pending.pop(self.random.randrange(len(self.pending)))
        if self.random.random() < 0.7:
            self.window.commit(runs)
            self.slow.commit(records)
        else:
            self.window.roll_back(runs)
            self.slow.roll_back(records)

    def expire(self) -> None:
        self.window.expire(self.now_ms, LIMIT)
        self.slow.expire(self.now_ms, LIMIT)
        self.window.advance()
        self.slow.advance()

    def move(self) -> None:
        if self.random.random() < 0.2:
            offset = self.window.start_offset + self.random.randrange(15)
            self.window.move_start(offset)
            self.slow.move_start(offset)


@pytest.mark.parametrize("seed", range(60))
def test_runs_and_single_records_agree(seed):
    commands = Commands(seed)
    for _ in range(150):
        commands.step()
