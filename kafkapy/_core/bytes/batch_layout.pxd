"""The header of a record batch of magic 2 (KIP-98), with inline leaf functions to read and patch it; they *borrow*.

     0 base offset int64            21 attributes int16            43 producer id int64
     8 length int32 (after this)    23 last offset delta int32     51 producer epoch int16
    12 partition leader epoch int32 27 base timestamp int64        53 base sequence int32
    16 magic int8                   35 max timestamp int64         57 record count int32
    17 CRC-32C uint32 (of 21..)                                    61 records, compressed as a whole

    attributes: bits 0-2 codec, 3 timestamp type (1 = log append time), 4 transactional, 5 control, 6 delete horizon

Bytes 0 to 16 are outside the checksum, so that a broker can assign offsets and epoch without touching the rest.
"""
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t

from kafkapy._core.bytes.primitives cimport load_int16, load_int32, load_int64, load_uint32


cdef enum:
    BASE_OFFSET_AT = 0
    LENGTH_AT = 8
    LEADER_EPOCH_AT = 12
    MAGIC_AT = 16
    CRC_AT = 17
    ATTRIBUTES_AT = 21
    LAST_OFFSET_DELTA_AT = 23
    BASE_TIMESTAMP_AT = 27
    MAX_TIMESTAMP_AT = 35
    PRODUCER_ID_AT = 43
    PRODUCER_EPOCH_AT = 51
    BASE_SEQUENCE_AT = 53
    RECORD_COUNT_AT = 57
    BATCH_OVERHEAD = 61
    LOG_OVERHEAD = 12                    # base offset and length, which the length does not count
    SMALLEST_LENGTH = 14                 # of a message of magic 0, the least of any format

    LOG_APPEND_TIME_FLAG = 0x08
    TRANSACTIONAL_FLAG = 0x10
    CONTROL_FLAG = 0x20
    DELETE_HORIZON_FLAG = 0x40

    NO_TIMESTAMP = -1
    NO_PRODUCER_ID = -1

# The status of reading a header.
cdef enum:
    HEADER_OK = 0
    HEADER_INCOMPLETE = 1                # the bytes end inside the batch: a torn tail, or more will follow
    HEADER_BAD_LENGTH = 2                # an impossible length
    HEADER_BAD_MAGIC = 3                 # neither 0, 1 nor 2
    HEADER_OLD_MAGIC = 4                 # 0 or 1: a message set; only position, size, base_offset and magic are set

cdef struct BatchHeader:
    Py_ssize_t position                  # of the batch in the buffer
    int64_t size                         # bytes of the batch, including base offset and length
    int64_t base_offset
    int32_t partition_leader_epoch
    int8_t magic
    uint32_t crc
    int16_t attributes
    int32_t last_offset_delta
    int64_t base_timestamp
    int64_t max_timestamp
    int64_t producer_id
    int16_t producer_epoch
    int32_t base_sequence
    int32_t record_count


cdef inline int parse_batch_header(const uint8_t *buf, Py_ssize_t pos, Py_ssize_t end,
                                   BatchHeader *header) noexcept nogil:
    """Reads the header at `pos` and returns a HEADER_ status; HEADER_OK means that the batch ends at or before `end`.

    Does not verify the checksum.
    """
    cdef const uint8_t *at = buf + pos
    cdef int32_t length
    if end - pos < LOG_OVERHEAD:
        return HEADER_INCOMPLETE
    length = load_int32(at + LENGTH_AT)
    header.position = pos
    header.size = <int64_t>length + LOG_OVERHEAD
    header.base_offset = load_int64(at + BASE_OFFSET_AT)
    if length < SMALLEST_LENGTH:
        return HEADER_BAD_LENGTH
    if end - pos <= MAGIC_AT:
        return HEADER_INCOMPLETE
    header.magic = <int8_t>at[MAGIC_AT]
    if header.magic < 0 or header.magic > 2:
        return HEADER_BAD_MAGIC
    if header.size > end - pos:
        return HEADER_INCOMPLETE
    if header.magic < 2:
        return HEADER_OLD_MAGIC
    if header.size < BATCH_OVERHEAD:
        return HEADER_BAD_LENGTH
    header.partition_leader_epoch = load_int32(at + LEADER_EPOCH_AT)
    header.crc = load_uint32(at + CRC_AT)
    header.attributes = load_int16(at + ATTRIBUTES_AT)
    header.last_offset_delta = load_int32(at + LAST_OFFSET_DELTA_AT)
    header.base_timestamp = load_int64(at + BASE_TIMESTAMP_AT)
    header.max_timestamp = load_int64(at + MAX_TIMESTAMP_AT)
    header.producer_id = load_int64(at + PRODUCER_ID_AT)
    header.producer_epoch = load_int16(at + PRODUCER_EPOCH_AT)
    header.base_sequence = load_int32(at + BASE_SEQUENCE_AT)
    header.record_count = load_int32(at + RECORD_COUNT_AT)
    return HEADER_OK


cdef inline int32_t last_sequence_of(const BatchHeader *header) noexcept nogil:
    """Returns the last sequence of the batch, or -1 if it has none. Sequences wrap to 0 after 2^31 - 1."""
    if header.base_sequence < 0:
        return -1
    return <int32_t>((<int64_t>header.base_sequence + header.last_offset_delta) & 0x7fffffff)
