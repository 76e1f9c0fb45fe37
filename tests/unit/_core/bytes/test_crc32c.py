"""CRC-32C: published values and the limits of the Python functions."""

import pytest

from kafkapy._core.bytes.crc32c import FASTEST_VARIANT, crc32c, crc32c_with


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),  # RFC 3720, B.4
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_published_values(data, expected):
    assert crc32c(data) == expected
    assert [crc32c_with(variant, data) for variant in range(FASTEST_VARIANT + 1)] == [expected] * (FASTEST_VARIANT + 1)


def test_takes_any_buffer_and_a_start():
    assert crc32c(memoryview(bytearray(b"xx123456789")), 2) == 0xE3069283
    assert crc32c(b"ab", 2) == 0


def test_refuses_what_is_outside():
    with pytest.raises(IndexError):
        crc32c(b"ab", 3)
    with pytest.raises(IndexError):
        crc32c(b"ab", -1)
    with pytest.raises(ValueError, match="not possible"):
        crc32c_with(FASTEST_VARIANT + 1, b"")
