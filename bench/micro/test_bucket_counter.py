"""Counting the records of a log by time bucket, as the broker's audit does."""

import pytest

from kafkapy._core.bytes.bucket_counter import BucketCounter
from kafkapy._core.bytes.codec_functions import find_codec_functions
from kafkapy._core.bytes.compression import LZ4
from kafkapy._core.bytes.record_batch import RecordBatchBuilder

BATCHES, RECORDS = 10, 1000


@pytest.mark.parametrize("codec", [0, LZ4], ids=["plain", "lz4"])
def test_count(benchmark, codec):
    find_codec_functions(codec)
    log = b""
    for number in range(BATCHES):
        builder = RecordBatchBuilder(number * RECORDS, compression=codec)
        for index in range(RECORDS):
            builder.append(1_700_000_000_000 + index, None, b"%d" % index * 20)
        log += builder.build()
    counter = BucketCounter(10_000)
    benchmark(counter.count, log, len(log), 0)
    assert sum(number for *_, number in counter.take()) % (BATCHES * RECORDS) == 0
