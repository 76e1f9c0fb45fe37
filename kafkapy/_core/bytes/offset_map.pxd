"""The newest offset of each key, in fixed memory: what a pass of the log cleaner knows of the dirty part of a log.

An entry has 24 bytes: 128 bits of SipHash-2-4 of the key under a secret of this map, and the offset plus 1 (0: free).
Open addressing with linear probing. The key itself is not kept, so two keys with one hash would be one key, and the
older lost: with a secret and 128 bits nobody can look for such keys, and by chance 5 million of them meet with a
probability of 10^-26. With MD5, which Kafka uses, colliding keys can be made by whoever may write, and it is slower.
"""
from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef enum:
    MAP_OK = 0
    MAP_FULL = 1

cdef struct Slot:
    uint64_t low
    uint64_t high
    int64_t offset_and_one               # 0: free


cdef void siphash_128(const uint64_t *secret, const uint8_t *bytes, Py_ssize_t length, uint64_t *hashed) noexcept nogil


cdef class OffsetMap:
    cdef Slot *slots
    cdef readonly int64_t largest_slots  # what the memory holds
    cdef readonly int64_t slot_count     # in use for this pass
    cdef readonly int64_t max_entries
    cdef readonly int64_t entries
    cdef readonly int64_t latest_offset  # of the records seen, with a key or not; -1 before the first
    cdef readonly double load_factor
    cdef uint64_t secret[2]

    # MAP_OK, or MAP_FULL if the key is new and has no room. Offsets of one key rise. *Borrows* the key.
    cdef int put_key(self, const uint8_t *key, Py_ssize_t length, int64_t offset) noexcept nogil
    # The newest offset of the key, or -1.
    cdef int64_t offset_of(self, const uint8_t *key, Py_ssize_t length) noexcept nogil
