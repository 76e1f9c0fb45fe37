"""Decompression without the interpreter lock: the Python path accepts every batch that it accepts."""

import random

import cramjam
import lz4.frame
import pytest
import zstandard

from kafkapy._core.bytes.codec_functions import find_codec_functions
from kafkapy._core.bytes.compression import compress
from kafkapy._core.bytes.record_batch import validate_batches
from kafkapy._core.bytes.record_decompressor import RecordDecompressor
from kafkapy.errors import ApiError
from tests.reference.record_batch import encode_record, wrap_batch

CODECS = range(1, 5)
ANY_TIME = {"wall_ms": 0, "stamps_append_time": False, "before_max_ms": 2**63 - 1, "after_max_ms": 2**63 - 1}
WORDS = [b"alpha ", b"beta ", b"gamma ", b'{"term": "', b'"}', b"\0" * 100]


@pytest.fixture(autouse=True, scope="module")
def _functions():
    assert [find_codec_functions(codec) for codec in range(6)] == [False, True, False, True, True, False]


def records(chance: random.Random, count: int, size: int) -> bytes:
    """Returns encoded records with compressible values of up to `size` bytes."""
    parts = []
    for index in range(count):
        value = b"".join(chance.choices(WORDS, k=size // 8)) + chance.randbytes(chance.randint(0, size // 4))
        headers = [("name", value[:3])] * chance.choice([0, 0, 1, 3])
        parts.append(encode_record(chance.randint(-500, 500), index, chance.choice([None, b"k"]), value, headers))
    return b"".join(parts)


def batch(codec: int, payload: bytes, count: int) -> bytes:
    return wrap_batch(payload, attributes=codec, count=count, last_offset_delta=count - 1)


def python_way(data: bytes) -> int | None:
    try:
        found = validate_batches(bytearray(data), max_message_bytes=2**31 - 1, compacted=False, **ANY_TIME)
    except ApiError:
        return None
    return found[0].max_timestamp


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("count", "size"), [(1, 8), (1, 500_000), (3, 40_000), (40, 100), (2000, 900), (20_000, 16)])
def test_takes_what_clients_write(codec, count, size):
    data = batch(codec, compress(codec, records(random.Random(count), count, size)), count)
    assert RecordDecompressor().largest_timestamp(data) == python_way(data) is not None


def other_encodings(body: bytes) -> list[tuple[int, bytes]]:
    """Returns encodings that only clients other than Java's write."""
    with_everything = {"content_checksum": True, "block_checksum": True, "block_linked": False, "store_size": True}
    sizes = [lz4.frame.BLOCKSIZE_MAX256KB, lz4.frame.BLOCKSIZE_MAX4MB]
    stream = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False)
    return [
        (2, bytes(cramjam.snappy.compress_raw(body))),
        *((3, lz4.frame.compress(body, block_size=size, **with_everything)) for size in sizes),
        (4, stream.compress(body)),
        (4, zstandard.ZstdCompressor(level=19).compress(body)),
        (4, compress(4, body[:100]) + b"\x50\x2a\x4d\x18\x03\0\0\0xyz" + compress(4, body[100:])),
    ]


def test_takes_what_other_clients_write():
    decompressor = RecordDecompressor()
    body = records(random.Random(5), 500, 2000)
    for codec, payload in other_encodings(body):
        data = batch(codec, payload, 500)
        assert decompressor.largest_timestamp(data) == python_way(data) is not None, codec


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("seed", range(4))
def test_finds_nothing_in_order_that_the_python_way_does_not(codec, seed):
    """Batches are damaged at random and get a valid CRC again; one decompressor handles all of them."""
    chance = random.Random(f"{codec} {seed}")
    decompressor = RecordDecompressor()
    taken = 0
    for _ in range(150):
        count = chance.choice([1, 3, 50])
        body = bytearray(records(chance, count, chance.choice([10, 300, 3000])))
        if chance.random() < 0.3:
            body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
        payload = bytearray(compress(codec, bytes(body)))
        for _ in range(chance.choice([0, 1, 1, 3])):
            payload[chance.randrange(len(payload))] ^= 1 << chance.randrange(8)
        kind = chance.random()
        if kind < 0.1:
            del payload[chance.randrange(len(payload)) :]
        elif kind < 0.2:
            payload += chance.randbytes(chance.randint(1, 20))
        data = batch(codec, bytes(payload), count + chance.choice([0, 0, 0, 0, 1, -1]) or 1)
        found = decompressor.largest_timestamp(data)
        assert found is None or found == python_way(data)
        taken += found is not None
    assert taken > 5


@pytest.mark.parametrize("codec", CODECS)
def test_stops_before_it_takes_too_long(codec):
    """A bomb of half a gigabyte is left to Python as soon as it is recognised; the next batch is accepted again."""
    decompressor = RecordDecompressor()
    chunk, times = bytes(1 << 20), 500
    if codec == 4:
        bomb = zstandard.ZstdCompressor().compressobj()
        payload = b"".join(bomb.compress(chunk) for _ in range(times)) + bomb.flush()
    elif codec == 3:
        block = lz4.frame.compress(chunk * 8, block_linked=False, block_size=lz4.frame.BLOCKSIZE_MAX4MB)
        # the content size in the header is wrong after the repetition, which is detected only at the end
        header, blocks = block[:15], block[15:-4]
        payload = header + blocks * (times // 8) + bytes(4)
    else:
        payload = compress(codec, chunk * 16) if codec == 2 else compress(codec, chunk * times)
    assert decompressor.largest_timestamp(batch(codec, payload, 1)) is None
    good = batch(codec, compress(codec, encode_record(5, 0, None, b"value", [])), 1)
    assert decompressor.largest_timestamp(good) == 5


def test_what_is_no_batch():
    decompressor = RecordDecompressor()
    whole = batch(3, compress(3, encode_record(5, 0, None, b"value", [])), 1)
    assert decompressor.largest_timestamp(whole) == 5
    for end in range(len(whole)):
        assert decompressor.largest_timestamp(whole[:end]) is None
    for codec in (0, 5, 7):
        assert decompressor.largest_timestamp(batch(codec, whole[61:], 1)) is None
    for codec in CODECS:
        assert decompressor.largest_timestamp(batch(codec, b"", 1)) is None
