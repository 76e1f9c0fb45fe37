"""Requests that a broker forwards to the active controller in an Envelope, over real sockets.

`Cluster` has a broker with a listener for clients, and two controllers.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from kafkapy._core.reactor.reactor import Connection
from kafkapy.controller.reassignments import alter_partition_reassignments
from kafkapy.errors import Error
from kafkapy.metadata.image import EMPTY_IMAGE, MetadataCache
from kafkapy.nodes.controller_channel import ControllerChannel
from kafkapy.nodes.node_channel import Destination
from kafkapy.nodes.node_thread import NodeThread
from kafkapy.protocol.api import ApiKey, decode_request_header
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kafkapy.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from kafkapy.protocol.messages.header import ResponseHeader
from kafkapy.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkapy.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafkapy.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.security.acl import Operation, ResourceType
from kafkapy.security.principal import Principal
from kafkapy.server.auto_topic_creation import create_missing_topic
from kafkapy.server.forwarding import Forwarding
from kafkapy.server.internal_topics import create_internal_topic
from kafkapy.server.request_context import Session
from kafkapy.types import TopicPartition
from tests.api_client import ApiServer, ask, request_bytes
from tests.harness.controller import MemoryController
from tests.harness.granted_operations import GrantedOperations
from tests.harness.metadata import bootstrapped, commit, with_brokers, with_topic
from tests.harness.stub_node import StubNode
from tests.reactor_harness import TIMEOUT, frame, receive_frame

ANONYMOUS_PRINCIPAL = b"\0\0\x05User\x0aANONYMOUS\0\0"
ALICE = b"\0\0\x05User\x06alice\0\0"
LOCALHOST = socket.inet_aton("127.0.0.1")
TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
SET = 0
LOGGER = "kafka.server.KafkaApis"


class Cluster:
    """A broker that forwards to the node that `active` names."""

    def __init__(self, *, is_combined: bool = False) -> None:
        self.thread = NodeThread()
        self.active: Destination | None = None
        self.timeout_ms = 60_000
        self.local = MemoryController(MetadataCache(EMPTY_IMAGE), is_active=is_combined)
        self.controllers = [MemoryController(MetadataCache(EMPTY_IMAGE)) for _ in range(2)]
        self.servers = [ApiServer(controller=each, image=each.image) for each in self.controllers]
        self.addresses = [
            Destination(number, "127.0.0.1", each.listen("CONTROLLER")) for number, each in enumerate(self.servers)
        ]
        self.broker = ApiServer(controller=self.local, make_forwarding=self._make_forwarding)

    def _make_forwarding(self, post: Callable[[Callable[[], None]], None]) -> Forwarding:
        self.channel = ControllerChannel(
            self.thread,
            lambda: self.active,
            client_id="broker",
            request_timeout_ms=30_000,
            retry_timeout_ms=self.timeout_ms,
        )
        return Forwarding(self.channel, post)

    def close(self) -> None:
        self.thread.stop()
        for each in (self.broker, *self.servers):
            each.close()
            assert each.harness.errors == []


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    running = Cluster()
    yield running
    running.close()


def create(client: socket.socket, name: str = "t", version: int = 7) -> list[tuple[str, int]]:
    """Asks for a topic that every controller refuses, because it has no partitions."""
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=0, replication_factor=1)
    response = ask(client, ApiKey.CREATE_TOPICS, version, CreateTopicsRequest(topics=[topic]), CreateTopicsResponse)
    return [(each.name, each.error_code) for each in response.topics]


@pytest.mark.parametrize("version", [2, 5, 7])
def test_the_active_controller_handles_a_request_of_a_client(cluster: Cluster, version: int) -> None:
    cluster.active = cluster.addresses[0]
    assert create(cluster.broker.connect(), version=version) == [("t", Error.INVALID_PARTITIONS)]
    assert cluster.controllers[0].submitted == 1
    assert cluster.local.submitted == 0


def test_a_controller_that_is_not_active_lets_the_broker_find_the_active_one(cluster: Cluster) -> None:
    first, second = cluster.controllers
    first.is_active = False
    cluster.active = cluster.addresses[0]
    found = iter([cluster.addresses[0]])
    cluster.channel._find_controller = lambda: next(found, cluster.addresses[1])
    assert create(cluster.broker.connect()) == [("t", Error.INVALID_PARTITIONS)]
    assert (first.submitted, second.submitted) == (0, 1)


def test_a_controller_that_resigns_before_the_commit_lets_the_broker_find_the_next_one(cluster: Cluster) -> None:
    first, second = cluster.controllers
    first.held = []
    cluster.active = cluster.addresses[0]
    client = cluster.broker.connect()
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=0, replication_factor=1)
    client.sendall(frame(request_bytes(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic]))))
    while not first.held:
        cluster.servers[0].harness.call(lambda: None)
    cluster.active = cluster.addresses[1]
    first.is_active = False
    first.release()
    assert create(client, "next") == [("t", Error.INVALID_PARTITIONS)]
    assert second.submitted >= 1


def test_a_combined_node_runs_the_operation_itself_while_it_is_active() -> None:
    cluster = Cluster(is_combined=True)
    assert create(cluster.broker.connect()) == [("t", Error.INVALID_PARTITIONS)]
    assert cluster.local.submitted == 1
    cluster.close()


def test_an_operation_of_a_combined_node_that_has_resigned_is_forwarded() -> None:
    cluster = Cluster(is_combined=True)
    cluster.active = cluster.addresses[1]
    cluster.local.held = []
    client = cluster.broker.connect()
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=0, replication_factor=1)
    client.sendall(frame(request_bytes(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic]))))
    while not cluster.local.held:
        cluster.broker.harness.call(lambda: None)
    cluster.local.is_active = False
    cluster.local.release()
    assert create(client, "next") == [("t", Error.INVALID_PARTITIONS)]
    assert cluster.controllers[1].submitted >= 1
    cluster.close()


def test_a_controller_that_has_lost_the_leadership_lists_no_reassignments() -> None:
    """The successor may have cancelled them; only the commit of a record shows that a node still leads."""
    image = with_topic(with_brokers(bootstrapped(), 1, 2), "t")
    moving = commit(image, alter_partition_reassignments(image, [(TopicPartition("t", 0), [2])]))
    request = ListPartitionReassignmentsRequest(topics=None)
    with closing(Cluster(is_combined=True)) as cluster:
        cluster.local.cache.image, cluster.local.epoch = moving, moving.epoch
        cluster.broker.services.metadata = cluster.local.cache
        client = cluster.broker.connect()
        response = ask(client, ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request, ListPartitionReassignmentsResponse)
        assert [topic.name for topic in response.topics] == ["t"]
        cluster.active = cluster.addresses[1]
        cluster.local.held = []
        client.sendall(frame(request_bytes(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, request)))
        while not cluster.local.held:
            cluster.broker.harness.call(lambda: None)
        cluster.local.is_active = False
        cluster.local.release()
        answer = receive_frame(client)
        header_size = len(ResponseHeader(correlation_id=7).encode(1))
        assert ListPartitionReassignmentsResponse.decode(answer, 0, header_size).topics == []
        assert cluster.controllers[1].submitted == 1


def test_the_envelope_has_the_request_the_anonymous_principal_and_the_clients_address(cluster: Cluster) -> None:
    with StubNode({ApiKey.ENVELOPE: lambda request, version: EnvelopeResponse(error_code=0)}) as node:
        cluster.active = Destination(7, "127.0.0.1", node.port)
        assert create(cluster.broker.connect()) == [("t", Error.UNKNOWN_SERVER_ERROR)]
        [envelope] = node.of(ApiKey.ENVELOPE)
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=0, replication_factor=1)
    sent = request_bytes(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic]))
    assert bytes(envelope.request_data) == sent
    assert bytes(envelope.client_host_address) == LOCALHOST
    assert bytes(envelope.request_principal) == ANONYMOUS_PRINCIPAL


@pytest.mark.parametrize(
    "error", [Error.CLUSTER_AUTHORIZATION_FAILED, Error.INVALID_REQUEST, Error.PRINCIPAL_DESERIALIZATION_FAILURE]
)
def test_an_error_of_the_envelope_is_an_unknown_server_error_for_the_client(cluster: Cluster, error: Error) -> None:
    with StubNode({ApiKey.ENVELOPE: lambda request, version: EnvelopeResponse(error_code=error)}) as node:
        cluster.active = Destination(7, "127.0.0.1", node.port)
        assert create(cluster.broker.connect()) == [("t", Error.UNKNOWN_SERVER_ERROR)]


def test_a_version_that_the_controller_cannot_read_closes_the_clients_connection(cluster: Cluster) -> None:
    unsupported = EnvelopeResponse(error_code=Error.UNSUPPORTED_VERSION)
    with StubNode({ApiKey.ENVELOPE: lambda request, version: unsupported}) as node:
        cluster.active = Destination(7, "127.0.0.1", node.port)
        client = cluster.broker.connect()
        with pytest.raises(ConnectionResetError, match="the connection ended"):
            create(client)


def test_without_a_controller_the_request_times_out() -> None:
    cluster = Cluster()
    cluster.channel._retry_timeout_ms = 50
    assert create(cluster.broker.connect()) == [("t", Error.REQUEST_TIMED_OUT)]
    cluster.close()


def test_a_broker_announces_the_versions_of_forwarded_apis_that_the_controller_serves(cluster: Cluster) -> None:
    client = cluster.broker.connect()

    def announced() -> dict[int, tuple[int, int]]:
        request = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
        response = ask(client, ApiKey.API_VERSIONS, 3, request, ApiVersionsResponse)
        return {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}

    before = announced()
    with StubNode({ApiKey.ENVELOPE: lambda request, version: EnvelopeResponse(error_code=0)}) as node:
        node.versions[ApiKey.CREATE_TOPICS] = (3, 6)
        node.versions[ApiKey.ELECT_LEADERS] = None
        node.versions[ApiKey.PRODUCE] = None
        cluster.active = Destination(7, "127.0.0.1", node.port)
        create(client)
        after = announced()
    assert before[ApiKey.CREATE_TOPICS] == (0, 7)
    assert after[ApiKey.CREATE_TOPICS] == (3, 6)
    assert ApiKey.ELECT_LEADERS in before
    assert ApiKey.ELECT_LEADERS not in after
    assert after[ApiKey.PRODUCE] == before[ApiKey.PRODUCE]


def test_a_topic_that_a_client_names_is_requested_once_with_the_brokers_defaults(cluster: Cluster) -> None:
    release = threading.Event()

    def create(request: CreateTopicsRequest, version: int) -> CreateTopicsResponse:
        assert release.wait(TIMEOUT)
        result = CreateTopicsResponse.CreatableTopicResult(name=request.topics[0].name)
        return CreateTopicsResponse(topics=[result])

    with StubNode({ApiKey.CREATE_TOPICS: create}) as node:
        cluster.active = Destination(7, "127.0.0.1", node.port)
        services = cluster.broker.services
        for _ in range(3):
            cluster.broker.harness.call(lambda: create_missing_topic(services, "new"))
        cluster.broker.harness.call(lambda: create_internal_topic(services, "__consumer_offsets"))
        release.set()
        while len(node.of(ApiKey.CREATE_TOPICS)) < 2:
            cluster.broker.harness.call(lambda: None)
        [new], [offsets] = [request.topics for request in node.of(ApiKey.CREATE_TOPICS)]
    assert (new.name, new.num_partitions, new.replication_factor) == ("new", 1, 1)
    assert (offsets.name, offsets.num_partitions, offsets.replication_factor) == ("__consumer_offsets", 50, 3)
    assert {each.name: each.value for each in offsets.configs}["cleanup.policy"] == "compact"


def test_a_topic_that_a_client_names_is_requested_in_its_name(cluster: Cluster) -> None:
    with StubNode({ApiKey.ENVELOPE: lambda request, version: EnvelopeResponse(error_code=0)}) as node:
        cluster.active = Destination(7, "127.0.0.1", node.port)
        node.versions[ApiKey.CREATE_TOPICS] = (2, 5)
        asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="new")])
        with accepted(as_user(cluster.broker, "alice")) as client:
            ask(client, ApiKey.METADATA, 9, asked, MetadataResponse)
        while not node.of(ApiKey.ENVELOPE):
            cluster.broker.harness.call(lambda: None)
        [envelope] = node.of(ApiKey.ENVELOPE)
    assert bytes(envelope.request_principal) == ALICE
    header, position = decode_request_header(memoryview(envelope.request_data))
    assert (header.request_api_key, header.request_api_version) == (ApiKey.CREATE_TOPICS, 5)
    created = CreateTopicsRequest.decode(envelope.request_data, 5, position)
    assert [each.name for each in created.topics] == ["new"]


def accepted(server: ApiServer) -> socket.socket:
    """Returns a connection to the listener PLAINTEXT of the server."""
    return socket.create_connection(("127.0.0.1", server.listen("PLAINTEXT")), TIMEOUT)


def as_user(server: ApiServer, name: str) -> ApiServer:
    """Makes the clients of the server's new connections the user `name`."""

    def new_session(connection: Connection) -> Session:
        session = Session()
        session.principal = Principal("User", name)
        return session

    server.dispatcher._new_session = new_session  # type: ignore[method-assign]
    return server


def test_a_combined_node_creates_a_missing_topic_itself_while_it_is_active() -> None:
    cluster = Cluster(is_combined=True)
    services = cluster.broker.services
    cluster.broker.harness.call(lambda: create_missing_topic(services, "new"))
    assert cluster.local.submitted == 1
    cluster.close()


def alter(
    client: socket.socket, *resources: tuple[int, str, str, str]
) -> dict[tuple[int, str], tuple[int, str | None]]:
    request = IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=SET, value=value)],
            )
            for kind, name, key, value in resources
        ]
    )
    response = ask(client, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request, IncrementalAlterConfigsResponse)
    return {
        (each.resource_type, each.resource_name): (each.error_code, each.error_message) for each in response.responses
    }


def test_a_broker_sets_its_own_loggers_and_forwards_the_other_resources(cluster: Cluster) -> None:
    cluster.active = cluster.addresses[0]
    results = alter(
        cluster.broker.connect(),
        (BROKER_LOGGER, "1", LOGGER, "INFO"),
        (BROKER, "9", "num.io.threads", "2"),
        (BROKER, "", "log.cleaner.threads", "2"),
        (TOPIC, "missing", "retention.ms", "1"),
    )
    assert results[BROKER_LOGGER, "1"][0] == 0
    assert results[BROKER, "9"][0] == Error.INVALID_REQUEST
    assert results[BROKER, ""][0] == 0
    assert results[TOPIC, "missing"][0] == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert cluster.controllers[0].image.config(BROKER, "") == {"log.cleaner.threads": "2"}
    assert cluster.local.submitted == 0


def test_a_request_about_loggers_alone_is_not_forwarded(cluster: Cluster) -> None:
    results = alter(cluster.broker.connect(), (BROKER_LOGGER, "1", LOGGER, "INFO"))
    assert [(key, error) for key, (error, _) in results.items()] == [((BROKER_LOGGER, "1"), Error.NONE)]


def envelope(client: socket.socket, **fields: Any) -> EnvelopeResponse:
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=0, replication_factor=1)
    request = EnvelopeRequest(
        request_data=request_bytes(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic])),
        request_principal=ANONYMOUS_PRINCIPAL,
        client_host_address=LOCALHOST,
    )
    for name, value in fields.items():
        setattr(request, name, value)
    response: EnvelopeResponse = ask(client, ApiKey.ENVELOPE, 0, request, EnvelopeResponse)
    return response


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, Error.NONE),
        ({"client_host_address": bytes(range(16))}, Error.NONE),
        ({"client_host_address": b"host"[:3]}, Error.INVALID_REQUEST),
        ({"request_principal": None}, Error.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": b"\0\1\5User"}, Error.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": b"\0\0\5Us"}, Error.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_data": b"\0\x13"}, Error.UNSUPPORTED_VERSION),
        ({"request_data": request_bytes(ApiKey.METADATA, 1, MetadataRequest(topics=[]))}, Error.INVALID_REQUEST),
        ({"request_data": request_bytes(ApiKey.CREATE_TOPICS, 7, b"\xff")}, Error.UNSUPPORTED_VERSION),
    ],
)
def test_a_controller_checks_an_envelope(cluster: Cluster, fields: dict[str, Any], error: Error) -> None:
    with socket.create_connection(("127.0.0.1", cluster.addresses[0].port), TIMEOUT) as client:
        response = envelope(client, **fields)
    assert response.error_code == error
    assert (response.response_data is None) == bool(error)


def test_the_envelope_has_the_principal_of_the_client(cluster: Cluster) -> None:
    with StubNode({ApiKey.ENVELOPE: lambda request, version: EnvelopeResponse(error_code=0)}) as node:
        cluster.active = Destination(7, "127.0.0.1", node.port)
        create(as_user(cluster.broker, "alice").connect())
        [envelope] = node.of(ApiKey.ENVELOPE)
    assert bytes(envelope.request_principal) == ALICE


def test_a_controller_checks_the_broker_and_the_client(cluster: Cluster) -> None:
    authorizer = cluster.servers[0].services.authorizer = GrantedOperations()
    with socket.create_connection(("127.0.0.1", cluster.addresses[0].port), TIMEOUT) as client:
        assert envelope(client).error_code == Error.CLUSTER_AUTHORIZATION_FAILED
        authorizer.grant(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
        authorizer.asked.clear()
        data = bytes(envelope(client, request_principal=ALICE, client_host_address=bytes([10, 0, 0, 7])).response_data)
    response = CreateTopicsResponse.decode(data, 7, 5)
    assert [each.error_code for each in response.topics] == [Error.TOPIC_AUTHORIZATION_FAILED]
    assert [(str(requester.principal), requester.host, action.operation) for requester, action in authorizer.asked] == [
        ("User:ANONYMOUS", "127.0.0.1", Operation.CLUSTER_ACTION),
        ("User:alice", "10.0.0.7", Operation.CREATE),
        ("User:alice", "10.0.0.7", Operation.CREATE),
        ("User:alice", "10.0.0.7", Operation.DESCRIBE_CONFIGS),
    ]


def test_a_broker_leaves_the_check_of_forwarded_changes_to_the_controller(cluster: Cluster) -> None:
    cluster.active = cluster.addresses[0]
    authorizer = cluster.broker.services.authorizer = GrantedOperations()
    with accepted(cluster.broker) as client:
        results = alter(client, (BROKER_LOGGER, "1", LOGGER, "INFO"), (BROKER, "", "log.cleaner.threads", "2"))
    assert results[BROKER_LOGGER, "1"][0] == Error.CLUSTER_AUTHORIZATION_FAILED
    assert results[BROKER, ""][0] == 0
    assert authorizer.questions() == [(Operation.ALTER_CONFIGS, "kafka-cluster", 1)]


def test_a_controller_that_is_not_active_says_so_in_the_envelope(cluster: Cluster) -> None:
    cluster.controllers[0].is_active = False
    with socket.create_connection(("127.0.0.1", cluster.addresses[0].port), TIMEOUT) as client:
        response = envelope(client)
    assert response.error_code == Error.NOT_CONTROLLER
    assert response.response_data is None
