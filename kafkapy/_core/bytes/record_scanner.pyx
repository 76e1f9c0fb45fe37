"""Record scanner: validates records without storing them, and finds their largest timestamp.

The records are in one buffer, or arrive as a stream of chunks. The scanner of a stream is a state machine over bytes,
which stores a few integers and no data, so that a decompression bomb costs time but no memory.
"""
from kafkapy._core.bytes.batch_layout cimport NO_TIMESTAMP
from kafkapy._core.bytes.primitives cimport read_varint, read_varlong

cdef enum:
    AT_LENGTH
    AT_ATTRIBUTES
    AT_TIMESTAMP_DELTA
    AT_OFFSET_DELTA
    AT_KEY_LENGTH
    AT_VALUE_LENGTH
    AT_HEADER_COUNT
    AT_HEADER_KEY_LENGTH
    AT_HEADER_VALUE_LENGTH


cdef void prepare_result(RecordCheck *check) noexcept nogil:
    check.max_timestamp = NO_TIMESTAMP
    check.index_of_max_timestamp = -1
    check.error_count = 0
    check.timestamp_error_count = 0


cdef inline void note_record(RecordCheck *check, int32_t index, bint has_key, int64_t timestamp) noexcept nogil:
    """Checks that a well-formed record has a key if required, and an allowed timestamp (ms).

    Notes the largest timestamp. `index` is the record's index in the batch. Adds at most one error to `check`; a
    missing key is checked first.
    """
    cdef int kind = 0
    if check.has_log_append_time:
        timestamp = check.log_append_time
    if check.keys_required and not has_key:
        kind = KEY_MISSING
    elif check.timestamps_checked and timestamp != NO_TIMESTAMP:
        if timestamp < check.lowest_timestamp or timestamp > check.highest_timestamp:
            kind = TIMESTAMP_OUT_OF_RANGE
    elif check.has_log_append_time:
        kind = TIMESTAMP_TYPE_FORBIDDEN
    if timestamp > check.max_timestamp:
        check.max_timestamp = timestamp
        check.index_of_max_timestamp = index
    if kind:
        if check.error_count < RECORD_ERRORS_KEPT:
            check.errors[check.error_count].index = index
            check.errors[check.error_count].kind = kind
            check.errors[check.error_count].timestamp = timestamp
        check.error_count += 1
        if kind != KEY_MISSING:
            check.timestamp_error_count += 1


cdef inline int64_t added(int64_t base, int64_t delta) noexcept nogil:
    """Returns the sum of a base timestamp and a delta. The sum wraps around on overflow, as in Kafka."""
    return <int64_t>(<uint64_t>base + <uint64_t>delta)


cdef inline Py_ssize_t pass_bytes(const uint8_t *buf, Py_ssize_t pos, Py_ssize_t end, int32_t *length) noexcept nogil:
    """Skips a length and that number of bytes; returns the new position, or -1 if the bytes end early.

    Sets `length`, which is negative for null.
    """
    pos = read_varint(buf, pos, end, length)
    if pos < 0 or length[0] > end - pos:
        return -1
    return pos + max(length[0], 0)


cdef int check_record(const uint8_t *buf, Py_ssize_t pos, Py_ssize_t end, int32_t index,
                      RecordCheck *check) noexcept nogil:
    """Checks the record in `buf[pos:end]`, whose length prefix is before `pos`; `index` is its index in the batch.

    Returns RECORDS_OK, or a RECORD_ status if the record is malformed. A missing key, or a timestamp that is not
    allowed, does not change the result: the error is added to `check`.
    """
    cdef int64_t timestamp_delta = 0
    cdef int32_t offset_delta = 0, key_length = 0, length = 0, headers = 0
    if pos >= end:
        return RECORD_MALFORMED
    pos = read_varlong(buf, pos + 1, end, &timestamp_delta)
    if pos >= 0:
        pos = read_varint(buf, pos, end, &offset_delta)
    if pos >= 0:
        pos = pass_bytes(buf, pos, end, &key_length)
    if pos >= 0:
        pos = pass_bytes(buf, pos, end, &length)
    if pos >= 0:
        pos = read_varint(buf, pos, end, &headers)
    if pos < 0 or headers < 0 or headers > end - pos:
        return RECORD_MALFORMED
    while headers:
        pos = pass_bytes(buf, pos, end, &length)
        if pos < 0 or length < 0:
            return RECORD_MALFORMED
        pos = pass_bytes(buf, pos, end, &length)
        if pos < 0:
            return RECORD_MALFORMED
        headers -= 1
    if pos != end:
        return RECORD_MALFORMED
    if offset_delta != index:
        return RECORD_BAD_OFFSET_DELTA
    note_record(check, index, key_length >= 0, added(check.base_timestamp, timestamp_delta))
    return RECORDS_OK


cdef int check_records(const uint8_t *buf, Py_ssize_t pos, Py_ssize_t end, RecordCheck *check) noexcept nogil:
    cdef int32_t index, length = 0
    cdef Py_ssize_t at
    cdef int status
    prepare_result(check)
    for index in range(check.count):
        at = pos
        pos = read_varint(buf, at, end, &length)
        if pos < 0:
            return RECORD_BAD_LENGTH if end - at >= 5 else RECORDS_CUT_SHORT
        if length < 0 or length > end - pos:
            return RECORDS_CUT_SHORT
        status = check_record(buf, pos, pos + length, index, check)
        if status != RECORDS_OK:
            return status
        pos += length
    return RECORDS_OK if pos == end else RECORDS_LEFT_OVER


cdef void start_records(RecordStream *stream, RecordCheck *check) noexcept nogil:
    prepare_result(check)
    stream.check = check
    stream.state = AT_LENGTH
    stream.index = 0
    stream.left = 0
    stream.skip = 0
    stream.headers_left = 0
    stream.varint = 0
    stream.shift = 0


cdef int end_record(RecordStream *stream) noexcept nogil:
    if stream.left != 0:
        return RECORD_MALFORMED
    stream.state = AT_LENGTH
    stream.index += 1
    return RECORDS_OK


cdef int skip_body(RecordStream *stream, int64_t length, int next_state) noexcept nogil:
    if length > stream.left:
        return RECORD_MALFORMED
    stream.skip = max(length, <int64_t>0)
    stream.left -= stream.skip
    stream.state = next_state
    return RECORDS_OK


cdef int take_number(RecordStream *stream, int64_t number) noexcept nogil:
    """Handles a varint that has been read completely; `stream.state` names the field of the record that it belongs to.

    Returns RECORDS_OK, or a RECORDS_ or RECORD_ status if the number is not allowed there.
    """
    cdef int status
    cdef int state = stream.state
    if state == AT_LENGTH:
        if number < 1:
            return RECORDS_CUT_SHORT if number < 0 else RECORD_MALFORMED
        stream.left = number
        stream.state = AT_ATTRIBUTES
    elif state == AT_TIMESTAMP_DELTA:
        stream.timestamp = added(stream.check.base_timestamp, number)
        stream.state = AT_OFFSET_DELTA
    elif state == AT_OFFSET_DELTA:
        if number != stream.index:
            return RECORD_BAD_OFFSET_DELTA
        stream.state = AT_KEY_LENGTH
    elif state == AT_KEY_LENGTH:
        note_record(stream.check, stream.index, number >= 0, stream.timestamp)
        return skip_body(stream, number, AT_VALUE_LENGTH)
    elif state == AT_VALUE_LENGTH:
        return skip_body(stream, number, AT_HEADER_COUNT)
    elif state == AT_HEADER_COUNT:
        if number < 0 or number > stream.left:
            return RECORD_MALFORMED
        if number == 0:
            return end_record(stream)
        stream.headers_left = <int32_t>number
        stream.state = AT_HEADER_KEY_LENGTH
    elif state == AT_HEADER_KEY_LENGTH:
        return RECORD_MALFORMED if number < 0 else skip_body(stream, number, AT_HEADER_VALUE_LENGTH)
    else:
        status = skip_body(stream, number, AT_HEADER_KEY_LENGTH)
        stream.headers_left -= 1
        if status == RECORDS_OK and stream.headers_left == 0:
            return end_record(stream)
        return status
    return RECORDS_OK


cdef int take_byte(RecordStream *stream, uint8_t byte) noexcept nogil:
    """Handles one byte that belongs neither to a key nor to a value.

    Returns RECORDS_OK, or a RECORDS_ or RECORD_ status if the byte is not allowed there.
    """
    cdef uint64_t raw
    cdef bint wide = stream.state == AT_TIMESTAMP_DELTA
    if stream.state != AT_LENGTH:
        if stream.left == 0:
            return RECORD_MALFORMED
        stream.left -= 1
    elif stream.index == stream.check.count:
        return RECORDS_LEFT_OVER
    if stream.state == AT_ATTRIBUTES:
        stream.state = AT_TIMESTAMP_DELTA
        return RECORDS_OK
    if byte > 0x0f and stream.shift == 28 and not wide or byte > 0x01 and stream.shift == 63:
        return RECORD_MALFORMED
    stream.varint |= <uint64_t>(byte & 0x7f) << stream.shift
    if byte >= 0x80:
        stream.shift += 7
        return RECORDS_OK
    raw = stream.varint
    stream.varint = 0
    stream.shift = 0
    return take_number(stream, <int64_t>((raw >> 1) ^ (0 - (raw & 1))))


cdef inline Py_ssize_t pass_whole_record(RecordStream *stream, const uint8_t *chunk, Py_ssize_t pos,
                                         Py_ssize_t end) noexcept nogil:
    """Returns the end of the record at `pos` if the chunk contains the whole record and it is valid; otherwise 0.

    If the result is 0, the caller has to pass the record byte by byte to the state machine. The state machine also
    accepts valid records that this function does not accept, because they are only partly in the chunk.
    """
    cdef int32_t size = 0
    cdef Py_ssize_t start = read_varint(chunk, pos, end, &size)
    if start < 0 or size < 1 or size > end - start:
        return 0
    if check_record(chunk, start, start + size, stream.index, stream.check) != RECORDS_OK:
        return 0
    stream.index += 1
    return start + size


cdef int feed_records(RecordStream *stream, const uint8_t *chunk, Py_ssize_t length) noexcept nogil:
    cdef Py_ssize_t pos = 0, passed
    cdef int status
    while pos < length:
        if stream.skip:
            passed = <Py_ssize_t>min(stream.skip, <int64_t>(length - pos))
            stream.skip -= passed
            pos += passed
            continue
        if stream.state == AT_LENGTH and stream.shift == 0 and stream.index < stream.check.count:
            passed = pass_whole_record(stream, chunk, pos, length)
            if passed:
                pos = passed
                continue
        status = take_byte(stream, chunk[pos])
        if status != RECORDS_OK:
            return status
        pos += 1
    return RECORDS_OK


cdef int finish_records(RecordStream *stream) noexcept nogil:
    if stream.state == AT_LENGTH and stream.shift == 0 and stream.skip == 0 and stream.index == stream.check.count:
        return RECORDS_OK
    return RECORDS_CUT_SHORT
