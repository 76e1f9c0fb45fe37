"""Maps each key to its newest offset, in fixed memory, for a pass of the log cleaner over the dirty part of a log.

An entry has 24 bytes: 128 bits of SipHash-2-4 of the key under a secret of this map, and the offset plus 1 (0: free).
Open addressing with linear probing. Keys are not stored, so two keys with the same hash would count as one, and the
older record would be lost. The secret prevents anybody from constructing such keys, and 128 bits make them improbable:
10^-26 for 5 million keys. Kafka uses MD5, for which producers can construct colliding keys, and which is slower.
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
    cdef readonly int64_t largest_slots  # slots that the memory holds
    cdef readonly int64_t slot_count     # slots used in this pass
    cdef readonly int64_t max_entries
    cdef readonly int64_t entries
    cdef readonly int64_t latest_offset  # of the records seen, with or without a key; -1 before the first
    cdef readonly double load_factor
    cdef uint64_t secret[2]

    # Returns MAP_OK, or MAP_FULL if the key is new and does not fit. Offsets of one key ascend. *Borrows* the key.
    cdef int put_key(self, const uint8_t *key, Py_ssize_t length, int64_t offset) noexcept nogil
    # Returns the newest offset of the key, or -1.
    cdef int64_t offset_of(self, const uint8_t *key, Py_ssize_t length) noexcept nogil
