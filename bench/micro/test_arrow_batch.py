"""Fetched batches as Arrow's columns, and as records: a megabyte of 100-byte or 1 KB values in batches of 16 KB."""

import pytest

from kafkapy._core.bytes.arrow_batch import COLUMNS, ArrowBatch
from kafkapy._core.bytes.compression import CODEC_NAMES
from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy._core.client.fetched_records import FetchedRecords

FETCHED_BYTES = 1 << 20
BATCH_BYTES = 16 << 10
SIZES = pytest.mark.parametrize("size", [100, 1000])
CHOSEN = {"all": COLUMNS, "plain": COLUMNS[:7], "value": ("value",), "offset": ("offset",), "none": ()}


def fetched(size: int, codec: int = 0) -> tuple[bytes, int]:
    """Returns encoded batches of records with values of `size` bytes, and the number of records in them."""
    batches, count, per_batch = [], 0, BATCH_BYTES // size
    while count * size < FETCHED_BYTES:
        builder = RecordBatchBuilder(count, compression=codec)
        for index in range(per_batch):
            builder.append(1_000 + index, None, b"%07d" % (index * 7919) + b"v" * (size - 7))
        batches.append(builder.build())
        count += per_batch
    return b"".join(batches), count


def fill(data: bytes, columns: tuple[str, ...]) -> int:
    batch = ArrowBatch(columns, max_rows=1 << 20)
    return FetchedRecords(data, "topic", 0, 0).fill(batch)


@SIZES
@pytest.mark.parametrize("columns", CHOSEN)
def test_fill(benchmark, size, columns):
    data, count = fetched(size)
    assert benchmark(fill, data, CHOSEN[columns]) == count


@pytest.mark.parametrize("codec", range(1, 5), ids=CODEC_NAMES[1:])
def test_fill_compressed(benchmark, codec):
    data, count = fetched(100, codec)
    assert benchmark(fill, data, CHOSEN["plain"]) == count


@SIZES
def test_take(benchmark, size):
    data, count = fetched(size)
    assert len(benchmark(lambda: FetchedRecords(data, "topic", 0, 0).take(1 << 20))) == count
