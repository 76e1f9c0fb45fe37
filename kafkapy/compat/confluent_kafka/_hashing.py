"""The hash functions with which librdkafka chooses the partition of a key, and the partitioners built on them."""

from __future__ import annotations

from collections.abc import Callable
from random import randrange
from zlib import crc32

from kafkapy._core.bytes.murmur2 import partition_of_key

# Returns the partition for a key and a partition count; None for the partition of the next batch without keys.
Partitioner = Callable[[bytes | None, int], int | None]

_FNV_PRIME, _FNV_BASIS = 0x01000193, 0x811C9DC5


def murmur2(key: bytes, partition_count: int) -> int:
    """Returns the partition of a key by murmur2, as Java's producer chooses it."""
    return partition_of_key(key, partition_count)


def consistent(key: bytes, partition_count: int) -> int:
    """Returns the partition of a key by CRC-32, as librdkafka chooses it by default."""
    return crc32(key) % partition_count


def fnv1a(key: bytes, partition_count: int) -> int:
    """Returns the partition of a key by FNV-1a with 32 bits, as Sarama, a client for Go, chooses it."""
    state = _FNV_BASIS
    for byte in key:
        state = (state ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    if state & 0x80000000:
        state = 0x100000000 - state  # the absolute value of a signed integer, as Sarama computes it
    return state % partition_count


def _sticky_without_key(choose: Callable[[bytes, int], int], *, empty_is_key: bool) -> Partitioner:
    def partition(key: bytes | None, partition_count: int) -> int | None:
        if key is None or (not key and not empty_is_key):
            return None
        return choose(key, partition_count)

    return partition


def _keyless_to_one(choose: Callable[[bytes, int], int]) -> Partitioner:
    return lambda key, partition_count: choose(key or b"", partition_count)


# The values of the configuration key `partitioner`. "random" ignores keys.
PARTITIONERS: dict[str, Partitioner] = {
    "random": lambda key, partition_count: None if key is None else randrange(partition_count),
    "consistent": _keyless_to_one(consistent),
    "consistent_random": _sticky_without_key(consistent, empty_is_key=False),
    "murmur2": _keyless_to_one(murmur2),
    "murmur2_random": _sticky_without_key(murmur2, empty_is_key=True),
    "fnv1a": _keyless_to_one(fnv1a),
    "fnv1a_random": _sticky_without_key(fnv1a, empty_is_key=True),
}
