"""Batches as message sets of old clients: which fields are kept, which are dropped, and where a result ends."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy._core.bytes.message_set import build_message_set, iterate_messages, iterate_records
from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.errors import ApiError, Error
from kafkapy.storage.down_conversion import down_convert, is_old_enough

NOW_MS = 1_700_000_000_000
UNLIMITED = 1 << 30


def batch(base_offset=0, *records, **keywords):
    """Returns a batch of `records`, each (timestamp, key, value); each record gets a header, which old formats lack."""
    builder = RecordBatchBuilder(base_offset, **keywords)
    for record in records or [(NOW_MS, b"k", b"v")]:
        builder.append(*record, [("h", b"x")])
    return builder.build()


def convert(data, magic, offset=0, max_bytes=UNLIMITED):
    return down_convert(data, magic, offset, max_bytes, UNLIMITED)


def fields(records):
    return [(record.offset, record.timestamp, record.key, record.value) for record in iterate_records(records)]


CONTENT = st.one_of(st.none(), st.binary(max_size=30))
RECORDS = st.lists(st.tuples(st.integers(0, 2**41), CONTENT, CONTENT), min_size=1, max_size=8)
BATCHES = st.lists(st.tuples(RECORDS, st.integers(0, 3), st.integers(0, 1)), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(BATCHES, st.integers(0, 1), st.integers(0, 50), st.integers(0, 400))
def test_walking_a_log_finds_every_record_once(batches, magic, start, max_bytes):
    """For any limit and any start of a consumer all offsets, keys, values and timestamps are returned."""
    log, expected, offset = [], [], 0
    for records, codec, timestamp_type in batches:
        log.append((offset, batch(offset, *records, compression=codec, timestamp_type=timestamp_type)))
        latest = max(timestamp for timestamp, _, _ in records)
        for number, (timestamp, key, value) in enumerate(records):
            seen = (latest if timestamp_type else timestamp) if magic else -1
            expected.append((offset + number, seen, key, value))
        offset += len(records)
    start %= offset
    found = []
    while start < offset:
        data = b"".join(each for base, each in log if base + record_count(each) > start)
        converted = convert(data, magic, start, max_bytes).records
        new = [each for each in fields(converted) if each[0] >= start]
        assert new
        found += new
        start = new[-1][0] + 1
    assert found == expected[-len(found) :]


def record_count(data):
    return int.from_bytes(data[57:61], "big")


def test_plain_messages_begin_where_the_fetch_does_and_end_at_the_limit():
    data = batch(5, *[(NOW_MS, None, b"x" * 66)] * 10)
    assert [each[0] for each in fields(convert(data, 1, 8).records)] == [8, 9, 10, 11, 12, 13, 14]
    assert len(convert(data, 1, 8, 250).records) == 300
    assert len(convert(data, 1, 8, 1).records) == 100


def test_a_later_batch_has_the_room_that_is_left():
    data = batch(0, *[(NOW_MS, None, b"x" * 66)] * 2) + batch(2, *[(NOW_MS, None, b"x" * 66)] * 10)
    assert [len(convert(data, 1, 0, limit).records) for limit in (100, 200, 250, 400)] == [100, 200, 300, 400]


def test_a_wrapper_is_whole_with_relative_offsets_and_the_largest_timestamp():
    records = [(NOW_MS + 5, b"a", b"1"), (NOW_MS, None, b"2")]
    (wrapper,) = iterate_messages(convert(batch(40, *records, compression=1), 1, 41, 1).records)
    assert (wrapper.offset, wrapper.timestamp, wrapper.compression, wrapper.key) == (41, NOW_MS + 5, 1, None)


@pytest.mark.parametrize("magic", [0, 1])
def test_control_batches_leave_nothing(magic):
    data = batch(0, (NOW_MS, b"\0\0\0\0", b"\0" * 6), is_control=True, producer_id=1, producer_epoch=0)
    assert convert(data, magic) == (b"", 1)
    assert fields(convert(data + batch(1), magic).records) == [(1, NOW_MS if magic else -1, b"k", b"v")]


def test_zstd_ends_the_answer_or_is_the_answer():
    zstd = batch(1, compression=4)
    assert fields(convert(batch(0) + zstd, 1).records) == [(0, NOW_MS, b"k", b"v")]
    with pytest.raises(ApiError) as caught:
        convert(zstd, 1, 1)
    assert caught.value.error is Error.UNSUPPORTED_COMPRESSION_TYPE


def test_a_damaged_batch_is_an_error_of_its_own():
    damaged = bytearray(batch(1, compression=1))
    damaged[70:90] = bytes(20)
    assert len(fields(convert(batch(0) + bytes(damaged), 1).records)) == 1
    with pytest.raises(ApiError) as caught:
        convert(bytes(damaged), 1, 1)
    assert caught.value.error is Error.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", range(4))
def test_magic_1_in_the_log_becomes_magic_0(codec):
    records = [(7, NOW_MS, b"k", b"v"), (9, NOW_MS, None, b"w")]
    data = build_message_set(records, magic=1, compression=codec)
    assert is_old_enough(data, 1)
    assert not is_old_enough(data, 0)
    assert convert(data, 1, 7).records == data
    converted = convert(data, 0, 7).records
    assert is_old_enough(converted, 0)
    assert fields(converted) == [(offset, -1, key, value) for offset, _, key, value in records]


def test_a_cut_off_tail_is_left_out():
    assert convert(batch(0) + batch(1)[:-1], 1).next_offset == 1
    assert convert(batch(0)[:-1], 1) == (b"", 0)
