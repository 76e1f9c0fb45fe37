"""Hostile bytes at the socket, from the size prefix to the body, close their connection and no other.

Apache Kafka 4.3.0 behaves in the same way for the same bytes.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pytest

from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest
from tests.api_client import ApiServer, ask, request_bytes
from tests.reactor_harness import frame, receive_frame

MODULES = {
    ApiKey.FIND_COORDINATOR: "tests.unit.server.scripted_handlers",
    ApiKey.HEARTBEAT: "tests.unit.server.scripted_handlers",
    ApiKey.API_VERSIONS: "kafkapy.server.handlers.api_versions",
}
VERSIONS = request_bytes(
    ApiKey.API_VERSIONS, 3, ApiVersionsRequest(client_software_name="tests", client_software_version="1.0")
)
HEARTBEAT = request_bytes(ApiKey.HEARTBEAT, 3, HeartbeatRequest(group_id="now", member_id="m"))
HEADER = struct.pack(">hhih", ApiKey.API_VERSIONS, 3, 7, 0) + b"\0"


@pytest.fixture
def server() -> Iterator[ApiServer]:
    running = ApiServer(MODULES)
    yield running
    running.close()
    assert running.harness.errors == []


def still_served(client: socket.socket) -> bool:
    request = ApiVersionsRequest(client_software_name="tests", client_software_version="1.0")
    return bool(ask(client, ApiKey.API_VERSIONS, 3, request, ApiVersionsResponse).api_keys)


@pytest.mark.parametrize(
    "stream",
    [
        pytest.param(struct.pack(">i", -1) + b"a", id="negative size"),
        pytest.param(struct.pack(">i", 2**31 - 1) + b"a", id="size of 2 GiB"),
        pytest.param(struct.pack(">i", 104857601), id="one byte over the limit"),
        pytest.param(frame(b""), id="size 0"),
        pytest.param(frame(b"abc"), id="size 3"),
        pytest.param(frame(struct.pack(">hhih", 999, 0, 7, -1)), id="unknown api key"),
        pytest.param(frame(struct.pack(">hhih", -1, 0, 7, -1)), id="negative api key"),
        pytest.param(frame(struct.pack(">hhih", ApiKey.PRODUCE, 13, 7, -1) + b"\0"), id="api without a handler"),
        pytest.param(frame(struct.pack(">hhih", ApiKey.HEARTBEAT, 4, 7, -1) + b"\0"), id="version too high"),
        pytest.param(frame(struct.pack(">hhih", ApiKey.HEARTBEAT, -1, 7, -1)), id="negative version"),
        pytest.param(frame(struct.pack(">hhih", ApiKey.HEARTBEAT, 3, 7, 30000) + b"me"), id="client id too long"),
        pytest.param(frame(struct.pack(">hhih", ApiKey.HEARTBEAT, 3, 7, -2)), id="client id of length -2"),
        pytest.param(frame(struct.pack(">hhih", ApiKey.HEARTBEAT, 3, 7, 2) + b"\xff\xfe"), id="client id no UTF-8"),
        pytest.param(frame(HEADER + b"\xff" * 11), id="varint of 11 bytes"),
        pytest.param(frame(HEADER + b"\xff\xff\xff\xff\x0f" + b"x"), id="string of 2^32-2 bytes"),
        pytest.param(frame(HEADER + b"\x02a\x02b\xff\xff\xff\xff\x0f"), id="4 thousand million tagged fields"),
        pytest.param(frame(HEADER[:-1] + b"\xff\xff\xff\xff\x0f"), id="tagged fields of the header"),
    ],
)
def test_the_connection_is_closed_and_the_others_go_on(server: ApiServer, stream: bytes) -> None:
    other, client = server.connect(), server.connect()
    client.sendall(stream)
    assert client.recv(1) == b""
    assert still_served(other)


@pytest.mark.parametrize("request_", [VERSIONS, HEARTBEAT], ids=["flexible", "not flexible"])
def test_a_request_cut_anywhere_closes_the_connection(server: ApiServer, request_: bytes) -> None:
    for size in range(len(request_)):
        client = server.connect()
        client.sendall(frame(request_[:size]))
        assert client.recv(1) == b"", f"cut at {size}"
    assert still_served(server.connect())


def test_bytes_behind_the_body_are_ignored(server: ApiServer) -> None:
    client = server.connect()
    client.sendall(frame(VERSIONS + b"more") + frame(VERSIONS))
    assert receive_frame(client) == receive_frame(client)


def test_answers_before_the_violation_arrive(server: ApiServer) -> None:
    client = server.connect()
    client.sendall(frame(VERSIONS) * 3 + struct.pack(">i", -5))
    for _ in range(3):
        assert receive_frame(client)[:4] == b"\0\0\0\7"
    assert client.recv(1) == b""


def test_a_thousand_bad_clients_leave_no_memory_behind(server: ApiServer) -> None:
    for number in range(1000):
        with server.connect() as client:
            client.sendall(struct.pack(">i", 1_000_000 if number % 2 else -number) + b"x" * 2000)
    assert still_served(server.connect())
    server.harness.call(lambda: None)
    counters = server.harness.reactor.counters()
    assert counters["slab_bytes"] < 4_000_000
