"""Record batches: building, validating, assigning, scanning and reading; 1,000 records of 100 bytes."""

import pytest

from kafkapy._core.bytes.compression import CODEC_NAMES
from kafkapy._core.bytes.record_batch import (
    RecordBatch,
    RecordBatchBuilder,
    assign_offsets,
    scan_batches,
    validate_batches,
)

LIMITS = {
    "max_message_bytes": 2**31 - 1,
    "wall_ms": 1_000,
    "stamps_append_time": False,
    "before_max_ms": 2**63 - 1,
    "after_max_ms": 3_600_000,
    "compacted": False,
}
CODECS = pytest.mark.parametrize("codec", range(5), ids=CODEC_NAMES)


def build(codec: int = 0, count: int = 1_000) -> bytes:
    builder = RecordBatchBuilder(compression=codec)
    for index in range(count):
        builder.append(1_000, b"key%06d" % index, b"v" * 50 + b"%041d" % (index * 7919))
    return builder.build()


def test_build(benchmark):
    benchmark(build)


@CODECS
def test_validate(benchmark, codec):
    benchmark(validate_batches, build(codec), **LIMITS)


def test_validate_one_record(benchmark):
    benchmark(validate_batches, build(count=1), **LIMITS)


@pytest.mark.parametrize("log_append_time_ms", [-1, 5_000])
def test_assign(benchmark, log_append_time_ms):
    data = bytearray(build())
    summaries = validate_batches(data, **LIMITS)
    benchmark(assign_offsets, data, summaries, 5, 3, log_append_time_ms)


@pytest.mark.parametrize("check_crc", [True, False])
def test_scan(benchmark, check_crc):
    # 1,000 batches of 10 records, offsets ascending
    data = bytearray(build(count=10) * 1_000)
    assign_offsets(data, validate_batches(data, **LIMITS), 0, 0)
    benchmark(scan_batches, data, 0, check_crc)


@CODECS
def test_read(benchmark, codec):
    batch = RecordBatch(build(codec))
    assert len(benchmark(list, batch)) == 1_000
