"""Inline leaf functions that read the fields of a request frame without the interpreter lock; they *borrow*.

`failed` is set when a cursor reaches the end of the frame, or a field that the gate leaves to Python. From that moment
its values are meaningless and its position does not advance. A caller tests `failed` once, before it uses a pointer.
"""
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t

from kafkapy._core.bytes.primitives cimport load_int16, load_int32, load_int64, read_unsigned_varint

cdef struct FrameCursor:
    const uint8_t *data
    Py_ssize_t pos
    Py_ssize_t end
    bint failed


cdef inline bint cursor_has(FrameCursor *cursor, Py_ssize_t count) noexcept nogil:
    if count < 0 or count > cursor.end - cursor.pos:
        cursor.failed = True
    return not cursor.failed


cdef inline int8_t take_int8(FrameCursor *cursor) noexcept nogil:
    if not cursor_has(cursor, 1):
        return 0
    cursor.pos += 1
    return <int8_t> cursor.data[cursor.pos - 1]


cdef inline int16_t take_int16(FrameCursor *cursor) noexcept nogil:
    if not cursor_has(cursor, 2):
        return 0
    cursor.pos += 2
    return load_int16(cursor.data + cursor.pos - 2)


cdef inline int32_t take_int32(FrameCursor *cursor) noexcept nogil:
    if not cursor_has(cursor, 4):
        return 0
    cursor.pos += 4
    return load_int32(cursor.data + cursor.pos - 4)


cdef inline int64_t take_int64(FrameCursor *cursor) noexcept nogil:
    if not cursor_has(cursor, 8):
        return 0
    cursor.pos += 8
    return load_int64(cursor.data + cursor.pos - 8)


cdef inline uint32_t take_unsigned_varint(FrameCursor *cursor) noexcept nogil:
    cdef uint32_t value = 0
    cdef Py_ssize_t pos
    if cursor.failed:
        return 0
    pos = read_unsigned_varint(cursor.data, cursor.pos, cursor.end, &value)
    if pos < 0:
        cursor.failed = True
        return 0
    cursor.pos = pos
    return value


cdef inline const uint8_t *take_bytes(FrameCursor *cursor, Py_ssize_t count) noexcept nogil:
    if not cursor_has(cursor, count):
        return NULL
    cursor.pos += count
    return cursor.data + cursor.pos - count


cdef inline int32_t take_length(FrameCursor *cursor, bint flexible) noexcept nogil:
    """Returns the length of an array or of bytes, -1 for null. With `flexible` the length has the compact encoding."""
    if flexible:
        return <int32_t> (take_unsigned_varint(cursor) - 1)
    return take_int32(cursor)


cdef inline int32_t take_string_length(FrameCursor *cursor, bint flexible) noexcept nogil:
    if flexible:
        return <int32_t> (take_unsigned_varint(cursor) - 1)
    return take_int16(cursor)


cdef inline void expect_no_tags(FrameCursor *cursor, bint flexible) noexcept nogil:
    """Skips an empty tag section if `flexible`; sets `failed` if the section has tagged fields."""
    if flexible and take_unsigned_varint(cursor) != 0:
        cursor.failed = True


cdef inline void skip_plain_string(FrameCursor *cursor, int32_t length) noexcept nogil:
    """Skips an ASCII string of at most 255 bytes, or null; sets `failed` for any other string."""
    cdef const uint8_t *at
    cdef int32_t index
    if length < -1 or length > 255:
        cursor.failed = True
    elif length > 0:
        at = take_bytes(cursor, length)
        if at != NULL:
            for index in range(length):
                if at[index] >= 0x80:
                    cursor.failed = True


cdef struct RequestHead:
    int16_t api_key
    int16_t version
    int32_t correlation_id


cdef inline void take_head(FrameCursor *cursor, RequestHead *head) noexcept nogil:
    head.api_key = take_int16(cursor)
    head.version = take_int16(cursor)
    head.correlation_id = take_int32(cursor)
