"""Reading tables through Arrow's C interfaces: every type and layout, and structs that contradict themselves."""

from __future__ import annotations

import ctypes
import datetime

import pyarrow as pa
import pytest

from kafkapy._core.bytes.arrow_batch import ArrowBatch
from kafkapy._core.bytes.arrow_input import ArrowInput
from kafkapy.errors import ApiError, Error
from tests.harness.arrow_structs import ChangedBatch, child, release, set_number

PAIRS = pa.struct([("key", pa.string()), ("value", pa.binary())])
LONG = "a text that is longer than a view"
NOW = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
NOW_MS = 1_714_564_800_000


def rows_of(source):
    reader = ArrowInput(source)
    found = []
    while reader.next_batch():
        found += [reader.row(index) for index in range(reader.rows)]
    return found


def table(**columns):
    return pa.table({"value": pa.nulls(len(next(iter(columns.values())))), **columns})


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3)])
def test_binary_of_every_layout(kind):
    contents = [b"abc", None, b"xyz"] if kind == pa.binary(3) else [b"", None, b"x", LONG.encode(), b"x" * 12]
    column = pa.array(contents, kind)
    assert [row[1] for row in rows_of(pa.table({"value": column}))] == contents
    assert [row[0] for row in rows_of(table(key=column).slice(1, 2))] == contents[1:3]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_text_of_every_layout(kind):
    contents = ["", None, "wörter", LONG]
    chunks = pa.chunked_array([pa.array(contents[:1], kind), pa.array([], kind), pa.array(contents[1:], kind)])
    assert [row[1] for row in rows_of(pa.table({"value": chunks}))] == contents


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()]
)
def test_partitions_of_every_integer(kind):
    largest = 2 ** (kind.bit_width - (not str(kind).startswith("u"))) - 1
    numbers = [0, None, min(largest, 2**63 - 1)]
    assert [row[2] for row in rows_of(table(partition=pa.array(numbers, kind)))] == numbers
    if not str(kind).startswith("u"):
        assert rows_of(table(partition=pa.array([-5], kind)))[0][2] == -5


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_timestamps_are_milliseconds(unit, zone):
    times = [NOW, None, NOW + datetime.timedelta(seconds=1)]
    column = pa.array([each and each.replace(tzinfo=None) for each in times], pa.timestamp(unit))
    column = column if zone is None else column.cast(pa.timestamp(unit, zone))
    assert [row[3] for row in rows_of(table(timestamp=column))] == [NOW_MS, None, NOW_MS + 1000]
    assert rows_of(table(timestamp=pa.array([-1], pa.timestamp(unit))))[0][3] < 0
    assert rows_of(table(timestamp=pa.array([5], pa.int64())))[0][3] == 5


@pytest.mark.parametrize("kind", [pa.list_(PAIRS), pa.large_list(PAIRS), pa.map_(pa.string(), pa.binary())])
def test_headers(kind):
    lists = [[("a", b"1"), ("b", None)], None, [], [("a", b"2"), ("a", LONG.encode())]]
    is_map = isinstance(kind, pa.MapType)
    as_rows = [each if is_map or each is None else [dict(zip(("key", "value"), p, strict=True)) for p in each]
               for each in lists]  # fmt: skip
    column = pa.array(as_rows, kind)
    assert [row[4] for row in rows_of(table(headers=column))] == lists
    assert [row[4] for row in rows_of(table(headers=column).slice(2, 2))] == lists[2:]


def test_columns_of_nulls_and_other_columns():
    nulls = {name: pa.nulls(2) for name in ("key", "value", "partition", "timestamp", "headers")}
    assert rows_of(pa.table({**nulls, "other": pa.array([1.5, 2.5])})) == [(None,) * 5] * 2


def test_a_batch_a_reader_and_a_batch_of_the_client():
    batch = pa.record_batch({"value": pa.array(["a", "b"])})
    expected = [(None, "a", None, None, None), (None, "b", None, None, None)]

    class OnlyArray:
        def __arrow_c_array__(self, requested_schema=None):
            return batch.__arrow_c_array__()

    assert rows_of(batch) == rows_of(OnlyArray()) == rows_of(batch.slice(0, 9)) == expected
    assert rows_of(pa.RecordBatchReader.from_batches(batch.schema, [batch, batch.slice(2), batch])) == expected * 2
    assert rows_of(ArrowBatch(["value", "key"])) == []
    reader = ArrowInput(batch)
    with pytest.raises(IndexError):
        reader.row(0)
    assert reader.next_batch() and (reader.rows, reader.rows_before) == (2, 0)
    assert not reader.next_batch() and (reader.rows, reader.rows_before) == (0, 2)
    assert not reader.next_batch()


DICTIONARY = pa.array(["a"]).dictionary_encode()


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        ([1], TypeError, "a table with Arrow's interface is needed, .*not list"),
        (pa.chunked_array([[1]]), TypeError, "a table with columns is needed, not an Arrow array of the type l"),
        (pa.table({"key": ["a"]}), ValueError, "the table has no column value"),
        (pa.Table.from_arrays([["a"], ["a"]], ["value", "value"]), ValueError, "the table has two columns value"),
        (pa.table({"value": [1]}), TypeError, "the column value has the Arrow type l; it must be binary or text"),
        (pa.table({"value": DICTIONARY}), TypeError, "the column value is dictionary-encoded; cast it"),
        (table(partition=["a"]), TypeError, "partition has the Arrow type u; it must be an integer"),
        (table(timestamp=[1.5]), TypeError, "timestamp has the Arrow type g; it must be a timestamp or an integer"),
        (table(headers=["a"]), TypeError, "headers has the Arrow type u; it must be a list of structs of key and"),
        (table(headers=[["a"]]), TypeError, "headers has the Arrow type list of another type"),
        (table(headers=[[{"key": "a"}]]), TypeError, "headers has the Arrow type list of other structs"),
        (table(headers=[[{"value": "a", "key": "b"}]]), TypeError, "list of other structs"),
        (table(headers=[[{"key": 1, "value": "b"}]]), TypeError, "headers has the Arrow type l; it must be binary or"),
    ],
)
def test_a_table_that_cannot_be_sent_is_refused(source, error, words):
    with pytest.raises(error, match=words):
        ArrowInput(source)


def test_a_stream_that_fails_says_why():
    schema = pa.schema([("value", pa.string())])

    def batches():
        yield pa.record_batch([["a"]], schema)
        raise OSError("the disk is gone")

    reader = ArrowInput(pa.RecordBatchReader.from_batches(schema, batches()))
    assert reader.next_batch()
    with pytest.raises(ValueError, match=r"the Arrow stream cannot be read: .*the disk is gone"):
        reader.next_batch()


def test_a_stream_is_read_once():
    class Same:
        def __init__(self):
            self.capsule = pa.table({"value": ["a"]}).__arrow_c_stream__()

        def __arrow_c_stream__(self, requested_schema=None):
            return self.capsule

    source = Same()
    assert len(rows_of(source)) == 1
    with pytest.raises(ValueError, match="the Arrow stream was released"):
        ArrowInput(source)


def test_numbers_that_are_too_large():
    for name, column in (
        ("partition", pa.array([2**63], pa.uint64())),
        ("timestamp", pa.array([2**62], pa.timestamp("s"))),
    ):
        with pytest.raises(ApiError, match=f"Row 0 of the column {name} is too large") as raised:
            rows_of(table(**{name: column}))
        assert raised.value.error is Error.MESSAGE_TOO_LARGE


# Columns 0 to 5: text, text as views, a number, headers, bytes of fixed size, text with large offsets
BATCH = {
    "key": pa.array(["a", LONG]),
    "value": pa.array(["a", LONG], pa.string_view()),
    "partition": pa.array([1, None]),
    "headers": pa.array([[{"key": "a", "value": b"b"}], None], pa.list_(PAIRS)),
}
FIXED = {"value": pa.array([b"abc", b"def"], pa.binary(3)), "key": pa.array(["a", LONG], pa.large_string())}


def setting(path, **fields):
    """Returns a function that damages an array: it sets `fields` of the child to which `path`, a list of child indexes,
    leads."""

    def change(schema, array):
        for name, value in fields.items():
            setattr(child(array, *path), name, value)

    return change


def without_buffer(path, index):
    return lambda schema, array: child(array, *path).buffers.__setitem__(index, None)


def numbering(path, buffer, index, number, kind=ctypes.c_int32):
    return lambda schema, array: set_number(child(array, *path), buffer, index, number, kind)


KEY, VALUE, PARTITION, HEADERS = (0,), (1,), (2,), (3,)
BROKEN = [
    (BATCH, setting((), length=-1), "the table declares -1 rows from row 0 on"),
    (BATCH, setting((), offset=-1), "the table declares 2 rows from row -1 on"),
    (BATCH, setting((), offset=2**62), "the table declares 2 rows from row"),
    (BATCH, setting((), length=2**62), "the table declares .* rows from row 0 on"),
    (BATCH, setting((), length=3), "the column key has 2 rows where 3 are needed"),
    (BATCH, setting((), offset=1), "the column key has 2 rows where 3 are needed"),
    (BATCH, setting((), n_buffers=0), "the table has 0 buffers instead of 1"),
    (BATCH, setting((), n_children=1), "the table has 1 children instead of 4"),
    (BATCH, setting((), null_count=1), "the table declares 1 nulls and has no validity bitmap"),
    (BATCH, setting(KEY, n_buffers=2), "the column key has 2 buffers instead of 3"),
    (BATCH, setting(KEY, n_children=1), "the column key has 1 children instead of 0"),
    (BATCH, setting(KEY, offset=2**62), "the column key declares 2 rows from row"),
    (BATCH, without_buffer(KEY, 1), "a buffer of the column key is missing"),
    (BATCH, without_buffer(KEY, 2), "a buffer of the column key is missing"),
    (BATCH, numbering(KEY, 1, 0, -1), "the offsets of the column key are invalid: -1 to 34"),
    (BATCH, numbering(KEY, 1, 2, -1), "the offsets of the column key are invalid: 0 to -1"),
    (BATCH, numbering(KEY, 1, 1, 35), "row 0 of the column key is invalid"),
    (BATCH, numbering(KEY, 1, 1, -1), "row 0 of the column key is invalid"),
    (FIXED, numbering((1,), 1, 1, -1, ctypes.c_int64), "row 0 of the column key is invalid"),
    (FIXED, numbering((1,), 1, 1, 2**62, ctypes.c_int64), "row 0 of the column key is invalid"),
    (FIXED, setting((0,), n_buffers=3), "the column value has 3 buffers instead of 2"),
    (FIXED, without_buffer((0,), 1), "a buffer of the column value is missing"),
    (BATCH, setting(VALUE, n_buffers=2), "the column value has 2 buffers instead of 3"),
    (BATCH, setting(VALUE, n_buffers=2**40), "the column value has 1099511627776 buffers"),
    (BATCH, without_buffer(VALUE, 1), "a buffer of the column value is missing"),
    (BATCH, without_buffer(VALUE, 2), "row 1 of the column value is invalid"),
    (BATCH, without_buffer(VALUE, 3), "a buffer of the column value is missing"),
    (BATCH, numbering(VALUE, 1, 0, -1), "row 0 of the column value is invalid"),
    (BATCH, numbering(VALUE, 1, 4, 34), "row 1 of the column value is invalid"),
    (BATCH, numbering(VALUE, 1, 6, 1), "row 1 of the column value is invalid"),
    (BATCH, numbering(VALUE, 1, 6, -1), "row 1 of the column value is invalid"),
    (BATCH, numbering(VALUE, 1, 7, -1), "row 1 of the column value is invalid"),
    (BATCH, numbering(VALUE, 1, 7, 1), "row 1 of the column value is invalid"),
    (BATCH, numbering(VALUE, 3, 0, -1, ctypes.c_int64), "row 1 of the column value is invalid"),
    (BATCH, without_buffer(PARTITION, 1), "a buffer of the column partition is missing"),
    (BATCH, without_buffer(PARTITION, 0), "the column partition declares 1 nulls and has no validity bitmap"),
    (BATCH, setting(PARTITION, length=1), "the column partition has 1 rows where 2 are needed"),
    (BATCH, setting(HEADERS, n_children=0), "the column headers has 0 children instead of 1"),
    (BATCH, without_buffer(HEADERS, 1), "a buffer of the column headers is missing"),
    (BATCH, numbering(HEADERS, 1, 0, -1), "row 0 of the column headers is invalid"),
    (BATCH, numbering(HEADERS, 1, 1, 2), "row 0 of the column headers is invalid"),
    (BATCH, setting((3, 0), n_children=1), "the pairs of the column headers has 1 children instead of 2"),
    (BATCH, setting((3, 0), length=0), "row 0 of the column headers is invalid"),
    (BATCH, setting((3, 0), length=2), "the keys of the column headers has 1 rows where 2 are needed"),
    (BATCH, setting((3, 0, 1), n_buffers=1), "the values of the column headers has 1 buffers instead of 3"),
]


@pytest.mark.parametrize(("columns", "change", "words"), BROKEN)
def test_structs_that_contradict_themselves_are_refused(columns, change, words):
    writable = pa.record_batch(columns).serialize()
    batch = pa.ipc.read_record_batch(pa.py_buffer(bytearray(writable)), pa.record_batch(columns).schema)
    with pytest.raises(ValueError, match=words):
        rows_of(ChangedBatch(batch, change))


def schema_setting(path, **fields):
    def change(schema, array):
        for name, value in fields.items():
            setattr(child(schema, *path), name, value)

    return change


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (schema_setting((), format=None), ValueError, "the table has no Arrow type"),
        (schema_setting((), n_children=-1), ValueError, "the table has -1 children"),
        (schema_setting((), n_children=2**40), ValueError, "the table has 1099511627776 children"),
        (schema_setting(KEY, format=None), ValueError, "a child of the table has no Arrow type"),
        (schema_setting(KEY, format=b"\xff"), TypeError, "the column key has the Arrow type \ufffd"),
        (schema_setting(KEY, format=b"w:-1"), TypeError, "the column key has the Arrow type w:-1"),
        (schema_setting(KEY, format=b"w:99999999999"), TypeError, "the column key has the Arrow type w:99999999999"),
        (schema_setting(HEADERS, n_children=0), TypeError, "list of another type"),
        (schema_setting((3, 0), format=b"u"), TypeError, "list of another type"),
        (schema_setting((3, 0), n_children=1), TypeError, "list of other structs"),
        (lambda schema, array: release(schema), ValueError, "the Arrow schema was released"),
        (lambda schema, array: release(array), ValueError, "the Arrow array was released"),
    ],
)
def test_schemas_that_are_invalid_are_refused(change, error, words):
    with pytest.raises(error, match=words):
        ArrowInput(ChangedBatch(pa.record_batch(BATCH), change))


def test_rows_that_are_null_as_a_whole_are_refused():
    rows = pa.array([{"value": "a"}, None, {"value": "c"}])

    class Structs:
        def __arrow_c_array__(self, requested_schema=None):
            return rows.__arrow_c_array__()

    with pytest.raises(ValueError, match="row 1 of the table is null as a whole"):
        rows_of(Structs())


def test_headers_that_are_null_are_refused():
    column = pa.array([[{"key": "a", "value": b"b"}, None]], pa.list_(PAIRS))
    with pytest.raises(ValueError, match="row 0 of the column headers is invalid"):
        rows_of(table(headers=column))
