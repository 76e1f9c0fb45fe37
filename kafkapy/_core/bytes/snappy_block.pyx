"""Snappy decompression without a library. Every step is checked against the ends of the input and the output."""

from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from kafkapy._core.bytes.primitives cimport read_unsigned_varint

cdef enum:
    LITERAL = 0
    COPY_1 = 1                           # 11 bits of offset, 3 of length
    COPY_2 = 2                           # 16 bits of offset, 6 of length
    LONGEST_INLINE_LITERAL = 60          # a longer one has its length in the next 1 to 4 bytes


cdef int64_t snappy_claim(const uint8_t *block, Py_ssize_t size) noexcept nogil:
    cdef uint32_t length = 0
    if read_unsigned_varint(block, 0, size, &length) < 0:
        return -1
    # No element of the format turns 3 bytes into more than 64.
    if <int64_t> length > <int64_t> size * 64 // 3 + 64:
        return -1
    return length


cdef inline uint32_t load_little(const uint8_t *at, Py_ssize_t count) noexcept nogil:
    cdef uint32_t value = at[0]
    if count > 1:
        value |= <uint32_t> at[1] << 8
    if count > 2:
        value |= <uint32_t> at[2] << 16
    if count > 3:
        value |= <uint32_t> at[3] << 24
    return value


cdef inline void copy_back(uint8_t *out, Py_ssize_t offset, Py_ssize_t length) noexcept nogil:
    """Copies `length` bytes to `out` from `offset` bytes before `out`; both ranges may overlap.

    Up to SNAPPY_SLACK more bytes are overwritten.
    """
    cdef Py_ssize_t done = 0
    if offset >= 16:
        while done < length:
            memcpy(out + done, out + done - offset, 16)
            done += 16
    else:
        for done in range(length):
            out[done] = out[done - offset]


cdef bint snappy_decompress(const uint8_t *block, Py_ssize_t size, uint8_t *out) noexcept nogil:
    cdef uint32_t claim = 0
    cdef Py_ssize_t pos = read_unsigned_varint(block, 0, size, &claim)
    cdef Py_ssize_t end = <Py_ssize_t> claim, made = 0, length, offset, extra
    cdef uint8_t tag
    if pos < 0:
        return False
    while pos < size:
        tag = block[pos]
        pos += 1
        length = (tag >> 2) + 1
        if tag & 3 == LITERAL:
            if length > LONGEST_INLINE_LITERAL:
                extra = length - LONGEST_INLINE_LITERAL
                if extra > size - pos:
                    return False
                length = <Py_ssize_t> load_little(block + pos, extra) + 1
                pos += extra
            if length > size - pos or length > end - made:
                return False
            if length <= 16 and size - pos >= 16:
                memcpy(out + made, block + pos, 16)
            else:
                memcpy(out + made, block + pos, <size_t> length)
            pos += length
        else:
            extra = 1 if tag & 3 == COPY_1 else 2 if tag & 3 == COPY_2 else 4
            if extra > size - pos:
                return False
            offset = <Py_ssize_t> load_little(block + pos, extra)
            pos += extra
            if extra == 1:
                offset |= <Py_ssize_t> (tag >> 5) << 8
                length = ((tag >> 2) & 7) + 4
            if offset <= 0 or offset > made or length > end - made:
                return False
            copy_back(out + made, offset, length)
        made += length
    return made == end
