"""Counting the records of batches by client and time bucket, compared with a count in Python."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from kafkapy._core.bytes.bucket_counter import CORRUPT, COUNTED, FULL, OTHER, BucketCounter
from kafkapy._core.bytes.codec_functions import find_codec_functions
from kafkapy._core.bytes.compression import GZIP, LZ4, SNAPPY, ZSTD
from kafkapy._core.bytes.message_set import build_message_set
from kafkapy._core.bytes.record_batch import RecordBatchBuilder

BUCKET_MS = 10_000


def batch(base_offset: int, timestamps: list[int], **settings) -> bytes:
    """Returns a batch with one record for each timestamp."""
    builder = RecordBatchBuilder(base_offset, **settings)
    for timestamp in timestamps:
        builder.append(timestamp, b"key", b"v" * (timestamp % 97), [("h", b"x")])
    return builder.build()


def counted(counter: BucketCounter) -> Counter[tuple[int, bool, int]]:
    return Counter({(client, aborted, bucket): number for client, aborted, bucket, number in counter.take()})


def test_random_batches_are_counted_like_their_records():
    chance = random.Random(7)
    for codec in (GZIP, SNAPPY, LZ4, ZSTD):
        find_codec_functions(codec)  # as if one batch of each codec had been decompressed before
    counter = BucketCounter(BUCKET_MS)
    log, expected, offset = b"", Counter(), 0
    for _ in range(200):
        timestamps = [chance.choice([-1, 0, 5, chance.randrange(10**6)]) for _ in range(chance.randint(1, 40))]
        log += batch(offset, timestamps, compression=chance.choice([0, 0, GZIP, SNAPPY, LZ4, ZSTD]))
        for each in timestamps:
            expected[0, False, each // BUCKET_MS * BUCKET_MS] += 1
        offset += len(timestamps)
    assert counter.count(log, len(log), 0) == (COUNTED, len(log), offset)
    assert counted(counter) == expected
    assert counter.take() == []


def test_clients_are_found_by_offset():
    counter = BucketCounter(BUCKET_MS)
    log = b"".join(batch(offset, [0, 1]) for offset in range(0, 10, 2))
    counter.follow([(2, 5), (6, 3)], [])
    counter.count(log, len(log), 0)
    assert counted(counter) == {(0, False, 0): 2, (5, False, 0): 4, (3, False, 0): 4}


def test_aborted_transactions_are_counted_apart():
    counter = BucketCounter(BUCKET_MS)
    settings = {"producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    log = b"".join(
        (
            batch(0, [0], producer_id=7, **settings),  # committed
            batch(1, [0], producer_id=7, **settings),  # aborted by the marker at 4
            batch(2, [0, 0], producer_id=8, **settings),  # committed
            batch(4, [0], producer_id=7, producer_epoch=0, is_transactional=True, is_control=True),
            batch(5, [0], producer_id=7, **settings),  # committed
            batch(6, [0], producer_id=9, producer_epoch=0, base_sequence=0),  # no transaction
        )
    )
    counter.follow([], [(9, 0, 50), (7, 1, 4)])
    assert counter.count(log, len(log), 0)[0] == COUNTED
    assert counted(counter) == {(0, False, 0): 5, (0, True, 0): 1}


@pytest.mark.parametrize("codec", [0, LZ4])
def test_counting_begins_in_the_middle_of_a_batch(codec):
    find_codec_functions(LZ4)
    counter = BucketCounter(BUCKET_MS)
    log = batch(0, [0, 10_000]) + batch(2, [0, 10_000, 20_000, 30_000], compression=codec)
    assert counter.count(log, len(log), 4) == (COUNTED, len(log), 6)
    assert counted(counter) == {(0, False, 20_000): 1, (0, False, 30_000): 1}


def test_the_time_of_the_append_is_that_of_all_records():
    counter = BucketCounter(BUCKET_MS)
    log = batch(0, [1, 2, 25_000], timestamp_type=1)
    counter.count(log, len(log), 0)
    counter.count(log, len(log), 2)
    assert counted(counter) == {(0, False, 20_000): 4}


def test_an_incomplete_batch_is_left():
    counter = BucketCounter(BUCKET_MS)
    first, second = batch(0, [0]), batch(1, [0])
    log = first + second
    for length in range(len(log)):
        status, passed, offset = counter.count(log, length, 0)
        assert (status, passed, offset) == ((COUNTED, len(first), 1) if length >= len(first) else (COUNTED, 0, 0))


def test_old_messages_are_left_to_python():
    counter = BucketCounter(BUCKET_MS)
    log = batch(0, [0]) + build_message_set([(1, 5, None, b"old")], magic=1)
    assert counter.count(log, len(log), 0) == (OTHER, len(batch(0, [0])), 1)
    counter.follow([(1, 4)], [])
    counter.count_other(1, 12_000, -1)
    assert counted(counter) == {(0, False, 0): 1, (4, False, 10_000): 1}


def test_a_damaged_batch_is_reported_at_every_byte_or_counted():
    original = batch(0, [0, 1, 2])
    statuses = set()
    for position in range(len(original)):
        for value in (0, 0x7F, 0xFF):
            damaged = bytearray(original)
            damaged[position] = value
            status, passed, _ = BucketCounter(BUCKET_MS).count(damaged, len(damaged), 0)
            assert passed in (0, len(original)) or passed <= len(original)
            statuses.add(status)
    assert {COUNTED, CORRUPT} <= statuses


def test_the_number_of_counts_is_bounded():
    counter = BucketCounter(1)
    log = b"".join(batch(offset, list(range(offset, offset + 1000))) for offset in range(0, 20_000, 1000))
    status, passed, offset = counter.count(log, len(log), 0)
    assert (status, offset) == (FULL, 9000)
    assert len(counter.take()) == 9000
    assert counter.count(log[passed:], len(log) - passed, offset)[0] == FULL
    counter.take()
    large = batch(0, list(range(20_000)))
    assert counter.count(large, len(large), 0)[0] == COUNTED
    assert sum(number for *_, number in counter.take()) + counter.uncounted == 20_000
    assert counter.uncounted == 5000


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="above 0"):
        BucketCounter(0)
    with pytest.raises(ValueError, match="greater than the chunk"):
        BucketCounter(1).count(b"", 1, 0)
