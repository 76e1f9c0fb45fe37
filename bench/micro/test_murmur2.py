"""The hash that chooses a keyed record's partition."""

import pytest

from kafkapy._core.bytes.murmur2 import partition_of_key


@pytest.mark.parametrize("size", [10, 100])
def test_partition_of_key(benchmark, size):
    assert 0 <= benchmark(partition_of_key, b"k" * size, 48) < 48
