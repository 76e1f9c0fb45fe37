"""The records of a share fetch: only acquired offsets are returned, and acquired offsets without a record are gaps."""

from __future__ import annotations

import random

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy._core.client.fetched_records import AcquiredOffsets, FetchedRecords
from kafkapy.errors import ApiError, Error


def batches_of(offsets: list[int], numbers: random.Random) -> bytes:
    """Returns the records at these offsets in batches of random sizes."""
    found, rest = b"", list(offsets)
    while rest:
        size = numbers.randint(1, 5)
        part, rest = rest[:size], rest[size:]
        builder = RecordBatchBuilder(part[0])
        for offset in part:
            builder.append(1000, None, str(offset).encode(), offset=offset)
        found += builder.build()
    return found


def ranges_of(numbers: random.Random, end: int) -> list[tuple[int, int, int]]:
    found, offset = [], 0
    while (offset := offset + numbers.randint(0, 4)) < end:
        last = min(offset + numbers.randint(0, 6), end - 1)
        found.append((offset, last, numbers.randint(1, 5)))
        offset = last + 1
    return found


@pytest.mark.parametrize("seed", range(30))
def test_records_and_gaps_together_are_the_acquired_offsets(seed: int) -> None:
    numbers = random.Random(seed)
    present = [offset for offset in range(60) if numbers.random() < 0.8]
    ranges = ranges_of(numbers, 60) or [(0, 59, 1)]
    counts = {offset: count for first, last, count in ranges for offset in range(first, last + 1)}
    acquired = AcquiredOffsets(ranges)
    fetched = FetchedRecords(batches_of(present, numbers), "t", 0, ranges[0][0])
    records, gaps = [], []
    while acquired.first_offset is not None:
        records += fetched.take_acquired(numbers.randint(1, 9), acquired)
        gaps += acquired.gaps
        acquired.gaps = []
    assert {record.offset: record.delivery_count for record in records} == {
        offset: count for offset, count in counts.items() if offset in set(present)
    }
    assert [int(record.value) for record in records] == sorted(set(counts) & set(present))
    missing = [offset for first, last in gaps for offset in range(first, last + 1)]
    assert missing == sorted(set(counts) - set(present))


def test_offsets_that_an_earlier_range_contains_are_ignored() -> None:
    acquired = AcquiredOffsets([(0, 5, 1), (3, 4, 2), (4, 7, 3)])
    fetched = FetchedRecords(batches_of(list(range(9)), random.Random(1)), "t", 0, 0)
    records = fetched.take_acquired(100, acquired)
    assert [(record.offset, record.delivery_count) for record in records] == [
        *((offset, 1) for offset in range(6)),
        (6, 3),
        (7, 3),
    ]
    assert acquired.gaps == [] and acquired.first_offset is None


def test_everything_behind_a_batch_of_unknown_length_is_skipped() -> None:
    good = batches_of([0], random.Random(1))
    broken = bytearray(batches_of([1], random.Random(1)))
    broken[16] = 9  # the magic byte
    acquired = AcquiredOffsets([(0, 4, 1)])
    fetched = FetchedRecords(good + bytes(broken) + batches_of([2], random.Random(1)), "t", 0, 0)
    assert [record.offset for record in fetched.take_acquired(9, acquired)] == [0]
    with pytest.raises(ApiError) as raised:
        fetched.take_acquired(9, acquired)
    assert raised.value.error is Error.CORRUPT_MESSAGE
    assert fetched.skip_batch(acquired) == [(1, 4)] and acquired.first_offset is None
