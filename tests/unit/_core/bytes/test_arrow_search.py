"""Searching the columns of an Arrow batch finds exactly the rows that contain, or equal, the bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy._core.bytes.arrow_batch import COLUMNS, ArrowBatch
from kafkapy._core.bytes.arrow_search import read_row, rows_containing, rows_equal_to
from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy._core.client.fetched_records import FetchedRecords
from kafkapy.errors import ApiError


def batch_of(values, columns=COLUMNS):
    builder = RecordBatchBuilder(0)
    for number, value in enumerate(values):
        builder.append(1_000 + number, None if number % 2 else b"k%d" % number, value, [("h", b"1")] if number else [])
    batch = ArrowBatch(columns, timestamp_unit="ms")
    if values:
        FetchedRecords(builder.build(), "t", 4, 0).fill(batch)
    return batch


# Few letters, so that needles are found, also across the borders of rows.
WORDS = st.lists(st.none() | st.text("ab", max_size=4).map(str.encode), max_size=30)


@given(WORDS, st.text("ab", min_size=1, max_size=3).map(str.encode), st.integers(0, 5))
def test_rows_containing_is_the_operator_in(values, needle, start):
    expected = [row for row, value in enumerate(values) if row >= start and value is not None and needle in value]
    assert rows_containing(batch_of(values), "value", needle, start) == expected
    assert rows_containing(batch_of(values), "value", needle, start, 2) == expected[:2]


@given(WORDS, st.text("ab", max_size=3).map(str.encode))
def test_rows_equal_to_is_equality(values, content):
    assert rows_equal_to(batch_of(values), "value", content) == [
        row for row, each in enumerate(values) if each == content
    ]


def test_a_row_is_read_as_python_objects():
    batch = batch_of([b"a", None])
    first = {"key": b"k0", "value": b"a", "topic": "t", "partition": 4, "offset": 0, "timestamp": 1000, "headers": ()}
    assert read_row(batch, 0) == {**first, "timestampType": 0}
    assert read_row(batch, 1)["value"] is None
    assert read_row(batch, 1)["headers"] == (("h", b"1"),)
    with pytest.raises(IndexError):
        read_row(batch, 2)


def test_what_cannot_be_searched_is_refused():
    with pytest.raises(ValueError, match="no column of bytes"):
        rows_containing(batch_of([b"a"], ["offset"]), "value", b"a")
    with pytest.raises(ValueError, match="no column of bytes"):
        rows_containing(batch_of([b"a"]), "offset", b"a")
    with pytest.raises(ValueError, match="empty needle"):
        rows_containing(batch_of([b"a"]), "value", b"")
    with pytest.raises(TypeError):
        rows_containing(batch_of([b"a"]), "value", "text")


def fetched_of(values, sizes, **bounds):
    """Returns the values as fetched records, in batches of the given sizes."""
    data, at = b"", 0
    for size in sizes:
        builder = RecordBatchBuilder(at)
        for number in range(at, min(at + size, len(values))):
            builder.append(1_000 + number, b"k", values[number], [("h", b"1")])
        if len(values) > at:
            data += builder.build()
        at += size
    return FetchedRecords(data, "t", 4, bounds.pop("first", 0), **bounds)


def found_offsets(fetched, needle, limit):
    """Fills batches of at most `limit` rows with the records that contain `needle`, until all records were scanned.

    Returns the offsets of all rows, and the number of scanned records.
    """
    offsets, scanned = [], 0
    while True:
        batch = ArrowBatch(("value", "offset"), max_rows=limit, needle=needle)
        fetched.fill(batch)
        if not batch.scanned:
            return offsets, scanned
        assert len(batch) <= batch.scanned
        offsets += [read_row(batch, row)["offset"] for row in range(len(batch))]
        scanned += batch.scanned


@given(
    st.lists(st.text("ab", max_size=4).map(str.encode), min_size=1, max_size=30),
    st.integers(1, 7),
    st.text("ab", min_size=1, max_size=3).map(str.encode),
    st.integers(1, 9),
    st.integers(0, 29),
    st.integers(0, 30),
)
def test_a_fill_with_a_needle_adds_every_record_that_contains_it(values, size, needle, limit, first, length):
    until = first + length
    fetched = fetched_of(values, [size] * len(values), first=first, until_offset=until)
    offsets, scanned = found_offsets(fetched, needle, limit)
    expected = [at for at, value in enumerate(values) if first <= at < until and needle in value]
    assert set(expected) <= set(offsets)
    assert offsets == sorted(set(offsets))
    assert all(first <= offset < until for offset in offsets)
    assert scanned == len(range(first, min(until, len(values))))


def test_records_without_the_needle_are_skipped():
    values = [b"a" * 50 + b"%04d" % number for number in range(1000)]
    fetched = fetched_of(values, [100] * 10)
    assert found_offsets(fetched, b"0777", 16) == ([777], 1000)
    assert fetched.next_offset == 1000


def test_a_needle_is_found_in_keys_and_headers_too():
    assert found_offsets(fetched_of([b"v", b"w"], [2]), b"k", 9) == ([0, 1], 2)


def test_a_damaged_record_before_the_needle_is_reported():
    whole = bytes(fetched_bytes())
    damaged = bytearray(whole)
    damaged[61] = 1  # the length of the first record, which becomes negative
    fetched = FetchedRecords(bytes(damaged), "t", 4, 0, check_crcs=False)
    with pytest.raises(ApiError, match="has an invalid record"):
        fetched.fill(ArrowBatch(("value",), needle=b"last"))


def test_the_crc_of_a_batch_with_the_needle_is_checked():
    damaged = bytearray(fetched_bytes())
    damaged[-3] ^= 1
    assert FetchedRecords(bytes(damaged), "t", 4, 0).fill(ArrowBatch(("value",), needle=b"nowhere")) == 0
    for needle in (b"first", b""):
        with pytest.raises(ApiError, match="is invalid"):
            FetchedRecords(bytes(damaged), "t", 4, 0).fill(ArrowBatch(("value",), needle=needle))
    with pytest.raises(ApiError, match="is invalid"):  # some of its records are not read
        FetchedRecords(bytes(damaged), "t", 4, 1).fill(ArrowBatch(("value",), needle=b"nowhere"))


def fetched_bytes():
    builder = RecordBatchBuilder(0)
    for value in (b"first", b"second", b"last"):
        builder.append(1_000, None, value, [])
    return builder.build()
