"""Maps groups and transactional ids to partitions of internal topics: Java's `Math.abs(key.hashCode()) % n`."""

from __future__ import annotations

from kafkapy.types import java_string_hash

_INT_MIN = -(1 << 31)


def coordinator_partition(key: str, partition_count: int) -> int:
    """Returns the partition of the internal topic that owns the key.

    It is the absolute value of the key's hash modulo `partition_count`. The hash -2^31, whose absolute value overflows,
    counts as 0 (`Utils.abs`).
    """
    value = java_string_hash(key)
    return (0 if value == _INT_MIN else abs(value)) % partition_count
