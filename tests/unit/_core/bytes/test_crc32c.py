"""CRC-32C: published values, the processor's instructions, and the limits of the Python functions."""

import ctypes
import platform
from pathlib import Path

import pytest

from kafkapy._core.bytes.crc32c import FASTEST_VARIANT, VARIANTS, crc32c, crc32c_with

# Of Linux: getauxval's type AT_HWCAP, and the bits of an aarch64 processor with the product and with the checksum.
CAPABILITIES, PMULL, CRC32 = 16, 1 << 4, 1 << 7


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


def processor_has() -> tuple[bool, bool]:
    """Returns whether the processor has an instruction for CRC-32C, and one for the carry-less product."""
    if platform.machine() == "aarch64":
        get = ctypes.CDLL(None).getauxval
        get.argtypes, get.restype = [ctypes.c_ulong], ctypes.c_ulong
        found = get(CAPABILITIES)
        return bool(found & CRC32), bool(found & PMULL)
    flags = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")).split()
    return "sse4_2" in flags, "pclmulqdq" in flags


def test_uses_the_instructions_of_the_processor():
    has_checksum, has_product = processor_has()
    expected = ("three streams" if has_product else "one stream") if has_checksum else "table"
    assert VARIANTS[FASTEST_VARIANT] == expected


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
