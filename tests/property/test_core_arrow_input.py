"""Tables that are read through Arrow's interface have the rows that pyarrow sees: any types, chunks and slices."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy._core.bytes.arrow_input import ArrowInput

BINARY = st.sampled_from([pa.binary(), pa.large_binary(), pa.binary_view()])
TEXT = st.sampled_from([pa.string(), pa.large_string(), pa.string_view()])
CONTENT = st.one_of(st.none(), st.binary(max_size=20))
WORDS = st.one_of(st.none(), st.text(st.characters(codec="utf-8"), max_size=20))
PARTITIONS = st.one_of(st.none(), st.integers(-128, 127))
TIMES = st.one_of(st.none(), st.integers(0, 2**41))
HEADERS = st.one_of(st.none(), st.lists(st.tuples(st.text(max_size=14), CONTENT), max_size=3))
ROWS = st.lists(st.tuples(WORDS, CONTENT, PARTITIONS, TIMES, HEADERS), max_size=20)
UNITS = {"s": 1000, "ms": 1, "us": 1, "ns": 1}


@given(
    ROWS, TEXT, BINARY, TEXT, BINARY, st.sampled_from([pa.list_, pa.large_list]), st.sampled_from(sorted(UNITS)),
    st.lists(st.integers(0, 20), max_size=4), st.integers(0, 5),
)  # fmt: skip
@settings(deadline=None)
def test_rows_are_those_of_pyarrow(rows, text, binary, name, content, list_of, unit, cuts, start):
    pairs = list_of(pa.struct([("key", name), ("value", content)]))
    columns = list(zip(*rows, strict=True)) or [()] * 5
    times = [None if each is None else each // UNITS[unit] for each in columns[3]]
    headers = [each if each is None else [{"key": key, "value": value} for key, value in each] for each in columns[4]]
    table = pa.table(
        {
            "key": pa.array(columns[0], text),
            "value": pa.array(columns[1], binary),
            "partition": pa.array(columns[2], pa.int8()),
            "timestamp": pa.array(times, pa.int64()).cast(pa.timestamp("s" if unit == "s" else "ms")),
            "headers": pa.array(headers, pairs),
        }
    )
    if unit in ("us", "ns"):
        at = table.schema.get_field_index("timestamp")
        table = table.set_column(at, "timestamp", table.column(at).cast(pa.timestamp(unit)))
    edges = sorted({0, table.num_rows, *(min(cut, table.num_rows) for cut in cuts)})
    parts = [table.slice(first, last - first) for first, last in pairwise(edges)]
    cut_table = pa.concat_tables(parts).slice(start) if parts else table
    reader, found = ArrowInput(cut_table), []
    while reader.next_batch():
        assert reader.rows_before == len(found)
        found += [reader.row(index) for index in range(reader.rows)]
    ms = [None if each is None else each * UNITS[unit] for each in times]
    expected = list(zip(*columns[:3], ms, columns[4], strict=True))
    assert found == expected[min(start, table.num_rows) :]
