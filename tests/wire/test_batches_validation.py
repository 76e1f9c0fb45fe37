"""Invalid and unusual record batches, in every codec, get the error code of Apache Kafka 4.3.0 for the same bytes.

Two rows differ on purpose (see _core.batch_validation), because Kafka does not check them: offset deltas that are not
0, 1, 2, ... and a compressed record whose length does not fit its fields.
"""

import struct

import pytest

from kafkapy._core.bytes.compression import compress
from kafkapy._core.bytes.record_batch import RecordValidationError, assign_offsets, validate_batches
from kafkapy.errors import ApiError, Error
from tests.reference.record_batch import PlainRecord, encode_batch, encode_record, varint, wrap_batch

NOW = 1_795_260_304_109
HOUR = 3_600_000
CODECS = range(5)
LIMITS = {
    "max_message_bytes": 1_048_588,
    "wall_ms": NOW,
    "stamps_append_time": False,
    "before_max_ms": 2**63 - 1,
    "after_max_ms": HOUR,
    "compacted": False,
}


def record(index: int, timestamp: int = NOW, key: bytes | None = b"k") -> PlainRecord:
    return PlainRecord(index, timestamp, key, b"v")


THREE = [record(index) for index in range(3)]
BODY = b"".join(encode_record(0, index, b"k", b"v") for index in range(3))
WHOLE = encode_batch(THREE)


def batch(body: bytes, codec: int = 0, count: int = 3, **header: int) -> bytes:
    fields = {"last_offset_delta": count - 1, "base_timestamp": NOW, "max_timestamp": NOW} | header
    return wrap_batch(body, attributes=codec, count=count, **fields)


def code(data: bytes, **limits: object) -> int:
    try:
        validate_batches(data, **(LIMITS | limits))
    except ApiError as error:
        return int(error.error)
    return 0


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("good", WHOLE, 0),
        ("wrong crc", batch(BODY, crc=5), 2),
        ("base offset 7", encode_batch([record(7), record(8)], base_offset=7), 87),
        ("20 zero bytes behind", WHOLE + bytes(20), 2),
        ("half a batch behind", WHOLE + WHOLE[:40], 0),
        ("11 bytes behind", WHOLE + bytes(11), 0),
        ("torn", WHOLE[:-1], 87),
        ("10 bytes", WHOLE[:10], 87),
        ("nothing", b"", 87),
        ("length 10", WHOLE[:8] + struct.pack(">i", 10) + WHOLE[12:], 2),
        ("length 20", WHOLE[:8] + struct.pack(">i", 20) + WHOLE[12:], 2),
        ("length 48", WHOLE[:8] + struct.pack(">i", 48) + WHOLE[12:], 2),
        ("length -1", WHOLE[:8] + struct.pack(">i", -1) + WHOLE[12:], 2),
        ("length 2^31-1", WHOLE[:8] + struct.pack(">i", 2**31 - 1) + WHOLE[12:], 87),
        ("magic 1", encode_batch(THREE, magic=1), 87),
        ("magic 3", encode_batch(THREE, magic=3), 2),
        ("magic -1", encode_batch(THREE, magic=-1), 2),
        ("control", encode_batch(THREE, attributes=0x20), 87),
        ("producer without sequence", encode_batch(THREE, producer_id=5, producer_epoch=0), 87),
        ("producer with epoch -1", encode_batch(THREE, producer_id=6, base_sequence=0), 0),
        ("producer -2", encode_batch(THREE, producer_id=-2, producer_epoch=0, base_sequence=0), 0),
        ("sequence without producer", encode_batch(THREE, base_sequence=5), 0),
        ("codec 5", encode_batch(THREE, attributes=5), -1),
        ("codec 7", encode_batch(THREE, attributes=7), -1),
        ("reserved attributes", encode_batch(THREE, attributes=0x80), 0),
        ("delete horizon", encode_batch(THREE, attributes=0x40), 0),
        ("log append time bit", encode_batch(THREE, attributes=0x08), 0),
        ("no timestamps", encode_batch([record(0, -1), record(1, -1)]), 0),
        ("timestamps before 1970", encode_batch([record(0, -5), record(1, -5)]), 0),
        ("two hours ahead", encode_batch([record(0), record(1, NOW + 2 * HOUR)]), 32),
        ("plain garbage", batch(b"\x05garbage garbage garbage"), 87),
        ("plain length varint of 11 bytes", batch(b"\xff" * 10 + b"\x01" + BODY), -1),
        ("largest count", batch(BODY, count=2**31 - 1), 87),
    ],
)
def test_batch(name, data, expected):
    assert code(data) == expected


ONE = encode_record(0, 0, b"k", b"v")
START = b"\0\0\0\x02k\x02v"


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("name", "body", "count", "expected"),
    [
        ("good", BODY, 3, 0),
        ("count 2 of 3", BODY, 2, 87),
        ("count 4 of 3", BODY, 4, 87),
        ("count 0", BODY, 0, 87),
        ("count -1", BODY, -1, 87),
        ("deltas 0 2 1", b"".join(encode_record(0, delta, b"k", b"v") for delta in (0, 2, 1)), 3, 87),
        ("deltas 0 0 2", b"".join(encode_record(0, delta, b"k", b"v") for delta in (0, 0, 2)), 3, 87),
        ("deltas 1 2 3", b"".join(encode_record(0, delta, b"k", b"v") for delta in (1, 2, 3)), 3, 87),
        ("two hours ahead", ONE + encode_record(2 * HOUR, 1, b"k", b"v"), 2, 32),
        ("timestamp overflows", encode_record(2**63 - 1, 0, b"k", b"v"), 1, 32),
        ("a byte behind", BODY + b"\0", 3, 87),
        ("a byte short", BODY[:-1], 3, 87),
        ("empty", b"", 3, 87),
        ("inner varint of 11 bytes", varint(20) + b"\0" + b"\xff" * 11 + bytes(8), 1, 87),
        ("length -1", varint(-1) + BODY, 3, 87),
        ("length 0", varint(0), 1, 87),
        ("length too short", varint(7) + ONE[1:], 1, 87),
        ("length too long", varint(9) + ONE[1:] + b"\0", 1, 87),
        ("key length -2 is null", varint(7) + b"\0\0\0" + varint(-2) + b"\x02v\0", 1, 0),
        ("value length -2 is null", varint(7) + b"\0\0\0\x02k" + varint(-2) + b"\0", 1, 0),
        ("header count -1", varint(8) + START + varint(-1), 1, 87),
        ("header count 100", varint(9) + START + varint(100), 1, 87),
        ("header count 2^31-1", varint(12) + START + varint(2**31 - 1), 1, 87),
        ("null header key", varint(10) + START + varint(1) + varint(-1) + varint(-1), 1, 87),
        ("header key not UTF-8", varint(11) + START + varint(1) + varint(1) + b"\xff" + varint(-1), 1, 0),
        ("record attributes", varint(8) + b"\x07" + START[1:] + varint(0), 1, 0),
        ("value too long", varint(8) + b"\0\0\0\x02k" + varint(50) + b"v" + varint(0), 1, 87),
        ("value of 2^31-1 bytes", varint(12) + b"\0\0\0\x02k" + varint(2**31 - 1) + b"v" + varint(0), 1, 87),
    ],
)
def test_records(codec, name, body, count, expected):
    assert code(batch(compress(codec, body), codec, count)) == expected


@pytest.mark.parametrize("codec", CODECS)
def test_last_offset_delta_must_fit_the_count(codec):
    assert code(batch(compress(codec, BODY), codec, last_offset_delta=5)) == 87


@pytest.mark.parametrize(
    ("codec", "garbage", "cut", "behind"), [(1, -1, -1, 0), (2, -1, -1, -1), (3, -1, -1, 0), (4, -1, -1, -1)]
)
def test_compressed_garbage(codec, garbage, cut, behind):
    stream = compress(codec, BODY)
    assert code(batch(b"\x05garbage garbage garbage", codec)) == garbage
    assert code(batch(stream[:-3], codec)) == cut
    assert code(batch(stream + b"garbage", codec)) == behind
    assert code(batch(b"", codec)) == (87 if codec == 4 else -1)


def test_streams_in_pieces():
    one, two = BODY[:10], BODY[10:]
    assert code(batch(compress(1, one) + compress(1, two), 1)) == 0
    assert code(batch(compress(2, one) + compress(2, two), 2)) == 0
    assert code(batch(compress(2, one) + compress(2, two)[16:], 2)) == 0
    assert code(batch(compress(3, one) + compress(3, two), 3)) == 87
    assert code(batch(compress(4, one) + compress(4, two), 4)) == 0
    assert code(batch(compress(2, BODY)[20:], 2)) == 0  # raw snappy, as librdkafka writes it


def test_too_large():
    data = batch(encode_record(0, 0, b"k", bytes(1000)), count=1, crc=0)
    assert code(data, max_message_bytes=len(data) - 1) == 10  # the size is checked before the CRC
    assert code(data, max_message_bytes=len(data)) == 2


@pytest.mark.parametrize("codec", CODECS)
def test_a_compacted_topic_wants_keys(codec):
    data = encode_batch(
        [record(0, key=None), record(1), record(2, key=None)],
        attributes=codec,
        compress=lambda body: compress(codec, body),
    )
    with pytest.raises(RecordValidationError) as caught:
        validate_batches(data, **(LIMITS | {"compacted": True}), topic_partition="compact-0")
    assert caught.value.error is Error.INVALID_RECORD
    text = "Compacted topic cannot accept message without key in topic partition compact-0"
    assert caught.value.record_errors == [(0, text), (2, text)]
    assert code(encode_batch([record(0, key=b"")]), compacted=True) == 0
    assert code(encode_batch([record(0, key=None), record(1, NOW + 30 * HOUR)]), compacted=True) == 32
    assert code(encode_batch([record(0, NOW + 30 * HOUR, None)]), compacted=True) == 87


def test_timestamp_error_says_which_record():
    with pytest.raises(RecordValidationError) as caught:
        validate_batches(encode_batch([record(0), record(1, NOW + 2 * HOUR)]), **(LIMITS | {"before_max_ms": 10}))
    assert caught.value.record_errors == [
        (
            1,
            f"Timestamp {NOW + 2 * HOUR} of message with offset 1 is out of range. "
            f"The timestamp should be within [{NOW - 10}, {NOW + HOUR}]",
        )
    ]
    assert code(encode_batch([record(0, NOW - 11)]), before_max_ms=10) == 32
    assert code(encode_batch([record(0, NOW - 10)]), before_max_ms=10) == 0


def test_log_append_time_topic():
    limits = {"stamps_append_time": True, "before_max_ms": 0}
    assert code(encode_batch([record(0), record(1, NOW + 2 * HOUR)]), **limits) == 0
    assert code(encode_batch(THREE, attributes=0x08), **limits) == 32


@pytest.mark.parametrize("max_timestamp", [NOW - 1000, NOW + 10**10])
def test_a_wrong_largest_timestamp_is_corrected(max_timestamp):
    data = bytearray(encode_batch(THREE, max_timestamp=max_timestamp))
    assign_offsets(data, validate_batches(data, **LIMITS), 100, 3)
    assert bytes(data) == encode_batch(
        [record(100), record(101), record(102)], base_offset=100, partition_leader_epoch=3
    )


def test_the_log_append_time_bit_is_cleared():
    data = bytearray(encode_batch(THREE, attributes=0x08))
    assign_offsets(data, validate_batches(data, **LIMITS), 0, 0)
    assert bytes(data) == encode_batch(THREE, partition_leader_epoch=0)


@pytest.mark.parametrize("codec", CODECS)
def test_truncated_at_every_byte(codec):
    data = encode_batch(THREE, attributes=codec, compress=lambda body: compress(codec, body))
    for end in range(len(data)):
        assert code(data[:end]) == 87
        if end > 61:
            assert code(batch(data[61:end], codec)) in (87, -1)


@pytest.mark.parametrize("codec", CODECS)
def test_every_byte_of_the_records_flipped_never_crashes(codec):
    stream = compress(codec, BODY)
    for at in range(len(stream)):
        for bits in (0xFF, 0x80, 0x01):
            flipped = stream[:at] + bytes([stream[at] ^ bits]) + stream[at + 1 :]
            assert code(batch(flipped, codec)) in (0, 87, -1, 32)


@pytest.mark.parametrize("codec", [1, 3, 4])
def test_a_bomb_is_refused_before_it_fills_memory(codec):
    # One record of 300 MB of zeros, which exceeds the limit of 256 MiB.
    size = 300_000_000
    body = varint(size + 20) + b"\0\0\0\x02k" + varint(size)
    bomb = compress(codec, body + bytes(size), 1)
    assert code(batch(bomb, codec, 1), max_message_bytes=4_000_000) == 10


def test_a_snappy_block_with_an_impossible_length():
    assert code(batch(b"\xff\xff\xff\xff\x0f" + b"\x00a" * 10, 2, 1)) == -1
