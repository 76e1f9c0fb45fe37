"""Listeners of brokers and of controllers: each serves the APIs that Kafka serves there, and no other."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from kafkapy.errors import Error
from kafkapy.metadata.cluster_image import ControllerRegistration, Endpoint
from kafkapy.metadata.image import EMPTY_IMAGE, MetadataCache, MetadataImage
from kafkapy.protocol.api import API_TABLE, ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kafkapy.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kafkapy.protocol.messages.envelope import EnvelopeRequest
from kafkapy.protocol.messages.produce import ProduceRequest
from tests.api_client import ApiServer, ask, request_bytes
from tests.harness.controller import MemoryController
from tests.reactor_harness import TIMEOUT, frame


def image_with_controllers() -> MetadataImage:
    controllers = {
        number: ControllerRegistration(
            number, bytes([number] * 16), False, {"CONTROLLER": Endpoint("CONTROLLER", "host", 9090 + number, 0)}, {}
        )
        for number in (1, 2)
    }
    other = ControllerRegistration(3, bytes(16), False, {"OTHER": Endpoint("OTHER", "host", 1, 0)}, {})
    return EMPTY_IMAGE._replace(controllers={**controllers, 3: other}, features={"metadata.version": 30})


@pytest.fixture
def server() -> Iterator[ApiServer]:
    controller = MemoryController(MetadataCache(image_with_controllers()))
    running = ApiServer(image=controller.image, controller=controller)
    yield running
    running.close()
    assert running.harness.errors == []


def connect(server: ApiServer, listener: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.listen(listener)), TIMEOUT)


def api_versions(client: socket.socket) -> dict[int, tuple[int, int]]:
    request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    response = ask(client, ApiKey.API_VERSIONS, 3, request, ApiVersionsResponse)
    assert response.error_code == 0
    return {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}


def test_api_versions_of_a_controller_lists_only_what_controllers_serve(server: ApiServer) -> None:
    with connect(server, "CONTROLLER") as client:
        served = api_versions(client)
    assert {ApiKey.ENVELOPE, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_CLUSTER} <= set(served)
    for key in served:
        assert "controller" in API_TABLE[ApiKey(key)].listeners


def test_api_versions_of_a_broker_lists_only_what_brokers_serve(server: ApiServer) -> None:
    with connect(server, "PLAINTEXT") as client:
        served = api_versions(client)
    assert {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.CREATE_TOPICS} <= set(served)
    for key in served:
        assert "broker" in API_TABLE[ApiKey(key)].listeners


@pytest.mark.parametrize(
    ("listener", "key", "version", "request_message"),
    [
        ("CONTROLLER", ApiKey.PRODUCE, 9, ProduceRequest(acks=1)),
        ("PLAINTEXT", ApiKey.ENVELOPE, 0, EnvelopeRequest(request_data=b"", client_host_address=b"")),
    ],
)
def test_an_api_of_the_other_listener_closes_the_connection(
    server: ApiServer, listener: str, key: ApiKey, version: int, request_message: ProduceRequest | EnvelopeRequest
) -> None:
    with connect(server, listener) as client:
        client.sendall(frame(request_bytes(key, version, request_message)))
        assert client.recv(1) == b""


@pytest.mark.parametrize("version", [1, 2])
def test_a_controller_describes_the_controllers_of_its_listener(server: ApiServer, version: int) -> None:
    with connect(server, "CONTROLLER") as client:
        request = DescribeClusterRequest(endpoint_type=2)
        response = ask(client, ApiKey.DESCRIBE_CLUSTER, version, request, DescribeClusterResponse)
    assert (response.error_code, response.endpoint_type, response.cluster_id) == (0, 2, "cluster")
    assert response.controller_id == 1
    assert [(each.broker_id, each.host, each.port) for each in response.brokers] == [
        (1, "host", 9091),
        (2, "host", 9092),
    ]


def test_the_active_controller_is_the_leader_of_the_quorum_or_unknown(server: ApiServer) -> None:
    assert server.services.active_controller_id() == 1
    server.services.controller.is_active = False  # type: ignore[misc]
    assert server.services.active_controller_id() == -1
    server.services.quorum_leader = lambda: 2
    assert server.services.active_controller_id() == 2


@pytest.mark.parametrize(("listener", "kind"), [("CONTROLLER", 1), ("PLAINTEXT", 2)])
def test_the_other_endpoint_type_is_mismatched(server: ApiServer, listener: str, kind: int) -> None:
    with connect(server, listener) as client:
        request = DescribeClusterRequest(endpoint_type=kind)
        response = ask(client, ApiKey.DESCRIBE_CLUSTER, 1, request, DescribeClusterResponse)
    assert response.error_code == Error.MISMATCHED_ENDPOINT_TYPE == 114
    wanted, served = ("BROKER", "CONTROLLER") if kind == 1 else ("CONTROLLER", "BROKER")
    assert f"of type {served}, but we wanted an endpoint of type {wanted}" in response.error_message


def test_a_controller_of_an_old_metadata_version_does_not_describe_the_cluster(server: ApiServer) -> None:
    cache = server.services.metadata
    cache.image = cache.image._replace(features={"metadata.version": 14})
    with connect(server, "CONTROLLER") as client:
        request = DescribeClusterRequest(endpoint_type=2)
        response = ask(client, ApiKey.DESCRIBE_CLUSTER, 1, request, DescribeClusterResponse)
    assert response.error_code == Error.UNSUPPORTED_VERSION


@pytest.mark.parametrize("is_active", [True, False])
def test_only_the_active_controller_creates_topics(server: ApiServer, is_active: bool) -> None:
    server.services.controller.is_active = is_active  # type: ignore[misc]
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=0, replication_factor=1)
    with connect(server, "CONTROLLER") as client:
        response = ask(client, ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic]), CreateTopicsResponse)
    expected = Error.INVALID_PARTITIONS if is_active else Error.NOT_CONTROLLER
    assert [each.error_code for each in response.topics] == [expected]
