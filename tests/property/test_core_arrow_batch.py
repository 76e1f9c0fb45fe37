"""Columns of fetched batches agree with the slow reference: every codec, any columns, bounds, portions and damage."""

from __future__ import annotations

import pyarrow
import pyarrow.compute
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy._core.bytes.arrow_batch import COLUMNS, ArrowBatch
from kafkapy._core.bytes.compression import compress
from kafkapy._core.bytes.message_set import build_message_set
from kafkapy._core.client.fetched_records import FetchedRecords
from kafkapy.errors import ApiError
from tests.reference.columns import PlainBatch, decoded_prefix, row, visible
from tests.reference.record_batch import PlainRecord, encode_batch, encode_record, wrap_batch

TIMESTAMPS = st.one_of(st.integers(-1, 10), st.integers(0, 2**41), st.sampled_from([2**61, -(2**61)]))
CONTENT = st.one_of(st.none(), st.binary(max_size=20), st.just(b"x" * 300))
NAMES = st.text(st.characters(codec="utf-8"), max_size=5)
HEADERS = st.one_of(st.just([]), st.lists(st.tuples(NAMES, CONTENT), max_size=3))
RECORDS = st.lists(st.tuples(st.integers(1, 3), TIMESTAMPS, CONTENT, CONTENT, HEADERS), min_size=1, max_size=8)
BATCHES = st.lists(st.tuples(RECORDS, st.integers(0, 4), st.one_of(st.none(), st.integers(0, 2**41))), max_size=4)
CHOSEN = st.one_of(st.just(COLUMNS), st.lists(st.sampled_from(COLUMNS), unique=True))
UNITS = st.sampled_from(["us", "ms"])


def as_rows(batch: ArrowBatch) -> list[dict]:
    """Returns the rows that pyarrow reads, with timestamps as numbers."""
    taken = pyarrow.record_batch(batch)
    taken.validate(full=True)
    assert taken.num_rows == batch.row_count
    if "timestamp" in taken.schema.names:
        at = taken.schema.get_field_index("timestamp")
        assert taken.schema.field(at).type == pyarrow.timestamp(batch.timestamp_unit, "UTC")
        taken = taken.set_column(at, "timestamp", taken.column(at).cast(pyarrow.int64()))
    return taken.to_pylist()


def encoded(drawn, base_offset: int) -> tuple[bytes, list[PlainBatch]]:
    """Encodes the drawn batches one after the other; the offset of each record is a step above the one before."""
    data, plain, at = b"", [], base_offset
    for records, codec, log_append_time in drawn:
        made = []
        for step, *rest, headers in records:
            at += step
            made.append(PlainRecord(at, *rest, tuple(headers)))
        changed = {} if log_append_time is None else {"max_timestamp": log_append_time}
        data += encode_batch(
            made,
            base_offset=made[0].offset,
            attributes=codec | (8 if changed else 0),
            compress=lambda body, codec=codec: compress(codec, body),
            **changed,
        )
        plain.append(PlainBatch(made, log_append_time))
        at += 1
    return data, plain


def all_rows(records: FetchedRecords, columns, max_rows: int, unit: str) -> list[dict]:
    rows = []
    while not records.is_exhausted:
        batch = ArrowBatch(columns, max_rows=max_rows, timestamp_unit=unit)
        added = records.fill(batch)
        assert added == batch.row_count <= max_rows
        rows += as_rows(batch) if columns else [{}] * added
    return rows


@settings(max_examples=80, deadline=None)
@given(BATCHES, CHOSEN, UNITS, st.integers(0, 40), st.integers(0, 60), st.integers(1, 9), st.integers(0, 100))
def test_columns_agree_with_the_reference(drawn, columns, unit, first, length, max_rows, cut):
    data, plain = encoded(drawn, 2**40)
    first += 2**40
    until = first + length
    tail = data[: min(cut, 60)] if cut < 60 else b""
    records = FetchedRecords(data + tail, "t-ü", 3, first, until_offset=until)
    expected = [each for batch in plain for each in visible(batch, "t-ü", 3, first, until, unit)]
    assert all_rows(records, columns, max_rows, unit) == [{name: each[name] for name in columns} for each in expected]
    if plain and plain[-1].records[-1].offset >= until:
        assert records.next_offset == until


@settings(max_examples=60, deadline=None)
@given(BATCHES, st.lists(st.tuples(st.booleans(), st.integers(1, 7)), max_size=30))
def test_records_and_columns_in_turns(drawn, turns):
    data, plain = encoded(drawn, 0)
    expected = [each.offset for batch in plain for each in batch.records]
    records, found = FetchedRecords(data, "t", 0, 0), []
    for as_columns, limit in [*turns, (True, 100)]:
        if as_columns:
            batch = ArrowBatch(["offset"], max_rows=limit)
            records.fill(batch)
            found += [each["offset"] for each in as_rows(batch)]
        else:
            found += [each.offset for each in records.take(limit)]
    assert found == expected


@settings(max_examples=120, deadline=None)
@given(RECORDS, st.integers(0, 80), st.binary(min_size=1, max_size=3), st.integers(-1, 2), st.integers(0, 4), CHOSEN)
def test_damaged_records_end_the_rows_where_the_reference_ends(drawn, at, mutation, more, codec, columns):
    body = b"".join(
        encode_record(timestamp, index, key, value, headers)
        for index, (_, timestamp, key, value, headers) in enumerate(drawn)
    )
    body = body[:at] + mutation + body[at + len(mutation) :]
    count = max(1, len(drawn) + more)
    decoded, is_whole = decoded_prefix(body, 0, 0, count)
    if count > len(body) // 7:
        decoded, is_whole = [], False
    data = wrap_batch(compress(codec, body), attributes=codec, count=count, last_offset_delta=count - 1)
    expected = visible(PlainBatch(decoded), "t", 0, 0, 2**62, "us")
    found, ended_well = rows_until_damage(data, COLUMNS)
    assert found[: len(expected)] == expected
    # A record whose offset is below the offset of the record before it is skipped unread, damaged or not.
    if [each["offset"] for each in found] == list(range(len(found))):
        assert found == expected
    # The damage may be after a record with the batch's last offset, or in a record that is skipped.
    assert ended_well or not is_whole
    # Fields that no column needs are not read: there may be more rows, but no other difference.
    fewer, _ = rows_until_damage(data, [name for name in columns if name != "timestamp"])
    assert fewer[: len(expected)] == [
        {name: each[name] for name in columns if name != "timestamp"} for each in expected
    ]
    taken = [each.offset for each in taken_until_damage(data)]
    assert taken == [each["offset"] for each in expected][: len(taken)] and len(taken) >= len(expected)


def rows_until_damage(data: bytes, columns) -> tuple[list[dict], bool]:
    records, rows = FetchedRecords(data, "t", 0, 0), []
    while not records.is_exhausted:
        batch = ArrowBatch(columns)
        try:
            added = records.fill(batch)
        except ApiError:
            return rows, False
        rows += as_rows(batch) if columns else [{}] * added
    return rows, True


def taken_until_damage(data: bytes) -> list:
    records, found = FetchedRecords(data, "t", 0, 0), []
    while not records.is_exhausted:
        try:
            found += records.take(1000)
        except ApiError:
            break
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2**41), CONTENT, CONTENT), min_size=1, max_size=8),
    st.integers(0, 1),
    st.integers(0, 3),
    st.integers(0, 8),
    st.integers(1, 4),
    BATCHES,
)
def test_messages_of_old_formats_and_batches_behind_them(old, magic, codec, first, max_rows, drawn):
    messages = [(offset, *each) for offset, each in enumerate(old)]
    data, plain = encoded(drawn, len(old))
    data = build_message_set(messages, magic=magic, compression=codec) + data
    expected = [
        row(PlainRecord(offset, timestamp if magic else -1, key, value), "t", 0, timestamp if magic else -1, kind, "ms")
        for offset, timestamp, key, value in messages
        if offset >= first
        for kind in [0 if magic else -1]
    ]
    expected += [each for batch in plain for each in visible(batch, "t", 0, first, 2**62, "ms")]
    assert all_rows(FetchedRecords(data, "t", 0, first), COLUMNS, max_rows, "ms") == expected
    assert [each.offset for each in FetchedRecords(data, "t", 0, first).take(99)] == [
        each["offset"] for each in expected
    ]


@pytest.mark.parametrize(
    "name", [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xf0\x90\x80", b"\xc0\x80b", b"\xf4\x90\x80\x80"]
)
def test_names_of_headers_become_valid_text(name):
    records = [PlainRecord(0, 0, None, b"v", ((name.decode("utf-8", "surrogateescape"), b"1"),))]
    body = encode_record(0, 0, None, b"v", [("", b"1")]).replace(
        b"\x02\x00\x02", b"\x02" + bytes([len(name) * 2]) + name + b"\x02"
    )
    body = bytes([body[0] + 2 * len(name)]) + body[1:]
    [found] = rows_until_damage(wrap_batch(body, count=1), COLUMNS)[0]
    assert found["headers"] == visible(PlainBatch(records), "t", 0, 0, 9, "us")[0]["headers"]
