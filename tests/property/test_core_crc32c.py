"""Every variant of CRC-32C returns the same value as the slow one, whole or in pieces."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafkapy._core.bytes.crc32c import FASTEST_VARIANT, crc32c, crc32c_with
from tests.reference.crc32c import crc32c as slow_crc32c

VARIANTS = range(FASTEST_VARIANT + 1)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=2000), st.integers(0, 2000), st.integers(0, 7))
@example(bytes(range(256)) * 30, 6144, 1)
def test_agrees_with_the_reference(data, cut, start):
    start = min(start, len(data))
    cut = max(start, min(cut, len(data)))
    expected = slow_crc32c(data[start:])
    for variant in VARIANTS:
        assert crc32c_with(variant, data, start) == expected
        assert crc32c_with(variant, data[cut:], 0, crc32c_with(variant, data[start:cut])) == expected


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 70_000), st.integers(0, 7))
def test_variants_agree_on_long_data(length, start):
    data = (b"some bytes of a batch \x00\xff" * (length // 24 + 1))[: length + start]
    assert {crc32c_with(variant, data, start) for variant in VARIANTS} == {crc32c(data, start)}
