"""ArrowBatch: the calls that it refuses, how its memory is shared, and when the memory is freed."""

from __future__ import annotations

import gc

import pyarrow
import pytest

from kafkapy._core.bytes.arrow_batch import COLUMNS, ArrowBatch
from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy._core.client.fetched_records import FetchedRecords
from kafkapy.errors import ApiError, Error


def fetched(count: int, size: int = 10, **settings) -> FetchedRecords:
    builder = RecordBatchBuilder(0, compression=settings.pop("compression", 0))
    for _ in range(count):
        builder.append(1_000, None, b"v" * size, [("h", b"1")])
    return FetchedRecords(builder.build(), "t", 0, 0, **settings)


@pytest.mark.parametrize("columns", [["nothing"], ["key", "key"], [None]])
def test_columns_that_there_are_not(columns):
    with pytest.raises(ValueError, match="columns are some of key, value, topic"):
        ArrowBatch(columns)


@pytest.mark.parametrize("settings", [{"timestamp_unit": "ns"}, {"max_rows": 0}])
def test_settings_that_cannot_be(settings):
    with pytest.raises(ValueError, match=r"timestamps are in|max_rows"):
        ArrowBatch(**settings)


def test_the_schema_is_that_of_sparks_kafka_source():
    schema = pyarrow.schema(ArrowBatch(COLUMNS))
    assert schema == pyarrow.schema(
        [
            ("key", pyarrow.binary()),
            ("value", pyarrow.binary()),
            ("topic", pyarrow.string()),
            ("partition", pyarrow.int32()),
            ("offset", pyarrow.int64()),
            ("timestamp", pyarrow.timestamp("us", "UTC")),
            ("timestampType", pyarrow.int32()),
            (
                "headers",
                pyarrow.list_(
                    pyarrow.field("element", pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))
                ),
            ),
        ]
    )


def test_an_empty_batch_has_columns():
    empty = pyarrow.record_batch(ArrowBatch(COLUMNS))
    empty.validate(full=True)
    assert (empty.num_rows, empty.schema.names) == (0, list(COLUMNS))


def test_rows_without_columns_are_counted_without_looking_into_compressed_batches():
    records = fetched(1_000, compression=4)
    batch = ArrowBatch([], max_rows=2_000)
    assert records.fill(batch) == 1_000
    assert pyarrow.record_batch(batch).num_rows == 1_000
    assert records.next_offset == 1_000


def test_what_was_given_out_stays_and_is_not_filled_any_more():
    records, batch = fetched(10), ArrowBatch(["value"], max_rows=4)
    assert records.fill(batch) == 4
    first, second = pyarrow.record_batch(batch), pyarrow.record_batch(batch)
    assert first.column(0).buffers()[2].address == second.column(0).buffers()[2].address
    with pytest.raises(RuntimeError, match="given out"):
        records.fill(batch)
    column = first.column("value")
    del batch, records, first, second
    gc.collect()
    assert column.to_pylist() == [b"v" * 10] * 4


def test_capsules_that_nobody_takes_free_what_they_hold():
    batch = ArrowBatch(COLUMNS)
    fetched(10).fill(batch)
    for _ in range(3):
        batch.__arrow_c_array__()
        batch.__arrow_c_schema__()


def test_columns_moved_out_of_their_batch_outlive_it():
    batch = ArrowBatch(COLUMNS)
    fetched(10).fill(batch)
    taken = pyarrow.RecordBatch.from_arrays(pyarrow.record_batch(batch).columns, names=list(COLUMNS))
    del batch
    assert taken.column("headers").to_pylist() == [[{"key": "h", "value": b"1"}]] * 10


def test_one_batch_of_several_partitions():
    batch = ArrowBatch(["topic", "partition", "offset"])
    for topic, partition in [("a", 1), ("b" * 249, 2), ("", 3)]:
        builder = RecordBatchBuilder(7)
        builder.append(0, None, None)
        FetchedRecords(builder.build(), topic, partition, 0).fill(batch)
    assert pyarrow.record_batch(batch).to_pylist() == [
        {"topic": topic, "partition": partition, "offset": 7}
        for topic, partition in [("a", 1), ("b" * 249, 2), ("", 3)]
    ]


def test_a_batch_is_full_when_it_has_its_bytes():
    first, second = fetched(10, 100), fetched(10, 100)
    batch = ArrowBatch(["value"], max_bytes=1_500)
    assert (first.fill(batch), batch.is_full) == (10, False)
    assert (second.fill(batch), batch.is_full) == (0, True)
    following = ArrowBatch(["value"], max_bytes=10)
    assert (second.fill(following), second.next_offset) == (10, 10)


def test_a_count_that_the_bytes_cannot_have_is_refused_before_there_is_memory_for_it():
    data = bytearray(one_record())
    data[57:61] = (2**31 - 1).to_bytes(4, "big")
    records = FetchedRecords(data, "t", 0, 0, check_crcs=False)
    with pytest.raises(ApiError) as refused:
        records.fill(ArrowBatch(max_rows=2**31))
    assert refused.value.error is Error.INVALID_RECORD


def one_record() -> bytes:
    builder = RecordBatchBuilder(0)
    builder.append(0, b"k", b"v")
    return builder.build()


def test_damage_comes_after_the_rows_before_it():
    damaged = bytearray(one_record())
    damaged[-1] ^= 1
    records = FetchedRecords(one_record() + bytes(damaged), "t", 0, 0, check_crcs=True)
    batch = ArrowBatch(["value"])
    assert (records.fill(batch), batch.is_full) == (1, True)
    with pytest.raises(ApiError) as refused:
        records.fill(ArrowBatch(["value"]))
    assert refused.value.error is Error.CORRUPT_MESSAGE
