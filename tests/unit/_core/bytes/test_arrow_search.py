"""Searching the columns of an Arrow batch finds exactly the rows that contain, or equal, the bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy._core.bytes.arrow_batch import COLUMNS, ArrowBatch
from kafkapy._core.bytes.arrow_search import read_row, rows_containing, rows_equal_to
from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy._core.client.fetched_records import FetchedRecords


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
