"""Message sets of magic 0 and 1, the record format before Kafka 0.11: reads, checks and builds them.

     0 offset int64                        16 magic int8
     8 size int32 (of what follows)        17 attributes int8: bits 0-2 codec, 3 timestamp type (magic 1)
    12 CRC-32 uint32 (of 16..)             18 timestamp int64 (magic 1 only)
       then: key length int32 (-1 null), key, value length int32 (-1 null), value

A compressed message (wrapper) has a whole message set as its value, and the offset of its last inner message. With
magic 0, inner offsets are absolute. With magic 1 they are relative to the first absolute offset, which is the wrapper's
offset minus the last inner offset. A wrapper with log append time gives its timestamp to all its messages.
Wrappers do not nest.
"""
import zlib

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT32_MAX, int8_t, int32_t, int64_t, uint8_t, uint32_t

from kafkapy._core.bytes.batch_layout cimport (
    BASE_OFFSET_AT, LENGTH_AT, LOG_APPEND_TIME_FLAG, LOG_OVERHEAD, MAGIC_AT, NO_TIMESTAMP, SMALLEST_LENGTH)
from kafkapy._core.bytes.codecs cimport CODEC_LZ4, CODEC_MASK, CODEC_NONE, CODEC_ZSTD
from kafkapy._core.bytes.primitives cimport load_int32, load_int64, load_uint32, store_int32, store_int64, store_uint32
from kafkapy._core.bytes.compression import (
    LARGEST_DECOMPRESSED_BYTES, DecompressedTooLargeError, DecompressionError, compress, decompress)
from kafkapy.errors import ApiError, Error

cdef enum:
    OLD_CRC_AT = 12
    OLD_ATTRIBUTES_AT = 17
    OLD_TIMESTAMP_AT = 18
    BODY_AT_MAGIC_0 = 18
    BODY_AT_MAGIC_1 = 26
    LARGEST_OLD_CODEC = CODEC_LZ4        # zstd requires magic 2


cdef class LegacyRecord:
    """A message of magic 0 or 1, copied from its set. The object does not change after its construction.

    `timestamp` is in ms since 1970, and -1 with magic 0. `position` is the message's position in the buffer, or -1 if
    it was inside a compressed message.
    """

    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    cdef readonly bytes key
    cdef readonly bytes value
    cdef readonly int magic
    cdef readonly int attributes
    cdef readonly uint32_t crc
    cdef readonly Py_ssize_t position
    cdef readonly Py_ssize_t size_in_bytes
    cdef bint valid

    @property
    def compression(self):
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self):
        """0 for create time, 1 for log append time."""
        return 1 if self.magic and self.attributes & LOG_APPEND_TIME_FLAG else 0

    @property
    def headers(self):
        """The headers: always empty, because they were introduced with magic 2."""
        return ()

    def is_valid(self):
        """Returns whether the CRC was valid when the message was read."""
        return self.valid

    def ensure_valid(self):
        """Raises ApiError CORRUPT_MESSAGE unless the CRC was valid."""
        if not self.valid:
            raise ApiError(Error.CORRUPT_MESSAGE, f"Message at offset {self.offset} does not match its CRC")

    def __repr__(self):
        return (f"LegacyRecord(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, "
                f"value={self.value!r}, magic={self.magic}, attributes={self.attributes})")


cdef object corrupt(object text):
    return ApiError(Error.CORRUPT_MESSAGE, text)


cdef LegacyRecord read_message(object window, const uint8_t *buf, Py_ssize_t pos, Py_ssize_t end):
    """Returns the message at `pos` of `buf`, or None if the bytes end inside it.

    `window` is a memoryview of the same bytes, for the CRC. Raises ApiError CORRUPT_MESSAGE for a malformed message.
    """
    cdef LegacyRecord record
    cdef int64_t size
    cdef Py_ssize_t at
    if end - pos < LOG_OVERHEAD:
        return None
    size = load_int32(buf + pos + LENGTH_AT)
    if size < SMALLEST_LENGTH:
        raise corrupt(f"Record size {size} is less than the minimum record overhead ({SMALLEST_LENGTH})")
    if size > end - pos - LOG_OVERHEAD:
        return None
    if buf[pos + MAGIC_AT] > 1:
        raise corrupt(f"Invalid magic found in message: {<int8_t>buf[pos + MAGIC_AT]}")
    end = pos + LOG_OVERHEAD + <Py_ssize_t>size
    record = LegacyRecord.__new__(LegacyRecord)
    record.position = pos
    record.size_in_bytes = end - pos
    record.offset = load_int64(buf + pos + BASE_OFFSET_AT)
    record.crc = load_uint32(buf + pos + OLD_CRC_AT)
    record.magic = buf[pos + MAGIC_AT]
    record.attributes = buf[pos + OLD_ATTRIBUTES_AT]
    record.timestamp = NO_TIMESTAMP
    record.valid = zlib.crc32(window[pos + MAGIC_AT:end]) == record.crc
    at = pos + BODY_AT_MAGIC_0
    if record.magic:
        at = pos + BODY_AT_MAGIC_1
        if at > end:
            raise corrupt("A message of magic 1 ends inside its timestamp")
        record.timestamp = load_int64(buf + pos + OLD_TIMESTAMP_AT)
    record.key = read_field(buf, &at, end)
    record.value = read_field(buf, &at, end)
    if at != end:
        raise corrupt(f"Message at offset {record.offset} is not filled by its key and value")
    return record


cdef bytes read_field(const uint8_t *buf, Py_ssize_t *at, Py_ssize_t end):
    """Returns the bytes after the length prefix at `at`, or None for a negative length; advances `at`.

    Raises ApiError CORRUPT_MESSAGE if the bytes end early.
    """
    cdef int32_t length
    if end - at[0] < 4:
        raise corrupt("A message ends inside its key or value")
    length = load_int32(buf + at[0])
    at[0] += 4
    if length < 0:
        return None
    if length > end - at[0]:
        raise corrupt("A message ends inside its key or value")
    at[0] += length
    return (<const char *>buf)[at[0] - length:at[0]]


def iterate_messages(buffer, Py_ssize_t position=0):
    """Yields the messages of a set, up to an incomplete last one. A compressed message (wrapper) is one message.

    Does not check CRCs. Raises ApiError CORRUPT_MESSAGE for a malformed message. *Pins* the buffer during the
    iteration.
    """
    cdef Py_buffer view
    cdef LegacyRecord record
    window = memoryview(buffer).cast("B")
    cdef Py_ssize_t end = len(window)
    if position < 0:
        raise IndexError(f"position {position} is outside the buffer")
    while position < end:
        PyObject_GetBuffer(window, &view, PyBUF_SIMPLE)
        try:
            record = read_message(window, <const uint8_t *>view.buf, position, end)
        finally:
            PyBuffer_Release(&view)
        if record is None:
            return
        yield record
        position += record.size_in_bytes


def iterate_records(buffer, Py_ssize_t position=0, int64_t max_bytes=LARGEST_DECOMPRESSED_BYTES):
    """Yields the messages of a set, and instead of each compressed message (wrapper) the messages in it.

    The offsets are absolute. A message in a wrapper with log append time gets the wrapper's timestamp. Raises ApiError
    CORRUPT_MESSAGE for a malformed message or a wrong CRC, and the errors of `wrapped_messages`.
    """
    cdef LegacyRecord outer
    for outer in iterate_messages(buffer, position):
        outer.ensure_valid()
        if outer.attributes & CODEC_MASK:
            yield from open_wrapper(outer, max_bytes)
        else:
            yield outer


def open_wrapper(LegacyRecord wrapper not None, int64_t max_bytes=LARGEST_DECOMPRESSED_BYTES):
    """Returns a list of the inner messages of a compressed message, with absolute offsets.

    Raises the errors of `wrapped_messages`.
    """
    cdef LegacyRecord inner
    cdef int64_t first_offset
    cdef list records = list(wrapped_messages(wrapper, max_bytes))
    if wrapper.magic == 1:
        first_offset = wrapper.offset - (<LegacyRecord>records[len(records) - 1]).offset
        for inner in records:
            inner.offset += first_offset
    return records


def wrapped_messages(LegacyRecord wrapper not None, int64_t max_bytes=LARGEST_DECOMPRESSED_BYTES):
    """Yields the inner messages of a compressed message, with the stored offsets, which are relative with magic 1.

    If the wrapper has log append time, the inner messages get its timestamp. An inner message that is cut off at the
    end is left out. The decompressed bytes are in memory, and one message at a time is created.

    Raises ApiError with Kafka's codes: INVALID_RECORD for a wrapper that is empty, nested or mixes magics,
    UNKNOWN_SERVER_ERROR if it does not decompress, CORRUPT_MESSAGE for a wrong CRC, and MESSAGE_TOO_LARGE if it
    decompresses to more than `max_bytes`.
    """
    cdef LegacyRecord inner
    cdef int codec = wrapper.attributes & CODEC_MASK
    cdef bint is_empty = True
    if codec == CODEC_NONE or codec == CODEC_ZSTD or wrapper.value is None:
        raise ApiError(
            Error.INVALID_RECORD, f"Message at offset {wrapper.offset} is no wrapper of magic {wrapper.magic}")
    if codec > LARGEST_OLD_CODEC:
        raise ApiError(Error.UNKNOWN_SERVER_ERROR, f"Unknown compression type id: {codec}")
    try:
        value = correct_lz4_header(wrapper.value) if codec == CODEC_LZ4 and wrapper.magic == 0 else wrapper.value
        messages = decompress(codec, value, max_bytes)
    except DecompressedTooLargeError as error:
        raise ApiError(
            Error.MESSAGE_TOO_LARGE, f"Message at offset {wrapper.offset} decompresses to {error}") from None
    except DecompressionError as error:
        raise ApiError(
            Error.UNKNOWN_SERVER_ERROR, f"Failed to decompress message at offset {wrapper.offset} ({error})") from None
    for inner in iterate_messages(messages):
        is_empty = False
        if inner.attributes & CODEC_MASK or inner.magic != wrapper.magic:
            raise ApiError(
                Error.INVALID_RECORD, f"Message at offset {wrapper.offset} contains a wrapper or another magic")
        inner.ensure_valid()
        inner.position = -1
        if wrapper.timestamp_type:
            inner.timestamp = wrapper.timestamp
            inner.attributes |= LOG_APPEND_TIME_FLAG
        yield inner
    if is_empty:
        raise ApiError(Error.INVALID_RECORD, f"Message at offset {wrapper.offset} does not contain whole messages")


def build_message(int64_t offset, int64_t timestamp, key, value, *, int magic, int attributes=0):
    """Returns one message as bytes. Key and value are bytes-like or None; the timestamp is written with magic 1 only.
    """
    if magic not in (0, 1):
        raise ValueError(f"no message has magic {magic}")
    cdef bytearray message = bytearray(BODY_AT_MAGIC_1 if magic else BODY_AT_MAGIC_0)
    for field in (key, value):
        message += (-1 if field is None else len(field)).to_bytes(4, "big", signed=True)
        if field is not None:
            message += field
    if len(message) > INT32_MAX:
        raise ValueError(f"a message of {len(message)} bytes is too large")
    cdef uint8_t *at = <uint8_t *><char *>message
    store_int64(at + BASE_OFFSET_AT, offset)
    store_int32(at + LENGTH_AT, <int32_t>(len(message) - LOG_OVERHEAD))
    at[MAGIC_AT] = <uint8_t>magic
    at[OLD_ATTRIBUTES_AT] = <uint8_t>attributes
    if magic:
        store_int64(at + OLD_TIMESTAMP_AT, timestamp)
    store_uint32(at + OLD_CRC_AT, zlib.crc32(memoryview(message)[MAGIC_AT:]))
    return bytes(message)


def build_message_set(records, *, int magic, int compression=0, level=None, int timestamp_type=0):
    """Returns the message set of `records`: tuples (offset, timestamp, key, value) with ascending offsets.

    If `compression` is a codec, the set is one compressed message. With magic 1 its timestamp is the largest timestamp
    of the records. The records are consumed one by one. Raises ValueError for zstd, which these formats do not have.
    """
    cdef int attributes = compression | (LOG_APPEND_TIME_FLAG if timestamp_type and magic else 0)
    cdef int64_t first_offset = 0, last_offset = -1, max_timestamp = NO_TIMESTAMP, offset, timestamp
    cdef bint is_empty = True
    cdef bytearray messages = bytearray()
    if compression < 0 or compression > LARGEST_OLD_CODEC:
        raise ValueError(f"message sets of magic {magic} have no codec {compression}")
    for offset, timestamp, key, value in records:
        if is_empty and compression and magic:
            first_offset = offset
        is_empty = False
        last_offset = offset
        max_timestamp = max(max_timestamp, timestamp)
        messages += build_message(
            offset - first_offset, timestamp, key, value, magic=magic, attributes=attributes & ~CODEC_MASK)
    if compression == 0 or is_empty:
        return bytes(messages)
    value = compress(compression, messages, level)
    if compression == CODEC_LZ4 and magic == 0:
        value = broken_lz4_header(value)
    return build_message(last_offset, max_timestamp, None, value, magic=magic, attributes=attributes)


# Kafka's clients before 0.10 computed the checksum of an lz4 frame's header over the magic number too (KAFKA-3160).
# Messages of magic 0 keep this fault, and readers of magic 0 do not verify the checksum.

cdef enum:
    LZ4_MAGIC_BYTES = 4
    PRIME_2 = 2246822519
    PRIME_3 = 3266489917
    PRIME_4 = 668265263
    PRIME_5 = 374761393


cdef uint32_t short_xxhash32(const uint8_t *bytes, Py_ssize_t length) noexcept nogil:
    """Returns xxHash32, seed 0, of fewer than 16 bytes."""
    cdef uint32_t state = <uint32_t>PRIME_5 + <uint32_t>length, word
    cdef Py_ssize_t pos = 0
    while length - pos >= 4:
        word = (<uint32_t>bytes[pos] | <uint32_t>bytes[pos + 1] << 8 | <uint32_t>bytes[pos + 2] << 16
                | <uint32_t>bytes[pos + 3] << 24)
        state += word * <uint32_t>PRIME_3
        state = (state << 17 | state >> 15) * <uint32_t>PRIME_4
        pos += 4
    while pos < length:
        state += <uint32_t>bytes[pos] * <uint32_t>PRIME_5
        state = (state << 11 | state >> 21) * <uint32_t>2654435761u
        pos += 1
    state = (state ^ state >> 15) * <uint32_t>PRIME_2
    state = (state ^ state >> 13) * <uint32_t>PRIME_3
    return state ^ state >> 16


def correct_lz4_header(bytes frame not None):
    """Returns the frame with the header checksum that lz4 defines. Raises DecompressionError if the header is cut off.
    """
    return with_header_checksum(frame, LZ4_MAGIC_BYTES)


def broken_lz4_header(bytes frame not None):
    """Returns the frame with the wrong header checksum that Kafka's clients write and expect with magic 0."""
    return with_header_checksum(frame, 0)


cdef bytes with_header_checksum(bytes frame, Py_ssize_t start):
    cdef const uint8_t *buf = frame
    cdef Py_ssize_t checksum_at
    if len(frame) <= LZ4_MAGIC_BYTES + 2:
        raise DecompressionError("lz4: the frame ends inside its header")
    # flags, block size; content size (8 bytes) and dictionary id (4 bytes) if the flags say so
    checksum_at = LZ4_MAGIC_BYTES + 2 + (8 if buf[4] & 0x08 else 0) + (4 if buf[4] & 0x01 else 0)
    if checksum_at >= len(frame) or checksum_at - start >= 16:
        raise DecompressionError("lz4: the frame ends inside its header")
    checksum = (short_xxhash32(buf + start, checksum_at - start) >> 8) & 0xff
    return frame[:checksum_at] + bytes((checksum,)) + frame[checksum_at + 1:]
