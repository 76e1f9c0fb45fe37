"""CRC-32C by each variant: run with `pytest bench/micro/test_crc32c.py`."""

import pytest

from kafkapy._core.bytes.crc32c import FASTEST_VARIANT, VARIANTS, crc32c_with


@pytest.mark.parametrize("variant", range(FASTEST_VARIANT + 1), ids=VARIANTS[: FASTEST_VARIANT + 1])
@pytest.mark.parametrize("length", [100, 1_000, 16_384, 1_048_576])
def test_crc32c(benchmark, variant, length):
    benchmark(crc32c_with, variant, bytes(length))
