"""The offset map of the log cleaner, which has the newest offset of each key of a compacted log."""
import os

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

ENTRY_BYTES = sizeof(Slot)

cdef enum:
    FEWEST_SLOTS = 64


cdef inline uint64_t rotated(uint64_t value, int by) noexcept nogil:
    return value << by | value >> (64 - by)


cdef inline void sip_rounds(uint64_t *v, int count) noexcept nogil:
    while count:
        v[0] += v[1]
        v[1] = rotated(v[1], 13) ^ v[0]
        v[0] = rotated(v[0], 32)
        v[2] += v[3]
        v[3] = rotated(v[3], 16) ^ v[2]
        v[0] += v[3]
        v[3] = rotated(v[3], 21) ^ v[0]
        v[2] += v[1]
        v[1] = rotated(v[1], 17) ^ v[2]
        v[2] = rotated(v[2], 32)
        count -= 1


cdef void siphash_128(const uint64_t *secret, const uint8_t *bytes, Py_ssize_t length, uint64_t *hashed) noexcept nogil:
    """Computes SipHash-2-4 with 128 bits of output, which is written to `hashed`, under the key `secret`.

    Words are read in the machine's byte order, which must be little-endian.
    """
    cdef uint64_t v[4]
    cdef uint64_t word
    cdef const uint8_t *end = bytes + (length & ~7)
    v[0] = secret[0] ^ <uint64_t>0x736f6d6570736575
    v[1] = secret[1] ^ <uint64_t>0x646f72616e646f6d ^ 0xee
    v[2] = secret[0] ^ <uint64_t>0x6c7967656e657261
    v[3] = secret[1] ^ <uint64_t>0x7465646279746573
    while bytes < end:
        memcpy(&word, bytes, 8)
        v[3] ^= word
        sip_rounds(v, 2)
        v[0] ^= word
        bytes += 8
    word = 0
    memcpy(&word, bytes, <size_t>(length & 7))
    word |= <uint64_t>length << 56
    v[3] ^= word
    sip_rounds(v, 2)
    v[0] ^= word
    v[2] ^= 0xee
    sip_rounds(v, 4)
    hashed[0] = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xdd
    sip_rounds(v, 4)
    hashed[1] = v[0] ^ v[1] ^ v[2] ^ v[3]


def siphash(bytes secret not None, bytes data not None):
    """Returns the hash of `data` under a secret of 16 bytes, as 16 bytes: for tests."""
    if len(secret) != 16:
        raise ValueError("the secret has 16 bytes")
    cdef uint64_t key[2]
    cdef uint64_t hashed[2]
    memcpy(key, <const char *>secret, 16)
    siphash_128(key, <const uint8_t *><const char *>data, len(data), hashed)
    return (<char *>hashed)[:16]


cdef class OffsetMap:
    """A map of record keys to their newest offsets, for the log cleaner. Its memory exists from `clear` to `release`.

    Invariant: entries <= max_entries < slot_count, so that a search ends. Used by one thread.
    """

    def __init__(self, int64_t memory_bytes, double load_factor=0.9, bytes secret=None):
        """Creates a map that uses at most `memory_bytes`, and fills at most the fraction `load_factor` of its slots.

        `secret` has 16 bytes, by default random ones. It is the key of the hash function, so that clients cannot choose
        record keys whose hashes collide. Raises ValueError if the map could not hold one key.
        """
        self.largest_slots = memory_bytes // sizeof(Slot)
        if not 0 < load_factor < 1 or self.largest_slots * load_factor < 1:
            raise ValueError(f"a map of {memory_bytes} bytes with load factor {load_factor} holds no key")
        self.load_factor = load_factor
        self.latest_offset = -1
        secret = os.urandom(16) if secret is None else secret
        if len(secret) != 16:
            raise ValueError("the secret has 16 bytes")
        memcpy(self.secret, <const char *>secret, 16)

    def __dealloc__(self):
        free(self.slots)

    @property
    def capacity(self):
        """The number of keys that the whole memory holds: 5,033,164 in 128 MiB with load factor 0.9."""
        return <int64_t>(self.largest_slots * self.load_factor)

    def clear(self, int64_t expected=-1):
        """Empties the map and allocates slots for `expected` keys, at most as many as `memory_bytes` allows.

        By default allocates all of `memory_bytes`. Raises MemoryError.
        """
        self.release()
        slots = self.largest_slots
        if expected >= 0 and expected < slots:
            slots = min(slots, max(<int64_t>(expected / self.load_factor) + 2, <int64_t>FEWEST_SLOTS))
        self.slots = <Slot *>calloc(<size_t>slots, sizeof(Slot))
        if self.slots == NULL:
            raise MemoryError(f"no {slots * sizeof(Slot)} bytes for the offset map")
        self.slot_count = slots
        self.max_entries = min(<int64_t>(slots * self.load_factor), slots - 1)

    def release(self):
        """Frees the memory."""
        free(self.slots)
        self.slots = NULL
        self.slot_count = self.max_entries = self.entries = 0
        self.latest_offset = -1

    cdef int put_key(self, const uint8_t *key, Py_ssize_t length, int64_t offset) noexcept nogil:
        cdef uint64_t hashed[2]
        cdef uint64_t index
        if self.slots == NULL:
            return MAP_FULL
        siphash_128(self.secret, key, length, hashed)
        index = hashed[0] % <uint64_t>self.slot_count
        while self.slots[index].offset_and_one:
            if self.slots[index].low == hashed[0] and self.slots[index].high == hashed[1]:
                self.slots[index].offset_and_one = offset + 1
                return MAP_OK
            index += 1
            if index == <uint64_t>self.slot_count:
                index = 0
        if self.entries >= self.max_entries:
            return MAP_FULL
        self.slots[index].low = hashed[0]
        self.slots[index].high = hashed[1]
        self.slots[index].offset_and_one = offset + 1
        self.entries += 1
        return MAP_OK

    cdef int64_t offset_of(self, const uint8_t *key, Py_ssize_t length) noexcept nogil:
        cdef uint64_t hashed[2]
        cdef uint64_t index
        if self.entries == 0:
            return -1
        siphash_128(self.secret, key, length, hashed)
        index = hashed[0] % <uint64_t>self.slot_count
        while self.slots[index].offset_and_one:
            if self.slots[index].low == hashed[0] and self.slots[index].high == hashed[1]:
                return self.slots[index].offset_and_one - 1
            index += 1
            if index == <uint64_t>self.slot_count:
                index = 0
        return -1

    def note_offset(self, int64_t offset):
        """Increases `latest_offset` to `offset`: the map now has the keys of the log up to this offset, inclusive.

        Does nothing if `latest_offset` is higher already.
        """
        self.latest_offset = max(self.latest_offset, offset)

    def put(self, key, int64_t offset):
        """Stores `offset`, 0 or more, as the newest offset of the key.

        Returns False and changes nothing if the key is new and the map is full, otherwise True.
        """
        cdef Py_buffer view
        if offset < 0:
            raise ValueError(f"{offset} is no offset")
        PyObject_GetBuffer(key, &view, PyBUF_SIMPLE)
        try:
            if self.put_key(<const uint8_t *>view.buf, view.len, offset) == MAP_FULL:
                return False
        finally:
            PyBuffer_Release(&view)
        self.note_offset(offset)
        return True

    def get(self, key):
        """Returns the newest offset of the key, or -1 if the map does not have the key."""
        cdef Py_buffer view
        PyObject_GetBuffer(key, &view, PyBUF_SIMPLE)
        try:
            return self.offset_of(<const uint8_t *>view.buf, view.len)
        finally:
            PyBuffer_Release(&view)

    def __len__(self):
        return self.entries
