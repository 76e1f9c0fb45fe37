"""Big-endian loads and stores, and varints with bounds checks: inline leaf functions that *borrow*.

A varint is little-endian base 128: seven bits a byte, the top bit says that another byte follows. `varint` and
`varlong` are zig-zag coded (KIP-98 records); `unsigned_varint` is not (KIP-482 compact types).
Every read of a varint checks each byte against `end` and returns the new position, or -1 if the bytes end early or the
number is longer than its type allows (5 bytes for 32 bits, 10 for 64).
"""
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy


cdef extern from * nogil:
    uint16_t bswap16 "__builtin_bswap16"(uint16_t)
    uint32_t bswap32 "__builtin_bswap32"(uint32_t)
    uint64_t bswap64 "__builtin_bswap64"(uint64_t)

cdef enum:
    LARGEST_VARLONG = 10                 # bytes


cdef inline int16_t load_int16(const uint8_t *at) noexcept nogil:
    cdef uint16_t raw
    memcpy(&raw, at, 2)
    return <int16_t>bswap16(raw)


cdef inline int32_t load_int32(const uint8_t *at) noexcept nogil:
    cdef uint32_t raw
    memcpy(&raw, at, 4)
    return <int32_t>bswap32(raw)


cdef inline uint32_t load_uint32(const uint8_t *at) noexcept nogil:
    cdef uint32_t raw
    memcpy(&raw, at, 4)
    return bswap32(raw)


cdef inline int64_t load_int64(const uint8_t *at) noexcept nogil:
    cdef uint64_t raw
    memcpy(&raw, at, 8)
    return <int64_t>bswap64(raw)


cdef inline void store_int16(uint8_t *at, int16_t value) noexcept nogil:
    cdef uint16_t raw = bswap16(<uint16_t>value)
    memcpy(at, &raw, 2)


cdef inline void store_int32(uint8_t *at, int32_t value) noexcept nogil:
    cdef uint32_t raw = bswap32(<uint32_t>value)
    memcpy(at, &raw, 4)


cdef inline void store_uint32(uint8_t *at, uint32_t value) noexcept nogil:
    cdef uint32_t raw = bswap32(value)
    memcpy(at, &raw, 4)


cdef inline void store_int64(uint8_t *at, int64_t value) noexcept nogil:
    cdef uint64_t raw = bswap64(<uint64_t>value)
    memcpy(at, &raw, 8)


cdef inline Py_ssize_t read_unsigned_varint(const uint8_t *buf, Py_ssize_t pos, Py_ssize_t end,
                                            uint32_t *value) noexcept nogil:
    cdef uint32_t result = 0
    cdef int shift = 0
    cdef uint8_t byte
    while pos < end and shift < 35:
        byte = buf[pos]
        pos += 1
        if shift == 28 and byte > 0x0f:
            return -1
        result |= <uint32_t>(byte & 0x7f) << shift
        if byte < 0x80:
            value[0] = result
            return pos
        shift += 7
    return -1


cdef inline Py_ssize_t read_unsigned_varlong(const uint8_t *buf, Py_ssize_t pos, Py_ssize_t end,
                                             uint64_t *value) noexcept nogil:
    cdef uint64_t result = 0
    cdef int shift = 0
    cdef uint8_t byte
    while pos < end and shift < 70:
        byte = buf[pos]
        pos += 1
        if shift == 63 and byte > 0x01:
            return -1
        result |= <uint64_t>(byte & 0x7f) << shift
        if byte < 0x80:
            value[0] = result
            return pos
        shift += 7
    return -1


cdef inline Py_ssize_t read_varint(const uint8_t *buf, Py_ssize_t pos, Py_ssize_t end, int32_t *value) noexcept nogil:
    cdef uint32_t raw = 0
    pos = read_unsigned_varint(buf, pos, end, &raw)
    value[0] = <int32_t>(raw >> 1) ^ -<int32_t>(raw & 1)
    return pos


cdef inline Py_ssize_t read_varlong(const uint8_t *buf, Py_ssize_t pos, Py_ssize_t end, int64_t *value) noexcept nogil:
    cdef uint64_t raw = 0
    pos = read_unsigned_varlong(buf, pos, end, &raw)
    value[0] = <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)
    return pos


cdef inline Py_ssize_t write_unsigned_varlong(uint8_t *buf, Py_ssize_t pos, uint64_t value) noexcept nogil:
    """Writes a varint and returns the new position. The caller provides 10 bytes, or 5 if the value fits 32 bits."""
    while value >= 0x80:
        buf[pos] = <uint8_t>(value & 0x7f) | 0x80
        value >>= 7
        pos += 1
    buf[pos] = <uint8_t>value
    return pos + 1


cdef inline Py_ssize_t write_varlong(uint8_t *buf, Py_ssize_t pos, int64_t value) noexcept nogil:
    return write_unsigned_varlong(buf, pos, (<uint64_t>value << 1) ^ <uint64_t>(value >> 63))


cdef inline int size_of_unsigned_varlong(uint64_t value) noexcept nogil:
    cdef int size = 1
    while value >= 0x80:
        value >>= 7
        size += 1
    return size


cdef inline int size_of_varlong(int64_t value) noexcept nogil:
    return size_of_unsigned_varlong((<uint64_t>value << 1) ^ <uint64_t>(value >> 63))
