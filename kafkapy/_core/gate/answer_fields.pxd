"""Fields that the gate's answers have in common."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from kafkapy._core.bytes.primitives cimport store_int32, write_unsigned_varlong


cdef inline Py_ssize_t put_length(uint8_t *at, Py_ssize_t pos, int64_t length, bint flexible) noexcept nogil:
    """Writes the length of an array or of bytes (-1: null) and returns the position after it."""
    if flexible:
        return write_unsigned_varlong(at, pos, <uint64_t> (length + 1))
    store_int32(at + pos, <int32_t> length)
    return pos + 4


cdef inline Py_ssize_t put_tags(uint8_t *at, Py_ssize_t pos, bint flexible) noexcept nogil:
    """Writes empty tagged fields, if the version is flexible, and returns the position after them."""
    if flexible:
        at[pos] = 0
        return pos + 1
    return pos
