"""Validates batches and their records in one native pass.

The rules and the error codes are those of Apache Kafka 4.3.0 for the same bytes (tests/wire/test_batches_*). Two rules
are stricter on purpose. Offset deltas other than 0, 1, 2, ... get INVALID_RECORD, compressed or not; Kafka stores such
batches if they are not compressed, and responds with UNKNOWN_SERVER_ERROR if they are. The decompressed size of a batch
is limited to 256 MiB, or 64 times `max_message_bytes` if that is more; a larger batch gets MESSAGE_TOO_LARGE.
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT64_MAX, INT64_MIN, int16_t, uint32_t

from kafkapy._core.bytes.batch_layout cimport (
    ATTRIBUTES_AT, BASE_OFFSET_AT, BATCH_OVERHEAD, CONTROL_FLAG, CRC_AT, DELETE_HORIZON_FLAG, HEADER_BAD_LENGTH,
    HEADER_BAD_MAGIC, HEADER_INCOMPLETE, HEADER_OK, HEADER_OLD_MAGIC, LEADER_EPOCH_AT, LOG_APPEND_TIME_FLAG,
    MAX_TIMESTAMP_AT, TRANSACTIONAL_FLAG, last_sequence_of, parse_batch_header)
from kafkapy._core.bytes.codecs cimport CODEC_MASK, LARGEST_CODEC
from kafkapy._core.bytes.crc32c cimport crc32c_update
from kafkapy._core.bytes.primitives cimport (
    load_int16, load_int64, store_int16, store_int32, store_int64, store_uint32)
from kafkapy._core.bytes.record_scanner cimport (
    KEY_MISSING, RECORD_BAD_LENGTH, RECORD_BAD_OFFSET_DELTA, RECORD_ERRORS_KEPT, RECORD_MALFORMED, RECORDS_CUT_SHORT,
    RECORDS_LEFT_OVER, RECORDS_OK, TIMESTAMP_OUT_OF_RANGE, RecordStream, check_records, feed_records, finish_records,
    start_records)
from kafkapy._core.bytes.codec_functions import find_codec_functions
from kafkapy._core.bytes.compression import DecompressionError, decompress_chunks
from kafkapy.errors import ApiError, Error

cdef enum:
    SMALLEST_DECOMPRESSED_LIMIT = 256 * 1024 * 1024
    DECOMPRESSED_FACTOR = 64

STATUS_ERRORS = {
    RECORDS_CUT_SHORT: (Error.INVALID_RECORD, "Incorrect declared batch size, premature EOF reached"),
    RECORDS_LEFT_OVER: (Error.INVALID_RECORD, "Incorrect declared batch size, records still remaining in file"),
    RECORD_BAD_LENGTH: (Error.UNKNOWN_SERVER_ERROR, "The length of a record is not a varint of 32 bits"),
    RECORD_MALFORMED: (Error.INVALID_RECORD, "Found invalid record structure"),
    RECORD_BAD_OFFSET_DELTA: (Error.INVALID_RECORD, "The offset deltas of the records are not 0, 1, 2, ..."),
    BATCH_BAD_BASE_OFFSET: (Error.INVALID_RECORD, "The base offset of a record batch from a client must be 0"),
    BATCH_TOO_LARGE: (Error.MESSAGE_TOO_LARGE, "The record batch is larger than max.message.bytes"),
    BATCH_BAD_CRC: (Error.CORRUPT_MESSAGE, "The record batch does not match its CRC"),
    BATCH_BAD_COUNT: (Error.INVALID_RECORD, "The record count does not fit the last offset delta of the record batch"),
    BATCH_IS_CONTROL: (Error.INVALID_RECORD, "Clients are not allowed to write control records"),
    BATCH_BAD_SEQUENCE: (Error.INVALID_RECORD, "Invalid sequence number in a record batch with producer id"),
    BATCH_BAD_CODEC: (Error.UNKNOWN_SERVER_ERROR, "Unknown compression type"),
}


class RecordValidationError(ApiError):
    """The error that some records of a batch are refused.

    `record_errors` lists pairs (index in the batch, message), as in KIP-467, for at most 256 records.
    """

    def __init__(self, error, message, record_errors):
        super().__init__(error, message)
        self.record_errors = record_errors


cdef bint crc_is_valid(const uint8_t *buf, const BatchHeader *header) noexcept nogil:
    return header.crc == crc32c_update(0, buf + header.position + ATTRIBUTES_AT, <size_t>(header.size - ATTRIBUTES_AT))


cdef int check_batch(const uint8_t *buf, const BatchHeader *header, const BatchLimits *limits) noexcept nogil:
    """Checks the header of a batch, and its checksum; returns 0, or the BATCH_ status of the first fault.

    The checks have the same order as in Kafka, since the first fault decides the error code.
    """
    if limits.from_client and header.base_offset != 0:
        return BATCH_BAD_BASE_OFFSET
    if header.size > limits.max_message_bytes:
        return BATCH_TOO_LARGE
    if not crc_is_valid(buf, header):
        return BATCH_BAD_CRC
    if header.attributes & CODEC_MASK > LARGEST_CODEC:
        return BATCH_BAD_CODEC
    if header.record_count <= 0 or header.last_offset_delta != header.record_count - 1:
        return BATCH_BAD_COUNT
    if limits.from_client and header.attributes & CONTROL_FLAG:
        return BATCH_IS_CONTROL
    if header.producer_id >= 0 and header.base_sequence < 0 and not header.attributes & CONTROL_FLAG:
        return BATCH_BAD_SEQUENCE
    return RECORDS_OK


cdef void prepare_check(RecordCheck *check, const BatchHeader *header, const BatchLimits *limits,
                        int64_t wall_ms) noexcept nogil:
    check.count = header.record_count
    check.base_timestamp = header.base_timestamp
    check.has_log_append_time = (header.attributes & LOG_APPEND_TIME_FLAG) != 0
    check.log_append_time = header.max_timestamp
    check.keys_required = limits.compacted
    check.timestamps_checked = not limits.log_append_time
    # Both limits are 0 or more, so only one side of each can overflow.
    check.lowest_timestamp = INT64_MIN if wall_ms < INT64_MIN + limits.before_max_ms else wall_ms - limits.before_max_ms
    check.highest_timestamp = INT64_MAX if wall_ms > INT64_MAX - limits.after_max_ms else wall_ms + limits.after_max_ms


cdef void assign_in_place(uint8_t *batch, int64_t size, int64_t base_offset, int32_t leader_epoch,
                          int64_t max_timestamp, int64_t log_append_time_ms) noexcept nogil:
    cdef int16_t attributes = load_int16(batch + ATTRIBUTES_AT), wanted = attributes
    if log_append_time_ms >= 0:
        wanted |= LOG_APPEND_TIME_FLAG
        max_timestamp = log_append_time_ms
    else:
        wanted &= ~LOG_APPEND_TIME_FLAG
    store_int64(batch + BASE_OFFSET_AT, base_offset)
    store_int32(batch + LEADER_EPOCH_AT, leader_epoch)
    if wanted == attributes and max_timestamp == load_int64(batch + MAX_TIMESTAMP_AT):
        return
    store_int16(batch + ATTRIBUTES_AT, wanted)
    store_int64(batch + MAX_TIMESTAMP_AT, max_timestamp)
    store_uint32(batch + CRC_AT, crc32c_update(0, batch + ATTRIBUTES_AT, <size_t>(size - ATTRIBUTES_AT)))


cdef class BatchSummary:
    """The header fields of one batch. Only `assign_offsets` changes them: offsets, leader epoch and timestamps."""

    def __init__(self):
        raise TypeError("batch summaries come from validate_batches and scan_batches")

    @staticmethod
    cdef BatchSummary of(const BatchHeader *header, int64_t position):
        cdef BatchSummary summary = BatchSummary.__new__(BatchSummary)
        summary.header = header[0]
        summary.position = position
        summary.assigned_base_offset = header.base_offset
        summary.max_timestamp = header.max_timestamp
        summary.offset_of_max_timestamp = header.base_offset + header.last_offset_delta
        return summary

    @property
    def size(self):
        return self.header.size

    @property
    def base_offset(self):
        return self.assigned_base_offset

    @property
    def last_offset(self):
        return self.assigned_base_offset + self.header.last_offset_delta

    @property
    def next_offset(self):
        return self.assigned_base_offset + self.header.last_offset_delta + 1

    @property
    def record_count(self):
        return self.header.record_count

    @property
    def magic(self):
        return self.header.magic

    @property
    def base_timestamp(self):
        return self.header.base_timestamp

    @property
    def compression(self):
        return self.header.attributes & CODEC_MASK

    @property
    def attributes(self):
        return self.header.attributes

    @property
    def producer_id(self):
        return self.header.producer_id

    @property
    def producer_epoch(self):
        return self.header.producer_epoch

    @property
    def base_sequence(self):
        return self.header.base_sequence

    @property
    def last_sequence(self):
        return last_sequence_of(&self.header)

    @property
    def is_transactional(self):
        return (self.header.attributes & TRANSACTIONAL_FLAG) != 0

    @property
    def is_control(self):
        return (self.header.attributes & CONTROL_FLAG) != 0

    @property
    def has_delete_horizon(self):
        return (self.header.attributes & DELETE_HORIZON_FLAG) != 0

    @property
    def partition_leader_epoch(self):
        return self.header.partition_leader_epoch

    def __repr__(self):
        return (f"BatchSummary(position={self.position}, size={self.size}, base_offset={self.base_offset}, "
                f"last_offset={self.last_offset}, record_count={self.record_count})")


def validate_batches(buffer, *, int32_t max_message_bytes, int64_t wall_ms, bint stamps_append_time,
                     int64_t before_max_ms, int64_t after_max_ms, bint compacted, bint from_client=True,
                     topic_partition=None):
    """Validates the batches of one partition of a produce request; returns a BatchSummary of each.

    `wall_ms` is the present time. A record's timestamp may be at most `before_max_ms` earlier than this time, and at
    most `after_max_ms` later. If `stamps_append_time` is set, timestamps are not checked, because the time of the
    append replaces them. In a `compacted` topic each record needs a key. If `from_client` is set, a batch must have the
    base offset 0 and must not be a control batch. Error messages name `topic_partition`. Bytes of an incomplete batch
    at the end are ignored, as in Kafka; the last summary shows where the valid bytes end. Raises ApiError with Kafka's
    code if a batch is invalid, or if a client sends no batch. *Borrows* the buffer; thread-safe.
    """
    cdef BatchLimits limits
    cdef BatchHeader header
    cdef Py_buffer view
    cdef Py_ssize_t pos = 0
    cdef int status
    if before_max_ms < 0 or after_max_ms < 0:
        raise ValueError("the limits of timestamps are 0 or more")
    limits.max_message_bytes = max_message_bytes
    limits.from_client = from_client
    limits.log_append_time = stamps_append_time
    limits.before_max_ms = before_max_ms
    limits.after_max_ms = after_max_ms
    limits.compacted = compacted
    cdef list summaries = []
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        while pos < view.len:
            status = parse_batch_header(<const uint8_t *>view.buf, pos, view.len, &header)
            if status == HEADER_INCOMPLETE:
                break
            if status != HEADER_OK:
                raise header_error(status, &header)
            summaries.append(
                validate_batch(buffer, <const uint8_t *>view.buf, &header, &limits, wall_ms, topic_partition))
            pos += <Py_ssize_t>header.size
    finally:
        PyBuffer_Release(&view)
    if from_client and not summaries:
        raise ApiError(Error.INVALID_RECORD, "Produce requests must have exactly one record batch per partition")
    return summaries


cdef BatchSummary validate_batch(object buffer, const uint8_t *buf, const BatchHeader *header,
                                 const BatchLimits *limits, int64_t wall_ms, object topic_partition):
    cdef RecordCheck check
    cdef BatchSummary summary
    cdef int status
    cdef int codec = header.attributes & CODEC_MASK
    with nogil:
        status = check_batch(buf, header, limits)
        if status == RECORDS_OK:
            prepare_check(&check, header, limits, wall_ms)
            if codec == 0:
                status = check_records(buf, header.position + BATCH_OVERHEAD,
                                       header.position + <Py_ssize_t>header.size, &check)
    if status == RECORDS_OK and codec:
        payload = memoryview(buffer).cast("B")[header.position + BATCH_OVERHEAD:header.position + header.size]
        max_bytes = max(<int64_t>SMALLEST_DECOMPRESSED_LIMIT, limits.max_message_bytes * <int64_t>DECOMPRESSED_FACTOR)
        status = check_compressed(codec, payload, &check, max_bytes)
    if status != RECORDS_OK:
        raise ApiError(*STATUS_ERRORS[status])
    if check.error_count:
        raise record_error(&check, topic_partition)
    summary = BatchSummary.of(header, header.position)
    if limits.log_append_time:
        summary.max_timestamp = wall_ms
        summary.offset_of_max_timestamp = header.base_offset
    else:
        summary.max_timestamp = check.max_timestamp
        summary.offset_of_max_timestamp = header.base_offset + max(check.index_of_max_timestamp, 0)
    return summary


cdef int check_compressed(int codec, object payload, RecordCheck *check, int64_t max_bytes) except -1:
    """Checks the records of a compressed batch chunk by chunk, without storing them, and records errors in `check`.

    Returns RECORDS_OK, or the RECORDS_ or RECORD_ status of a malformed record. Raises ApiError if `payload` cannot be
    decompressed, or decompresses to more than `max_bytes`.
    """
    cdef RecordStream stream
    cdef const uint8_t[::1] bytes_of_chunk
    cdef Py_ssize_t length
    cdef int64_t total = 0
    cdef int status
    start_records(&stream, check)
    find_codec_functions(codec)  # from the first use on, the gate handles this codec too
    try:
        for chunk in decompress_chunks(codec, payload):
            bytes_of_chunk = chunk
            length = bytes_of_chunk.shape[0]
            total += length
            if total > max_bytes:
                raise ApiError(Error.MESSAGE_TOO_LARGE, f"The record batch decompresses to more than {max_bytes} bytes")
            with nogil:
                status = feed_records(&stream, &bytes_of_chunk[0], length)
            if status != RECORDS_OK:
                return status
    except DecompressionError as error:
        raise ApiError(Error.UNKNOWN_SERVER_ERROR, f"Failed to decompress record stream ({error})") from None
    return finish_records(&stream)


cdef object header_error(int status, const BatchHeader *header):
    if status == HEADER_BAD_LENGTH:
        if header.size < BATCH_OVERHEAD and header.size >= 14 + 12:
            return ApiError(Error.CORRUPT_MESSAGE, f"A record batch of {header.size} bytes is shorter than its header")
        return ApiError(
            Error.CORRUPT_MESSAGE, f"Record size {header.size - 12} is less than the minimum record overhead (14)")
    if status == HEADER_BAD_MAGIC:
        return ApiError(Error.CORRUPT_MESSAGE, f"Invalid magic found in record: {header.magic}")
    return ApiError(
        Error.INVALID_RECORD, "Produce requests are only allowed to contain record batches with magic version 2")


cdef object record_error(const RecordCheck *check, object topic_partition):
    cdef int64_t index
    suffix = f" in topic partition {topic_partition}" if topic_partition else ""
    errors = []
    for index in range(min(check.error_count, <int64_t>RECORD_ERRORS_KEPT)):
        if check.errors[index].kind == KEY_MISSING:
            text = f"Compacted topic cannot accept message without key{suffix}"
        elif check.errors[index].kind == TIMESTAMP_OUT_OF_RANGE:
            text = (f"Timestamp {check.errors[index].timestamp} of message with offset {check.errors[index].index} "
                    "is out of range. The timestamp should be within "
                    f"[{check.lowest_timestamp}, {check.highest_timestamp}]")
        else:
            text = "Invalid timestamp type in message. Producer should not set timestamp type to LogAppendTime."
        errors.append((check.errors[index].index, text))
    if check.timestamp_error_count:
        return RecordValidationError(
            Error.INVALID_TIMESTAMP, "One or more records have been rejected due to invalid timestamp", errors)
    shown = ", ".join([f"RecordError(batchIndex={at}, message='{text}')" for at, text in errors[:3]])
    return RecordValidationError(
        Error.INVALID_RECORD,
        f"One or more records have been rejected due to {check.error_count} record errors in total, and only showing "
        f"the first three errors at most: [{shown}]", errors)


def assign_offsets(buffer, list summaries, int64_t base_offset, int32_t leader_epoch, int64_t log_append_time_ms=-1):
    """Assigns offsets and the leader epoch to the validated batches of a writable buffer, in place.

    Returns the offset after the last batch. `summaries` are the results of `validate_batches`, and are updated too. If
    `log_append_time_ms` is not -1, each header gets the timestamp type log append time, and `log_append_time_ms` as its
    largest timestamp. Otherwise each header gets the type create time and the largest timestamp of the batch's records.
    The CRC is computed again only if the type or the largest timestamp in the header changes.
    """
    cdef Py_buffer view
    cdef BatchSummary summary
    cdef int64_t at_index
    PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
    try:
        for summary in summaries:
            if summary.position < 0 or summary.position + summary.header.size > view.len:
                raise ValueError(f"{summary} does not lie in the buffer of {view.len} bytes")
            assign_in_place(<uint8_t *>view.buf + summary.position, summary.header.size, base_offset, leader_epoch,
                            summary.max_timestamp, log_append_time_ms)
            at_index = summary.offset_of_max_timestamp - summary.assigned_base_offset
            summary.assigned_base_offset = base_offset
            summary.offset_of_max_timestamp = base_offset + at_index
            summary.header.partition_leader_epoch = leader_epoch
            if log_append_time_ms >= 0:
                summary.header.attributes |= LOG_APPEND_TIME_FLAG
                summary.max_timestamp = log_append_time_ms
            else:
                summary.header.attributes &= ~LOG_APPEND_TIME_FLAG
            base_offset += <int64_t>summary.header.last_offset_delta + 1
    finally:
        PyBuffer_Release(&view)
    return base_offset


def scan_batches(buffer, int64_t position_offset=0, bint check_crc=True):
    """Returns (summaries, valid_bytes) of the batches before the first incomplete or bad batch. Reads only the headers.

    It is for recovery and for data from a leader: offsets are kept, and `position_offset` is added to each `position`.
    The `max_timestamp` of a summary is that of the header; `offset_of_max_timestamp` is the last offset of the batch. A
    batch is bad if its checksum is wrong or its offsets do not ascend. A message of magic 0 or 1 ends the scan, too.
    *Borrows* the buffer; thread-safe.
    """
    cdef Py_buffer view
    cdef BatchHeader header
    cdef Py_ssize_t pos = 0
    cdef int64_t expected = INT64_MIN
    cdef bint good
    cdef list summaries = []
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        while parse_batch_header(<const uint8_t *>view.buf, pos, view.len, &header) == HEADER_OK:
            with nogil:
                good = (header.base_offset >= expected and header.last_offset_delta >= 0 and header.base_offset >= 0
                        and header.base_offset <= INT64_MAX - header.last_offset_delta - 1
                        and (not check_crc or crc_is_valid(<const uint8_t *>view.buf, &header)))
            if not good:
                break
            summaries.append(BatchSummary.of(&header, pos + position_offset))
            expected = header.base_offset + header.last_offset_delta + 1
            pos += <Py_ssize_t>header.size
    finally:
        PyBuffer_Release(&view)
    return summaries, pos
