"""murmur2 as its author describes it for 32 bits, with the seed of Kafka's clients: slow and plain."""

from __future__ import annotations

M, R, SEED, MASK = 0x5BD1E995, 24, 0x9747B28C, 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Returns the hash as a signed 32-bit number."""
    h = SEED ^ len(data)
    words = len(data) // 4
    for at in range(words):
        k = int.from_bytes(data[4 * at : 4 * at + 4], "little") * M & MASK
        k = (k ^ k >> R) * M & MASK
        h = (h * M & MASK) ^ k
    tail = data[4 * words :]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * M & MASK
    h = (h ^ h >> 13) * M & MASK
    h ^= h >> 15
    return h - (1 << 32) if h >> 31 else h
