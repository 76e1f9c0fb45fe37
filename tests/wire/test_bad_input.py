"""Bad input to a running broker, with Apache Kafka as the reference: each case is sent to both, and both must respond
in the same way.

A bad frame ends that connection only; a bad request gets its error code; other connections go on, and the memory of the
broker stays bounded.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkapy._core.bytes.crc32c import crc32c
from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.protocol.api import ApiKey, response_header_version
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.header import ResponseHeader
from kafkapy.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from tests.api_client import request_bytes
from tests.broker_process import BrokerProcess
from tests.old_client import create_topic
from tests.peers import ApacheKafka
from tests.reactor_harness import frame, receive_frame
from tests.server_process import ServerProcess

TOPIC = "bad-input"
PRODUCE_VERSION = 9
MEMORY_GROWTH_MB = 64
NOW_MS = int(time.time() * 1000)

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]


@pytest.fixture(scope="module", params=["kafkapy", "kafka"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    directory = tmp_path_factory.mktemp(request.param)
    limits = {
        "socket.request.max.bytes": "5000000",
        "message.max.bytes": "100000",
        "auto.create.topics.enable": "false",
    }
    process: ServerProcess
    if request.param == "kafka":
        process = ApacheKafka(request.getfixturevalue("kafka_43"), directory, properties=limits)
    else:
        process = BrokerProcess(directory, limits)
    with process:
        create_topic(process, TOPIC)
        yield process


def dial(server: ServerProcess) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def ask(server: ServerProcess, key: ApiKey, version: int, body: Any, response_class: Any) -> Any:
    with dial(server) as client:
        client.sendall(frame(request_bytes(key, version, body)))
        return decode(receive_frame(client), key, version, response_class)


def decode(payload: bytes, key: ApiKey, version: int, response_class: Any) -> Any:
    header_size = len(ResponseHeader(correlation_id=7).encode(response_header_version(key, version)))
    return response_class.decode(payload, version, header_size)


def is_closed_by(server: ServerProcess, data: bytes) -> bool:
    """Returns whether the broker ends a connection that sends `data`, without a response."""
    with dial(server) as client:
        client.sendall(data)
        try:
            return client.recv(1) == b""
        except ConnectionResetError:
            return True


def is_serving(server: ServerProcess) -> bool:
    answer = ask(server, ApiKey.API_VERSIONS, 0, ApiVersionsRequest(), ApiVersionsResponse)
    return answer.error_code == 0 and len(answer.api_keys) > 10


def memory_mb(server: ServerProcess) -> float:
    for line in Path(f"/proc/{server.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


METADATA = request_bytes(ApiKey.METADATA, 1, MetadataRequest(topics=[]))
HEADER_ONLY = struct.pack(">hhih", 3, 1, 7, -1)

CLOSING_FRAMES = {
    "longer than the limit": struct.pack(">i", 5_000_001) + b"x",
    "the longest": struct.pack(">i", 2**31 - 1) + b"x",
    "a negative length": struct.pack(">i", -1),
    "the most negative length": struct.pack(">i", -(2**31)),
    "no header": frame(b""),
    "half a header": frame(b"\0\3\0"),
    "half a header of ApiVersions": frame(b"\0\x12\xff\xff\0"),
    "only the API key of ApiVersions": frame(b"\0\x12"),
    "an unknown API key": frame(struct.pack(">hhih", 999, 0, 7, -1)),
    "a negative API key": frame(struct.pack(">hhih", -5, 0, 7, -1)),
    "an unknown version": frame(struct.pack(">hhih", 3, 99, 7, -1) + b"\0\0\0\0"),
    "a truncated body": frame(METADATA[:-2]),
    "no body": frame(HEADER_ONLY),
    "an array count of 2^31-1": frame(HEADER_ONLY + struct.pack(">i", 2**31 - 1)),
    "a string longer than the frame": frame(HEADER_ONLY + struct.pack(">ih", 1, 30000)),
    "a varint of 11 bytes": frame(struct.pack(">hhih", 3, 9, 7, -1) + b"\0" + b"\xff" * 10 + b"\x01"),
    "a compact array count of 2^31-1": frame(struct.pack(">hhih", 3, 9, 7, -1) + b"\0" + b"\xff\xff\xff\xff\x07"),
    "a client id cut short": frame(struct.pack(">hhih", 3, 1, 7, 500) + b"abc"),
}


@pytest.mark.parametrize("data", CLOSING_FRAMES.values(), ids=CLOSING_FRAMES.keys())
def test_a_bad_frame_ends_its_connection_only(server: ServerProcess, data: bytes) -> None:
    with dial(server) as other:
        other.sendall(frame(METADATA[:4] + struct.pack(">i", 7) + METADATA[8:])[:10])  # the start of a valid request
        assert is_closed_by(server, data)
        other.sendall(frame(METADATA)[10:])
        assert decode(receive_frame(other), ApiKey.METADATA, 1, MetadataResponse).brokers
    assert is_serving(server)


@pytest.mark.parametrize("server", ["kafkapy"], indirect=True)
@pytest.mark.parametrize("frame_name", ["an unknown API key", "no header", "half a header of ApiVersions"])
def test_a_bad_frame_gets_one_line_in_the_log(server: ServerProcess, frame_name: str) -> None:
    before = len(server.log().splitlines())
    assert is_closed_by(server, CLOSING_FRAMES[frame_name])
    deadline = time.monotonic() + 10
    while len(server.log().splitlines()) == before:  # the line is written after the connection has ended
        assert time.monotonic() < deadline, "no line in the log"
        time.sleep(0.01)
    assert is_serving(server)
    lines = server.log().splitlines()[before:]
    assert len(lines) == 1, lines
    assert "/127.0.0.1:" in lines[0]


@pytest.mark.parametrize("server", ["kafkapy"], indirect=True)
def test_bad_frames_cost_no_memory(server: ServerProcess) -> None:
    """The broker allocates memory for received bytes only, and not for the 5 MB that each of two hundred incomplete
    requests announces."""
    before = memory_mb(server)
    held = [dial(server) for _ in range(200)]
    for client in held:
        client.sendall(struct.pack(">i", 4_999_999) + b"x" * 100)
    for _ in range(50):
        assert is_closed_by(server, CLOSING_FRAMES["an array count of 2^31-1"])
    assert is_serving(server)
    assert memory_mb(server) - before < MEMORY_GROWTH_MB
    for client in held:
        client.close()


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(server: ServerProcess) -> None:
    with dial(server) as client:
        client.sendall(frame(struct.pack(">hhih", 18, 99, 7, -1) + b"\0"))
        answer = decode(receive_frame(client), ApiKey.API_VERSIONS, 0, ApiVersionsResponse)
    assert answer.error_code == 35
    assert [(each.api_key, each.min_version, each.max_version >= 3) for each in answer.api_keys] == [(18, 0, True)]


def batch(codec: int = 0, *, timestamp_ms: int = NOW_MS, value: bytes = b"value", count: int = 3) -> bytes:
    builder = RecordBatchBuilder(compression=codec)
    for index in range(count):
        builder.append(timestamp_ms, b"%d" % index, value)
    return builder.build()


def resealed(data: bytes | bytearray) -> bytes:
    """Returns the batch with a correct checksum."""
    sealed = bytearray(data)
    struct.pack_into(">I", sealed, 17, crc32c(bytes(sealed[21:])))
    return bytes(sealed)


def changed(data: bytes, position: int, new: bytes, *, seal: bool = True) -> bytes:
    edited = bytearray(data)
    edited[position : position + len(new)] = new
    return resealed(edited) if seal else bytes(edited)


def compressed_garbage(codec: int) -> bytes:
    whole = batch(codec)
    return resealed(whole[:61] + b"\xfe" * (len(whole) - 61))


def bomb(codec: int) -> bytes:
    """Returns a batch that is far smaller than `message.max.bytes`, and far larger when it is decompressed."""
    return batch(codec, value=bytes(30_000_000), count=1)


LAST_OFFSET_DELTA, RECORD_COUNT = 23, 57
BATCHES = {
    "good": (batch, 0),
    "a wrong CRC": (lambda: changed(batch(), 70, b"\xff", seal=False), 2),
    "a wrong CRC, compressed": (lambda: changed(batch(3), 70, b"\xff", seal=False), 2),
    "one record too many": (lambda: changed(batch(), RECORD_COUNT, struct.pack(">i", 4)), 87),
    "one record too few": (lambda: changed(batch(), RECORD_COUNT, struct.pack(">i", 2)), 87),
    "one record too many, gzip": (lambda: changed(batch(1), RECORD_COUNT, struct.pack(">i", 4)), 87),
    "one record too few, lz4": (lambda: changed(batch(3), RECORD_COUNT, struct.pack(">i", 2)), 87),
    "offset deltas that do not fit": (lambda: changed(batch(), LAST_OFFSET_DELTA, struct.pack(">i", 9)), 87),
    "offset deltas that do not fit, zstd": (lambda: changed(batch(4), LAST_OFFSET_DELTA, struct.pack(">i", 9)), 87),
    "compressed garbage, gzip": (lambda: compressed_garbage(1), -1),
    "compressed garbage, snappy": (lambda: compressed_garbage(2), -1),
    "compressed garbage, lz4": (lambda: compressed_garbage(3), -1),
    "compressed garbage, zstd": (lambda: compressed_garbage(4), -1),
    "two hours ahead": (lambda: batch(timestamp_ms=NOW_MS + 2 * 3600 * 1000), 32),
    "too large": (lambda: batch(value=bytes(60_000)), 10),
}


def produce(server: ServerProcess, records: bytes, topic: str = TOPIC) -> int:
    data = ProduceRequest.PartitionProduceData(index=0, records=records)
    request = ProduceRequest(
        acks=1, timeout_ms=10000, topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
    )
    answer = ask(server, ApiKey.PRODUCE, PRODUCE_VERSION, request, ProduceResponse)
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


@pytest.mark.parametrize("name", BATCHES)
def test_a_bad_batch_gets_its_code(server: ServerProcess, name: str) -> None:
    build, expected = BATCHES[name]
    assert produce(server, build()) == expected
    assert is_serving(server)


def test_an_unknown_topic(server: ServerProcess) -> None:
    assert produce(server, batch(), "never-created") == 3


@pytest.mark.parametrize("codec", [1, 3, 4], ids=["gzip", "lz4", "zstd"])
def test_a_compressed_bomb_costs_no_memory(server: ServerProcess, codec: int) -> None:
    before = memory_mb(server)
    packed = bomb(codec)
    expected = 0 if len(packed) <= 100_000 else 10
    for _ in range(3):
        code = produce(server, packed)
        assert code in (expected, 10)
    if not isinstance(server, ApacheKafka):
        assert memory_mb(server) - before < MEMORY_GROWTH_MB
    assert is_serving(server)


@pytest.mark.parametrize("offset", [10_000, -5])
def test_an_offset_out_of_range(server: ServerProcess, offset: int) -> None:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1000)
    request = FetchRequest(
        replica_id=-1, max_wait_ms=100, min_bytes=1, max_bytes=1000,
        topics=[FetchRequest.FetchTopic(topic=TOPIC, partitions=[partition])],
    )  # fmt: skip
    answer = ask(server, ApiKey.FETCH, 11, request, FetchResponse)
    assert answer.responses[0].partitions[0].error_code == 1
