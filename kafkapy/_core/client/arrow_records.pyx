"""Copies a batch's records into Arrow columns in one pass. record_scanner.pxd describes the layout of a record."""

from libc.stdint cimport INT64_MAX, INT64_MIN, uint64_t
from libc.string cimport memcpy

from kafkapy._core.bytes.arrow_columns cimport (
    COLUMN_OK, COLUMN_FULL, offsets_of, reserve_data, reserve_rows, set_valid)
from kafkapy._core.bytes.primitives cimport read_varint, read_varlong

cdef enum:
    SMALLEST_HEADER = 2                  # bytes
    REPLACEMENT_BYTES = 3                # of U+FFFD in UTF-8


cdef inline Py_ssize_t pass_varint(const uint8_t *buf, Py_ssize_t pos, Py_ssize_t end, int32_t *value) noexcept nogil:
    """Reads a varint at `pos` into `value`; returns the position after it, or a negative number if it is malformed.

    It does the same as `read_varint`, but is faster for a varint of one byte, which is the usual case.
    """
    if pos < end and buf[pos] < 0x80:
        value[0] = (buf[pos] >> 1) ^ -<int32_t>(buf[pos] & 1)
        return pos + 1
    return read_varint(buf, pos, end, value)


cdef inline int64_t scaled(int64_t timestamp, int64_t factor) noexcept nogil:
    """Returns the timestamp in the column's unit, ms multiplied by `factor` (1 or 1000).

    A timestamp that overflows becomes the least or greatest int64.
    """
    if factor == 1:
        return timestamp
    if timestamp > INT64_MAX // 1000:
        return INT64_MAX
    if timestamp < -(INT64_MAX // 1000):
        return INT64_MIN
    return timestamp * 1000


cdef inline void put_bytes(ArrowColumn *column, int64_t row, const uint8_t *data, int64_t size) noexcept nogil:
    """Writes a value of `size` bytes to a row of the column; a negative size means null. The memory must be reserved.
    """
    cdef int32_t *offsets = offsets_of(column)
    cdef int32_t at = offsets[row]
    if size >= 0:
        memcpy(column.data + at, data, <size_t>size)
        set_valid(column, row)
        at += <int32_t>size
    offsets[row + 1] = at


cdef inline int64_t bytes_of(const ArrowColumn *column, int64_t rows) noexcept nogil:
    return 0 if column == NULL else offsets_of(column)[rows]


cdef int64_t bytes_in(const RecordColumns *columns) noexcept nogil:
    """Returns the number of bytes of all keys, values and headers in the columns."""
    cdef int64_t total = bytes_of(columns.key, columns.rows) + bytes_of(columns.value, columns.rows)
    cdef const ArrowColumn *pair
    cdef int64_t headers
    if columns.headers != NULL:
        pair = columns.headers.children[0]
        headers = offsets_of(columns.headers)[columns.rows]
        total += bytes_of(pair.children[0], headers) + bytes_of(pair.children[1], headers)
    return total


cdef int row_status(int status) noexcept nogil:
    if status == COLUMN_OK:
        return ROWS_OK
    return ROWS_FULL if status == COLUMN_FULL else ROWS_NO_MEMORY


cdef int reserve(RecordColumns *columns, int64_t rows, int64_t bytes) noexcept nogil:
    """Reserves memory for `rows` rows whose keys and values have at most `bytes` bytes together.

    Returns ROWS_OK, ROWS_FULL or ROWS_NO_MEMORY.
    """
    cdef int64_t at = columns.rows
    cdef int status = COLUMN_OK
    if at and bytes_in(columns) + bytes > columns.byte_limit:
        return ROWS_FULL
    if columns.key != NULL:
        status = max(status, reserve_rows(columns.key, at, rows), reserve_data(columns.key, at, bytes))
    if columns.value != NULL:
        status = max(status, reserve_rows(columns.value, at, rows), reserve_data(columns.value, at, bytes))
    if columns.topic != NULL:
        status = max(status, reserve_rows(columns.topic, at, rows),
                     reserve_data(columns.topic, at, rows * columns.topic_size))
    if columns.partition != NULL:
        status = max(status, reserve_rows(columns.partition, at, rows))
    if columns.offset != NULL:
        status = max(status, reserve_rows(columns.offset, at, rows))
    if columns.timestamp != NULL:
        status = max(status, reserve_rows(columns.timestamp, at, rows))
    if columns.timestamp_type != NULL:
        status = max(status, reserve_rows(columns.timestamp_type, at, rows))
    if columns.headers != NULL:
        status = max(status, reserve_rows(columns.headers, at, rows))
    return row_status(status)


cdef int reserve_row(RecordColumns *columns, int64_t bytes) noexcept nogil:
    return reserve(columns, 1, bytes)


cdef void put_row(RecordColumns *columns, int64_t offset, int64_t timestamp, const uint8_t *key, int64_t key_size,
                  const uint8_t *value, int64_t value_size) noexcept nogil:
    cdef int64_t row = columns.rows
    if columns.key != NULL:
        put_bytes(columns.key, row, key, key_size)
    if columns.value != NULL:
        put_bytes(columns.value, row, value, value_size)
    if columns.headers != NULL:
        offsets_of(columns.headers)[row + 1] = offsets_of(columns.headers)[row]
    put_numbers(columns, row, offset, timestamp)
    columns.rows = row + 1


cdef inline void put_numbers(RecordColumns *columns, int64_t row, int64_t offset, int64_t timestamp) noexcept nogil:
    if columns.offset != NULL:
        (<int64_t *>columns.offset.values)[row] = offset
    if columns.timestamp != NULL:
        (<int64_t *>columns.timestamp.values)[row] = scaled(timestamp, columns.timestamp_factor)


cdef int put_records(RecordColumns *columns, RecordSpan *span, int64_t *next_offset,
                     int64_t until_offset) noexcept nogil:
    cdef const uint8_t *buf = span.buf
    cdef Py_ssize_t at, end
    cdef int32_t length = 0, offset_delta = 0
    cdef int64_t timestamp_delta = 0, offset
    cdef int status = reserve(columns, min(span.remaining, columns.row_limit - columns.rows), span.end - span.pos)
    if status != ROWS_OK:
        return status
    while span.remaining > 0 and columns.rows < columns.row_limit:
        at = pass_varint(buf, span.pos, span.end, &length)
        if at < 0 or length < 1 or length > span.end - at:
            return ROWS_DAMAGED
        end = at + length
        at = read_varlong(buf, at + 1, end, &timestamp_delta)
        if at >= 0:
            at = pass_varint(buf, at, end, &offset_delta)
        if at < 0:
            return ROWS_DAMAGED
        offset = <int64_t>(<uint64_t>span.base_offset + <uint64_t><int64_t>offset_delta)
        if offset >= until_offset:
            return ROWS_REACHED_END
        if offset >= next_offset[0]:
            status = put_fields(columns, buf, at, end)
            if status != ROWS_OK:
                return status
            put_numbers(
                columns, columns.rows, offset, span.log_append_time if span.has_log_append_time
                else <int64_t>(<uint64_t>span.base_timestamp + <uint64_t>timestamp_delta))
            columns.rows += 1
            next_offset[0] = offset + 1
        span.pos = end
        span.remaining -= 1
    return ROWS_OK


cdef inline int put_fields(RecordColumns *columns, const uint8_t *buf, Py_ssize_t pos, Py_ssize_t end) noexcept nogil:
    """Copies the key, the value and the headers of a record to their columns; skips a column that is not requested.

    The length of the record's key is at `pos`, and the record ends at `end`. Returns ROWS_OK, or another ROWS_ status
    if the record cannot be copied, for example because it is damaged.
    """
    cdef int32_t length = 0
    if columns.key == NULL and columns.value == NULL and columns.headers == NULL:
        return ROWS_OK
    pos = pass_varint(buf, pos, end, &length)
    if pos < 0 or length > end - pos:
        return ROWS_DAMAGED
    if columns.key != NULL:
        put_bytes(columns.key, columns.rows, buf + pos, length)
    if columns.value == NULL and columns.headers == NULL:
        return ROWS_OK
    pos = pass_varint(buf, pos + max(length, 0), end, &length)
    if pos < 0 or length > end - pos:
        return ROWS_DAMAGED
    if columns.value != NULL:
        put_bytes(columns.value, columns.rows, buf + pos, length)
    pos = pass_varint(buf, pos + max(length, 0), end, &length)
    if pos < 0 or length < 0 or length > (end - pos) // SMALLEST_HEADER or length == 0 and pos != end:
        return ROWS_DAMAGED
    return ROWS_OK if columns.headers == NULL else put_headers(columns.headers, columns.rows, buf, pos, end, length)


cdef int put_headers(ArrowColumn *headers, int64_t row, const uint8_t *buf, Py_ssize_t pos, Py_ssize_t end,
                     int32_t count) noexcept nogil:
    """Copies the `count` headers of a record, which must end at `end`; the row of a record without headers is null.

    Returns ROWS_OK, or another ROWS_ status if the headers cannot be copied, for example because they are damaged.
    """
    cdef ArrowColumn *pair = headers.children[0]
    cdef ArrowColumn *name = pair.children[0]
    cdef ArrowColumn *content = pair.children[1]
    cdef int64_t first = offsets_of(headers)[row], at
    cdef int32_t length = 0
    cdef int status = max(reserve_rows(pair, first, count), reserve_rows(name, first, count),
                          reserve_rows(content, first, count), reserve_data(content, first, end - pos))
    if status == COLUMN_OK:
        status = reserve_data(name, first, <int64_t>(end - pos) * REPLACEMENT_BYTES)
    if status != COLUMN_OK:
        return row_status(status)
    for at in range(first, first + count):
        pos = pass_varint(buf, pos, end, &length)
        if pos < 0 or length < 0 or length > end - pos:
            return ROWS_DAMAGED
        put_text(name, at, buf + pos, length)
        pos = pass_varint(buf, pos + length, end, &length)
        if pos < 0 or length > end - pos:
            return ROWS_DAMAGED
        put_bytes(content, at, buf + pos, length)
        pos += max(length, 0)
    if pos != end:
        return ROWS_DAMAGED
    offsets_of(headers)[row + 1] = <int32_t>(first + count)
    if count:
        set_valid(headers, row)
    return ROWS_OK


cdef void put_text(ArrowColumn *column, int64_t row, const uint8_t *data, Py_ssize_t size) noexcept nogil:
    """Copies `size` bytes as text to a row of the column; each byte that is not valid UTF-8 becomes U+FFFD.

    The caller has reserved memory for three times the size.
    """
    cdef int32_t *offsets = offsets_of(column)
    cdef uint8_t *out = column.data + offsets[row]
    cdef Py_ssize_t pos = 0, length
    while pos < size:
        length = character_length(data + pos, size - pos)
        if length:
            memcpy(out, data + pos, <size_t>length)
            out += length
            pos += length
        else:
            out[0], out[1], out[2] = 0xef, 0xbf, 0xbd
            out += REPLACEMENT_BYTES
            pos += 1
    offsets[row + 1] = <int32_t>(out - column.data)


cdef inline bint continues(uint8_t byte) noexcept nogil:
    return byte & 0xc0 == 0x80


cdef Py_ssize_t character_length(const uint8_t *at, Py_ssize_t size) noexcept nogil:
    """Returns the length in bytes of the UTF-8 character at `at` (RFC 3629, 4); 0 if it is invalid."""
    cdef uint8_t first = at[0]
    if first < 0x80:
        return 1
    if first < 0xc2 or first > 0xf4 or size < 2 or not continues(at[1]):
        return 0
    if first < 0xe0:
        return 2
    # It must not be overlong, a surrogate, or beyond U+10FFFF.
    if first == 0xe0 and at[1] < 0xa0 or first == 0xed and at[1] > 0x9f:
        return 0
    if first == 0xf0 and at[1] < 0x90 or first == 0xf4 and at[1] > 0x8f:
        return 0
    if size < 3 or not continues(at[2]):
        return 0
    if first < 0xf0:
        return 3
    return 4 if size > 3 and continues(at[3]) else 0


cdef void put_constants(RecordColumns *columns, int64_t first, const uint8_t *topic, int32_t partition,
                        int32_t timestamp_type) noexcept nogil:
    cdef int64_t row
    if columns.topic != NULL:
        for row in range(first, columns.rows):
            memcpy(columns.topic.data + offsets_of(columns.topic)[row], topic, <size_t>columns.topic_size)
            offsets_of(columns.topic)[row + 1] = offsets_of(columns.topic)[row] + <int32_t>columns.topic_size
    if columns.partition != NULL:
        for row in range(first, columns.rows):
            (<int32_t *>columns.partition.values)[row] = partition
    if columns.timestamp_type != NULL:
        for row in range(first, columns.rows):
            (<int32_t *>columns.timestamp_type.values)[row] = timestamp_type
