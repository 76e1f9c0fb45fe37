"""Messages of magic 0 and 1: the golden vectors of Kafka 0.10's dump tool, and hostile bytes."""

import struct

import lz4.frame
import pytest

from kafkapy._core.bytes.compression import compress
from kafkapy._core.bytes.message_set import (
    broken_lz4_header,
    build_message,
    build_message_set,
    correct_lz4_header,
    iterate_messages,
    iterate_records,
)
from kafkapy.errors import ApiError, Error
from tests.reference.message_set import encode_message

SCHEMA_KEY = b'{"schema":null,"payload":null}'
SCHEMA_VALUE = b'{"schema":{"type":"string","optional":false},"payload":"%s"}'


@pytest.mark.parametrize(
    ("timestamp", "key", "value", "crc"),
    [
        (1487165556824, None, b"c", 1269164006),
        (1487165689780, None, b"f", 3541136778),
        (1487163989090, b"a", b"a", 2783563669),
        (1487163998112, b"b", b"b", 740192312),
        (1490746340519, None, b"4", 442199113),
        (1490746347162, None, b"10", 4005880382),
        (1490848047199, SCHEMA_KEY, SCHEMA_VALUE % b"kafka-connect", 2697874837),
        (1490962508781, SCHEMA_KEY, SCHEMA_VALUE % b"restful test", 2046084259),
        (1491039692562, None, b"connect-distributed", 1188385350),
    ],
)
def test_golden_crc(timestamp, key, value, crc):
    data = build_message(0, timestamp, key, value, magic=1)
    assert len(data) == 34 + len(key or b"") + len(value)
    (message,) = iterate_messages(data)
    assert message.crc == crc
    assert message.is_valid()
    assert (message.timestamp, message.key, message.value) == (timestamp, key, value)


def test_golden_positions():
    data = build_message_set([(0, 1487165556824, None, b"c"), (1, 1487165689780, None, b"f")], magic=1)
    assert [message.position for message in iterate_messages(data)] == [0, 35]
    tail = encode_message(723, 1, b"a", b"a", 1)
    assert len(tail) == 759 - 723


def test_bytes_of_magic_0():
    assert build_message(5, -1, b"k", None, magic=0) == bytes.fromhex(
        "0000000000000005 0000000f" + format(struct.unpack(">I", encode_message(5, 0, b"k", None, 0)[12:16])[0], "08x")
    ) + bytes.fromhex("0000 00000001 6b ffffffff")


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", range(4))
def test_truncated_at_every_byte(magic, codec):
    data = build_message_set([(3, 1, b"k", b"v"), (4, 2, None, b"w" * 50)], magic=magic, compression=codec)
    first = next(iter(iterate_messages(data))).size_in_bytes
    for end in range(len(data)):
        assert len(list(iterate_messages(data[:end]))) == (1 if end >= first else 0)


@pytest.mark.parametrize("magic", [0, 1])
def test_every_byte_flipped_is_noticed(magic):
    data = build_message(7, 1, b"key", b"value", magic=magic)
    for at in range(8, len(data)):
        flipped = bytearray(data)
        flipped[at] ^= 0x41
        assert read_or_code(flipped) in ([], Error.CORRUPT_MESSAGE, Error.INVALID_RECORD)  # []: the size has increased


def read_or_code(data):
    try:
        return list(iterate_records(data))
    except ApiError as error:
        return error.error


@pytest.mark.parametrize("size", [-1, 0, 13, -(2**31)])
def test_impossible_sizes(size):
    messages = iterate_messages(struct.pack(">qi", 0, size) + bytes(100))
    with pytest.raises(ApiError) as caught:
        list(messages)
    assert caught.value.error is Error.CORRUPT_MESSAGE


@pytest.mark.parametrize("length", [2**31 - 1, 100, -(2**31)])
@pytest.mark.parametrize("at", [26, 31])
def test_hostile_key_and_value_lengths(length, at):
    data = bytearray(build_message(0, 1, b"k", b"v", magic=1))
    struct.pack_into(">i", data, at, length)
    with pytest.raises(ApiError) as caught:
        list(iterate_messages(data))
    assert caught.value.error is Error.CORRUPT_MESSAGE


def test_wrappers_that_are_refused():
    inner = build_message(0, 1, None, b"x", magic=1)
    nested = build_message_set([(0, 1, None, inner)], magic=1, compression=1)
    for value, attributes, error in (
        (b"garbage", 1, Error.UNKNOWN_SERVER_ERROR),
        (b"", 1, Error.UNKNOWN_SERVER_ERROR),
        (None, 1, Error.INVALID_RECORD),
        (wrapped(b""), 1, Error.INVALID_RECORD),
        (wrapped(inner[:-1]), 1, Error.INVALID_RECORD),
        (wrapped(nested), 1, Error.INVALID_RECORD),
        (wrapped(build_message(0, 1, None, b"", magic=0)), 1, Error.INVALID_RECORD),
        (b"", 4, Error.INVALID_RECORD),
    ):
        with pytest.raises(ApiError) as caught:
            list(iterate_records(build_message(9, 1, None, value, magic=1, attributes=attributes)))
        assert caught.value.error is error
    with pytest.raises(ValueError, match="no codec 4"):
        build_message_set([(0, 1, None, b"")], magic=1, compression=4)


def wrapped(inner: bytes) -> bytes:
    return compress(1, inner)


def test_a_bomb_in_a_wrapper_is_bounded():
    data = build_message_set([(0, 1, None, bytes(1_000_000))], magic=1, compression=1)
    with pytest.raises(ApiError, match="more than 1000 bytes"):
        list(iterate_records(data, max_bytes=1000))


def test_relative_offsets_with_gaps():
    data = build_message_set([(10, 1, None, b"a"), (12, 2, None, b"b"), (15, 3, None, b"c")], magic=1, compression=1)
    assert [record.offset for record in iterate_records(data)] == [10, 12, 15]


def test_lz4_of_magic_0_has_the_wrong_header_checksum():
    right = lz4.frame.compress(
        b"some bytes", block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
    )
    wrong = broken_lz4_header(right)
    assert right[:6] + wrong[6:7] + right[7:] == wrong
    assert wrong != right
    with pytest.raises(RuntimeError):
        lz4.frame.decompress(wrong)
    assert correct_lz4_header(wrong) == right
    sized = lz4.frame.compress(b"some bytes", store_size=True)
    assert correct_lz4_header(sized) == sized
