"""murmur2 with the seed 0x9747b28c: the hash by which Kafka's clients choose a key's partition."""
from libc.stdint cimport int32_t, uint8_t, uint32_t

cdef enum:
    SHIFT = 24

cdef uint32_t SEED = 0x9747b28cu
cdef uint32_t MULTIPLIER = 0x5bd1e995u


cdef int32_t murmur2_of(const uint8_t *data, Py_ssize_t length) noexcept nogil:
    cdef uint32_t digest = SEED ^ <uint32_t>length
    cdef uint32_t word
    cdef Py_ssize_t pos = 0
    while length - pos >= 4:
        word = (data[pos] | <uint32_t>data[pos + 1] << 8 | <uint32_t>data[pos + 2] << 16
                | <uint32_t>data[pos + 3] << 24)
        word *= MULTIPLIER
        word ^= word >> SHIFT
        word *= MULTIPLIER
        digest = digest * MULTIPLIER ^ word
        pos += 4
    if length > pos:
        word = data[pos]
        if length - pos > 1:
            word |= <uint32_t>data[pos + 1] << 8
        if length - pos > 2:
            word |= <uint32_t>data[pos + 2] << 16
        digest = (digest ^ word) * MULTIPLIER
    digest ^= digest >> 13
    digest *= MULTIPLIER
    digest ^= digest >> 15
    return <int32_t>digest


def murmur2(const uint8_t[::1] data not None):
    """Returns the hash of bytes, as Java's signed int."""
    return murmur2_of(&data[0] if data.shape[0] else NULL, data.shape[0])


def partition_of_key(const uint8_t[::1] key not None, int32_t partition_count):
    """Returns the partition of a key among `partition_count` (at least 1)."""
    if partition_count < 1:
        raise ValueError("a topic has at least one partition")
    return (murmur2_of(&key[0] if key.shape[0] else NULL, key.shape[0]) & 0x7fffffff) % partition_count
