"""Message sets of magic 0 and 1 to a running broker, with Apache Kafka 3.9 as the reference, the last release that
accepts them."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkapy._core.bytes.compression import compress
from kafkapy._core.bytes.message_set import (
    broken_lz4_header,
    build_message,
    build_message_set,
    iterate_messages,
    open_wrapper,
)
from kafkapy._core.bytes.record_batch import RecordBatchBuilder, iterate_batches
from tests.broker_process import BrokerProcess
from tests.old_client import create_topic, fetch, produce
from tests.peers import ApacheKafka
from tests.server_process import ServerProcess

NOW_MS = int(time.time() * 1000)
HOUR_MS = 3_600_000
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
LOG_APPEND_TIME = 8
THREE = [(0, NOW_MS, b"a", b"1"), (1, NOW_MS + 1, None, b"2"), (2, NOW_MS + 2, b"c", None)]

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]

TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "append-time": {"message_timestamp_type": "LogAppendTime"},
    "compacted": {"cleanup_policy": "compact"},
    "zstd": {"compression_type": "zstd"},
    "uncompressed": {"compression_type": "uncompressed"},
}


# The first became the default with 4.0.
LIMITS = {"log.message.timestamp.after.max.ms": str(HOUR_MS), "message.max.bytes": "50000"}


@pytest.fixture(scope="module")
def kafkapy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("kafkapy"), LIMITS) as process:
        create_topics(process)
        yield process


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory, kafka_39: Path) -> Iterator[ServerProcess]:
    with ApacheKafka(kafka_39, tmp_path_factory.mktemp("kafka"), properties=LIMITS) as process:
        create_topics(process)
        yield process


def create_topics(process: ServerProcess) -> None:
    for name, configs in TOPICS.items():
        create_topic(process, name, **configs)


@pytest.fixture(params=["kafkapy", "kafka"])
def server(request: pytest.FixtureRequest) -> ServerProcess:
    found: ServerProcess = request.getfixturevalue(request.param)
    return found


def message_set(*, magic: int, codec: int = 0, append_time: bool = False, records: Any = None) -> bytes:
    return build_message_set(
        THREE if records is None else records, magic=magic, compression=codec, timestamp_type=int(append_time)
    )


def wrapper(inner: bytes, *, magic: int = 1, codec: int = GZIP, key: bytes | None = None) -> bytes:
    """Returns a compressed message around the given bytes."""
    return build_message(2, NOW_MS, key, compress(codec, inner), magic=magic, attributes=codec)


def one(magic: int = 1, *, timestamp_ms: int = NOW_MS, value: bytes = b"v", attributes: int = 0) -> bytes:
    return build_message(0, timestamp_ms, b"k", value, magic=magic, attributes=attributes)


def wrong_crc(data: bytes) -> bytes:
    damaged = bytearray(data)
    damaged[12] ^= 1
    return bytes(damaged)


def batch(codec: int = 0) -> bytes:
    builder = RecordBatchBuilder(compression=codec)
    builder.append(NOW_MS, b"k", b"v")
    return builder.build()


NOTHING, UNKNOWN, CORRUPT, TOO_LARGE, TIMESTAMP, INVALID = 0, -1, 2, 10, 32, 87
UNSUPPORTED_COMPRESSION_TYPE = 76
# name: (produce version, message set, error)
REFUSED: dict[str, tuple[int, bytes, int]] = {
    "nothing": (2, b"", NOTHING),
    "a few bytes": (2, bytes(5), NOTHING),
    "less than a message": (2, message_set(magic=1)[:20], NOTHING),
    "zeros": (2, bytes(40), CORRUPT),
    "magic 5": (0, one(0)[:16] + b"\x05" + one(0)[17:], CORRUPT),
    "a wrong CRC, magic 0": (0, wrong_crc(message_set(magic=0)), CORRUPT),
    "a wrong CRC, magic 1": (2, wrong_crc(message_set(magic=1)), CORRUPT),
    "a wrong CRC behind a good one": (2, one() + wrong_crc(one()), CORRUPT),
    "a wrong CRC of a wrapper": (2, wrong_crc(message_set(magic=1, codec=GZIP)), CORRUPT),
    "a wrong CRC inside, magic 0": (0, wrapper(wrong_crc(one(0)), magic=0), CORRUPT),
    "a wrong CRC inside, magic 1": (2, wrapper(wrong_crc(one())), CORRUPT),
    "a wrapper in a wrapper, magic 0": (0, wrapper(message_set(magic=0, codec=GZIP), magic=0), INVALID),
    "a wrapper in a wrapper, magic 1": (2, wrapper(message_set(magic=1, codec=GZIP)), INVALID),
    "two wrappers, magic 0": (0, message_set(magic=0, codec=GZIP) * 2, INVALID),
    "two wrappers, magic 1": (2, message_set(magic=1, codec=GZIP) * 2, INVALID),
    "a wrapper behind a message": (2, one() + message_set(magic=1, codec=GZIP), INVALID),
    "a message behind a wrapper": (2, message_set(magic=1, codec=GZIP) + one(), INVALID),
    "both magics": (2, one(0) + one(1), INVALID),
    "magic 0 inside magic 1": (2, wrapper(one(0)), INVALID),
    "magic 1 inside magic 0": (0, wrapper(one(1), magic=0), INVALID),
    "both magics inside": (2, wrapper(one(1) + one(0)), INVALID),
    "a wrapper around nothing": (2, wrapper(b""), INVALID),
    "a wrapper without a value": (2, build_message(0, NOW_MS, None, None, magic=1, attributes=GZIP), INVALID),
    "a wrapper of no bytes": (2, build_message(0, NOW_MS, None, b"", magic=1, attributes=GZIP), UNKNOWN),
    "garbage as gzip": (2, build_message(0, NOW_MS, None, b"garbage", magic=1, attributes=GZIP), UNKNOWN),
    "zstd": (2, wrapper(message_set(magic=1), codec=ZSTD), INVALID),
    "an unknown codec": (2, build_message(0, NOW_MS, None, b"xx", magic=1, attributes=5), UNKNOWN),
    "a negative timestamp": (2, one(timestamp_ms=-5), UNKNOWN),
    "two hours ahead": (2, one(timestamp_ms=NOW_MS + 2 * HOUR_MS), TIMESTAMP),
    "two hours ahead, gzip": (2, wrapper(one(timestamp_ms=NOW_MS + 2 * HOUR_MS)), TIMESTAMP),
    "a message too large": (2, one(value=bytes(60_000)), TOO_LARGE),
    "messages too large as one batch": (2, one(value=bytes(8_000)) * 10, TOO_LARGE),
    "lz4 of magic 1 with the header of magic 0": (
        2,
        build_message(
            0, NOW_MS, None, broken_lz4_header(compress(LZ4, message_set(magic=1))), magic=1, attributes=LZ4
        ),
        UNKNOWN,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(server: ServerProcess, name: str) -> None:
    version, records, error = REFUSED[name]
    answer = produce(server, "plain", records, version)
    assert (answer.error_code, answer.base_offset) == (error, -1)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4], ids=["gzip", "snappy", "lz4"])
@pytest.mark.parametrize("magic", [0, 1])
def test_a_compressed_set_cut_short(server: ServerProcess, magic: int, codec: int) -> None:
    """A truncated compressed stream cannot be read. A complete stream may end inside a message, like a message set."""
    stream = compress(codec, message_set(magic=magic))[:-9]
    cut = build_message(2, NOW_MS, None, stream, magic=magic, attributes=codec)
    if codec == LZ4 and magic == 0:
        cut = build_message(2, NOW_MS, None, broken_lz4_header(stream), magic=0, attributes=LZ4)
    assert produce(server, "plain", cut, 2).error_code == UNKNOWN
    inner = build_message_set(THREE, magic=magic)[:-5]
    stream = broken_lz4_header(compress(LZ4, inner)) if codec == LZ4 and magic == 0 else compress(codec, inner)
    cut = build_message(2, NOW_MS, None, stream, magic=magic, attributes=codec)
    answer = produce(server, "plain", cut, 2)
    assert answer.error_code == 0
    assert values(stored(server, "plain", answer.base_offset)) == [b"1", b"2"]


def stored(server: ServerProcess, topic: str, offset: int) -> Any:
    """Returns the only batch that an append wrote."""
    (found,) = iterate_batches(bytes(fetch(server, topic, offset, 11).records))
    return found


def values(found: Any) -> list[bytes | None]:
    return [record.value for record in found]


ACCEPTED = {
    "magic 0 in version 0": (0, message_set(magic=0)),
    "magic 1 in version 2": (2, message_set(magic=1)),
    "magic 1 in version 0": (0, message_set(magic=1)),
    "magic 0 in version 2": (2, message_set(magic=0)),
    "gzip of magic 0": (0, message_set(magic=0, codec=GZIP)),
    "snappy of magic 0": (1, message_set(magic=0, codec=SNAPPY)),
    "lz4 of magic 0": (1, message_set(magic=0, codec=LZ4)),
    "lz4 of magic 0, right header": (1, wrapper(message_set(magic=0), magic=0, codec=LZ4)),
    "gzip of magic 1": (2, message_set(magic=1, codec=GZIP)),
    "snappy of magic 1": (2, message_set(magic=1, codec=SNAPPY)),
    "lz4 of magic 1": (2, message_set(magic=1, codec=LZ4)),
    "a wrapper with a key": (2, wrapper(message_set(magic=1), key=b"key")),
    "offsets in disorder": (2, wrapper(b"".join(build_message(at, NOW_MS, None, b"x", magic=1) for at in (2, 2, 1)))),
    "a cut last message": (2, message_set(magic=1)[:-3]),
    "reserved attributes": (2, one(attributes=0xF0)),
    "no timestamp": (2, one(timestamp_ms=-1)),
    "very old": (2, one(timestamp_ms=5)),
    "a batch of today": (2, batch()),
    "a batch of today in zstd": (1, batch(ZSTD)),
}


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("name", ACCEPTED)
def test_both_store_the_same(kafkapy: ServerProcess, kafka: ServerProcess, name: str, topic: str) -> None:
    expected = produced_and_stored(kafka, name, topic)
    assert produced_and_stored(kafkapy, name, topic) == expected
    assert topic == "compacted" or expected[0] == 0


def produced_and_stored(server: ServerProcess, name: str, topic: str) -> Any:
    """Produces the case and returns the error and the content of the log."""
    version, records = ACCEPTED[name]
    answer = produce(server, topic, records, version)
    seen: Any = (answer.error_code, answer.base_offset >= 0, version >= 2 and answer.log_append_time_ms >= 0)
    if not answer.error_code:
        found = stored(server, topic, answer.base_offset)
        is_append_time = found.timestamp_type == 1
        records_seen = [
            (record.offset - found.base_offset, None if is_append_time else record.timestamp, record.key, record.value)
            for record in found
        ]
        seen += (found.compression, is_append_time, found.base_timestamp, records_seen)
        if topic == "append-time":
            assert found.max_timestamp >= NOW_MS
            assert version < 2 or answer.log_append_time_ms == found.max_timestamp
    return seen


def test_append_time_set_by_a_producer(server: ServerProcess) -> None:
    """Kafka accepts append time from a producer for topics with create time, and refuses it for topics with append
    time."""
    for codec in (0, GZIP):
        records = message_set(magic=1, codec=codec, append_time=True)
        assert produce(server, "plain", records, 2).error_code == 0
        assert produce(server, "append-time", records, 2).error_code == TIMESTAMP


def test_malformed_fields_end_nothing_else(server: ServerProcess) -> None:
    """Lengths exceed the message: Kafka responds with UNKNOWN_SERVER_ERROR, kafkapy with CORRUPT_MESSAGE; both continue
    to serve."""
    for at, length in ((18, 200), (23, 2**31 - 1)):
        data = bytearray(one(0))
        struct.pack_into(">i", data, at, length)
        sealed = build_message(0, -1, None, None, magic=0)[:12] + bytes(4) + bytes(data[16:])
        assert produce(server, "plain", sealed, 0).error_code in (UNKNOWN, CORRUPT)
    assert produce(server, "plain", one(), 2).error_code == 0


# -- reading

READ_TOPIC = "read"
CODECS_READ = (0, GZIP, SNAPPY, LZ4, 0, ZSTD, 0)


def with_headers(codec: int) -> bytes:
    builder = RecordBatchBuilder(compression=codec)
    for timestamp_ms, key, value in ((NOW_MS, b"k", b"1"), (NOW_MS + 9, None, b"2"), (NOW_MS + 5, b"", None)):
        builder.append(timestamp_ms, key, value, [("h", b"x")])
    return builder.build()


@pytest.fixture(scope="module")
def read_topic(kafkapy: ServerProcess, kafka: ServerProcess) -> str:
    """Creates a topic on both servers, with seven batches of three records with headers; one batch is in zstd. Returns
    its name."""
    for server in (kafkapy, kafka):
        create_topic(server, READ_TOPIC)
        for codec in CODECS_READ:
            assert produce(server, READ_TOPIC, with_headers(codec), 9).error_code == 0
    return READ_TOPIC


def read_as_old_client(
    server: ServerProcess, topic: str, offset: int, version: int, max_bytes: int
) -> tuple[list[Any], int]:
    """Returns the messages up to the end of the log or an error, each (offset, timestamp, key, value, attributes), and
    the error."""
    seen: list[Any] = []
    while True:
        answer = fetch(server, topic, offset, version, max_bytes=max_bytes)
        if answer.error_code or offset >= answer.high_watermark:
            return seen, answer.error_code
        found = []
        for outer in iterate_messages(answer.records):
            assert outer.is_valid()
            assert outer.magic <= (1 if version >= 2 else 0)
            inner = open_wrapper(outer) if outer.compression else [outer]
            found += [(each.offset, each.timestamp, each.key, each.value, outer.attributes) for each in inner]
        new = [each for each in found if each[0] >= offset]
        assert new, f"no progress at {offset}"
        seen += new
        offset = new[-1][0] + 1


@pytest.mark.parametrize("max_bytes", [200, 1 << 20])
@pytest.mark.parametrize("version", range(4))
def test_old_clients_read_what_new_ones_wrote(
    kafkapy: ServerProcess, kafka: ServerProcess, read_topic: str, version: int, max_bytes: int
) -> None:
    seen, expected = (
        {
            start: read_as_old_client(server, read_topic, start, version, max_bytes)
            for start in (0, 1, 4, 13, 15, 17, 20)
        }
        for server in (kafkapy, kafka)
    )
    assert seen == expected
    records, error = seen[0]
    assert [each[0] for each in records] == list(range(15))
    assert error == UNSUPPORTED_COMPRESSION_TYPE
    assert seen[20] == ([(20, NOW_MS + 5 if version >= 2 else -1, b"", None, 0)], 0)


@pytest.mark.parametrize("version", range(13))
def test_a_topic_of_zstd(server: ServerProcess, version: int) -> None:
    assert produce(server, "zstd", batch(), 9).error_code == 0
    for offset in (0, 10_000):
        expected = UNSUPPORTED_COMPRESSION_TYPE if version < 10 else 1 if offset else 0
        assert fetch(server, "zstd", offset, version).error_code == expected
