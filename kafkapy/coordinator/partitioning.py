"""Maps groups and transactional ids to partitions of internal topics: Java's `Math.abs(key.hashCode()) % n`."""

from __future__ import annotations

_INT_MIN = -(1 << 31)


def java_string_hash(text: str) -> int:
    """Returns `String.hashCode()`: a 31-polynomial over UTF-16 code units, as a signed 32-bit number."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(units), 2):
        value = (value * 31 + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def coordinator_partition(key: str, partition_count: int) -> int:
    """Returns the partition that owns the key.

    It is the absolute value of the hash modulo the number of partitions. The only hash whose absolute value overflows,
    -2^31, counts as 0 (`Utils.abs`).
    """
    value = java_string_hash(key)
    return (0 if value == _INT_MIN else abs(value)) % partition_count
