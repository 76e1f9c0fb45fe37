"""The pending records of the delay service, their file, and how they are read again."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kafkapy.client.reliable.delayed_records import DelayedRecord, pack, unpack
from kafkapy.client.reliable.pending_contents import PendingContents
from kafkapy.client.reliable.pending_records import PendingRecords
from kafkapy.client.reliable.pending_restore import restore
from tests.unit.client.reliable.simulated_record import SimulatedRecord

ALL = 10**9


def taken(pending: PendingRecords, now_ms: int, most: int = ALL) -> list[tuple[int, bytes]]:
    return [(pending.partition(entry), pending.content(entry)) for entry in pending.take_due(now_ms, most)]


def test_pending_records_are_returned_with_their_contents():
    with PendingRecords(1000) as pending:
        pending.add(0, 1100, b"a", None)
        pending.add(1, 1050, b"bb", b"id")
        pending.add(1, 9000, b"ccc", b"id")
        assert pending.count == 2
        assert taken(pending, 1200) == [(0, b"a")]
        pending.commit()
        assert pending.remove_key(1, b"id") and not pending.remove_key(1, b"id")
        assert pending.count == 0 and not taken(pending, 10_000)


def test_only_the_records_of_assigned_partitions_stay():
    with PendingRecords(0) as pending:
        for number in range(10):
            pending.add(number % 2, 100 + number, b"%d" % number, b"id%d" % number)
        pending.commit()
        taken(pending, 105)
        pending.roll_back()
        pending.drop({0})
        assert pending.count == 5
        assert not pending.remove_key(0, b"id0")
        assert [content for _, content in taken(pending, 1000)] == [b"1", b"3", b"5", b"7", b"9"]


def test_a_due_record_that_was_cancelled_is_not_returned():
    with PendingRecords(0) as pending:
        for number in range(3):
            pending.add(0, 100, b"%d" % number, b"id%d" % number)
        assert taken(pending, 200, most=1) == [(0, b"0")]
        assert pending.remove_key(0, b"id1")
        pending.commit()
        pending.add(0, 10_000, b"later", None)  # may get the number of the cancelled record
        assert taken(pending, 200) == [(0, b"2")]


@pytest.mark.parametrize("seed", range(10))
def test_an_aborted_transaction_changes_nothing(seed):
    """Two stores get the same committed changes; one of them gets aborted ones as well."""
    chance = random.Random(seed)

    def change(stores: list[PendingRecords], now_ms: int) -> None:
        for _ in range(chance.randrange(8)):
            partition, key = chance.randrange(2), b"k%d" % chance.randrange(6)
            due_ms, action = now_ms + chance.randrange(200), chance.randrange(4)
            content = b"%d" % chance.randrange(1 << 60)
            for pending in stores:
                if action == 0:
                    pending.remove_key(partition, key)
                elif action == 1:
                    for entry in pending.take_due(now_ms, ALL):
                        name = b"k" + pending.content(entry).split(b" ")[1]
                        if name != b"k-":
                            pending.forget_key(pending.partition(entry), name)
                else:
                    name = key[1:] if action == 2 else b"-"
                    pending.add(partition, due_ms, content + b" " + name, key if action == 2 else None)

    with PendingRecords(0) as plain, PendingRecords(0) as disturbed:
        for step in range(60):
            now_ms = 20 * step
            change([disturbed], now_ms)
            disturbed.roll_back()
            change([plain, disturbed], now_ms)
            assert plain.count == disturbed.count
            for pending in (plain, disturbed):
                pending.commit()
        assert sorted(taken(plain, ALL)) == sorted(taken(disturbed, ALL))


@pytest.mark.parametrize("size", [0, 1, 32, 33, 100, 1000, 4097, 1 << 20])
def test_a_content_is_read_back_and_its_space_used_again(size):
    with PendingContents() as contents:
        first = contents.add(b"a" * size)
        other = contents.add(b"b" * size)
        assert contents.file_size <= 2 * max(size * 9 // 8 + 1, 32)
        contents.remove(first, size)
        before = contents.file_size
        again = contents.add(b"c" * size)
        assert (again, contents.file_size) == (first, before)
        assert (contents.read(again, size), contents.read(other, size)) == (b"c" * size, b"b" * size)


def test_the_file_does_not_grow_with_the_records_that_were_replaced():
    with PendingRecords(0) as pending:
        for number in range(1000):
            pending.add(0, ALL, b"x" * (100 + number % 3), b"same")
            pending.commit()
        assert pending.count == 1 and pending.file_size < 1000


def test_an_empty_file_is_truncated(monkeypatch):
    monkeypatch.setattr("kafkapy.client.reliable.pending_contents._LEAST_TRUNCATED", 1000)
    with PendingContents() as contents:
        positions = [contents.add(b"x" * 100) for _ in range(20)]
        for position in positions:
            contents.remove(position, 100)
        assert contents.file_size == Path(f"/proc/self/fd/{contents._file.fileno()}").stat().st_size == 0
        assert contents.read(contents.add(b"new"), 3) == b"new"


def stored(state_key: bytes, due_ms: int | None) -> SimulatedRecord:
    """Returns a record of the topic of pending records; `due_ms` of None deletes the record with the key."""
    value = None if due_ms is None else pack(DelayedRecord(state_key, due_ms, "target", None, b"%d" % due_ms, ()))
    return SimulatedRecord(key=state_key, value=value)


@pytest.mark.parametrize("is_descending", [False, True], ids=["ascending", "of a topic created again"])
def test_the_stored_records_of_a_partition_are_pending_again(monkeypatch, is_descending):
    monkeypatch.setattr("kafkapy.client.reliable.pending_restore._MOST_UNCOMMITTED", 3)
    offsets = [5, 17, 18, 300]
    keys = [b"o%d" % each for each in (reversed(offsets) if is_descending else offsets)]
    records = [stored(key, 100 + number) for number, key in enumerate(keys)]
    records += [stored(b"i1:a", 200), stored(b"i1:b", 201), stored(b"i1:a", 202), stored(b"i1:b", None)]
    records += [stored(keys[1], None), stored(keys[1], None), stored(b"o4", None), stored(keys[2], None)]
    records += [stored(keys[2], 300), stored(keys[3], 301), stored(b"i1:c", None)]
    with PendingRecords(0) as pending:
        assert restore(pending, 1, records) == pending.count == 4
        assert pending.remove_key(1, b"i1:a")
        assert [unpack(content).due_ms for _, content in taken(pending, 1000)] == [100, 300, 301]
