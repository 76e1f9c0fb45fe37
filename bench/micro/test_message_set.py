"""Message sets of magic 1: building and reading 1,000 messages of 100 bytes."""

import pytest

from kafkapy._core.bytes.message_set import build_message_set, iterate_records

RECORDS = [(index, 1_000, b"key%06d" % index, b"v" * 91) for index in range(1_000)]


@pytest.mark.parametrize("codec", range(4))
def test_build(benchmark, codec):
    benchmark(build_message_set, RECORDS, magic=1, compression=codec)


@pytest.mark.parametrize("codec", range(4))
def test_read(benchmark, codec):
    data = build_message_set(RECORDS, magic=1, compression=codec)
    benchmark(lambda: sum(1 for _ in iterate_records(data)))
