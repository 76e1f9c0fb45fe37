"""ApiVersions: the responses of Apache Kafka 4.3.0 to the same bytes."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from kafkapy.errors import Error
from kafkapy.metadata.image import EMPTY_IMAGE
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.api_client import ApiServer, ask, request_bytes
from tests.reactor_harness import frame, receive_frame

SCRIPTED = "tests.unit.server.scripted_handlers"
MODULES = {
    ApiKey.FIND_COORDINATOR: SCRIPTED,
    ApiKey.HEARTBEAT: SCRIPTED,
    ApiKey.API_VERSIONS: "kafkapy.server.handlers.api_versions",
}
IMAGE = EMPTY_IMAGE._replace(offset=257, features={"group.version": 1, "metadata.version": 30, "share.version": 0})
# Correlation id 7, error 35, one API: 18, versions 0 to 4.
UNSUPPORTED = bytes.fromhex("00000007 0023 00000001 0012 0000 0004")
# Correlation id 7, error 42, an empty table, no throttling, no tagged fields.
INVALID = bytes.fromhex("00000007 002a 01 00000000 00")


@pytest.fixture
def server() -> Iterator[ApiServer]:
    running = ApiServer(MODULES, IMAGE)
    yield running
    running.close()


@pytest.fixture
def client(server: ApiServer) -> socket.socket:
    return server.connect()


def versions(client: socket.socket, version: int, name: str = "tests", release: str = "1.0") -> ApiVersionsResponse:
    request = ApiVersionsRequest()
    if version >= 3:
        request = ApiVersionsRequest(client_software_name=name, client_software_version=release)
    answer: ApiVersionsResponse = ask(client, ApiKey.API_VERSIONS, version, request, ApiVersionsResponse)
    return answer


@pytest.mark.parametrize("version", range(5))
def test_the_table_is_what_the_registry_serves(client: socket.socket, version: int) -> None:
    answer = versions(client, version)
    assert answer.error_code == 0
    assert [(row.api_key, row.min_version, row.max_version) for row in answer.api_keys] == [
        (10, 0, 2), (12, 0, 3), (18, 0, 4),
    ]  # fmt: skip


def test_features_and_their_epoch(client: socket.socket) -> None:
    answer = versions(client, 4)
    supported = {row.name: (row.min_version, row.max_version) for row in answer.supported_features}
    assert supported == {
        "group.version": (0, 1), "kraft.version": (0, 1), "metadata.version": (7, 30), "share.version": (0, 1),
        "streams.version": (0, 1), "transaction.version": (0, 2), "eligible.leader.replicas.version": (0, 1),
    }  # fmt: skip
    finalized = {row.name: (row.min_version_level, row.max_version_level) for row in answer.finalized_features}
    assert finalized == {"group.version": (1, 1), "metadata.version": (30, 30)}
    assert answer.finalized_features_epoch == 256
    assert answer.zk_migration_ready is False


def test_the_version_of_the_quorum_is_finalized_too(server: ApiServer, client: socket.socket) -> None:
    server.services.kraft_version = lambda: 1
    finalized = {row.name: row.max_version_level for row in versions(client, 4).finalized_features}
    assert finalized == {"group.version": 1, "metadata.version": 30, "kraft.version": 1}


def test_version_3_does_not_show_features_that_begin_at_level_0(client: socket.socket) -> None:
    assert [row.name for row in versions(client, 3).supported_features] == ["metadata.version"]


def test_the_client_software_is_remembered(server: ApiServer, client: socket.socket) -> None:
    versions(client, 3, "apache-kafka-java", "4.3.0")
    session = server.harness.connections[0].state
    assert (session.client_software_name, session.client_software_version) == ("apache-kafka-java", "4.3.0")


@pytest.mark.parametrize(
    ("name", "release"), [("bad name!", "2.0"), ("", "2.0"), ("ok", ""), ("-ok", "1"), ("ok", "1.0-"), ("ok\n", "1")]
)
def test_a_bad_client_software_name_is_an_invalid_request(client: socket.socket, name: str, release: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=release)
    client.sendall(frame(request_bytes(ApiKey.API_VERSIONS, 3, request)))
    assert receive_frame(client) == INVALID
    assert versions(client, 3).error_code == 0


@pytest.mark.parametrize("version", [5, 99, 32767])
def test_an_unknown_version_is_answered_in_version_0(client: socket.socket, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="a", client_software_version="b").encode(3)
    client.sendall(frame(request_bytes(ApiKey.API_VERSIONS, version, request)))
    assert receive_frame(client) == UNSUPPORTED
    assert versions(client, 4).error_code == Error.NONE


def test_a_negative_version_too(client: socket.socket) -> None:
    client.sendall(frame(bytes.fromhex("0012 ffff 00000007 0002 6d65")))
    assert receive_frame(client) == UNSUPPORTED
