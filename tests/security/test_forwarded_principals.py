"""Requests of a client that a broker forwards: the controller checks the permissions of the client, not the broker's.

The broker and the controller are nodes of their own, of kafkapy or Apache Kafka, and authenticate by SASL.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import pytest

from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kafkapy.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kafkapy.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkapy.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.api_client import ask
from tests.cluster.cluster import Cluster, Spec, Voters
from tests.cluster.nodes import BROKER, CONTROLLER, ClusterNode, Flavour
from tests.security.secured_brokers import allow, connect, secured_listeners

pytestmark = [pytest.mark.peer, pytest.mark.timeout(180)]
USER = "alice"
WAIT_S = 60
TOPIC_RESOURCE = 2


@pytest.fixture(
    scope="module",
    params=[
        (Flavour.KAFKAPY, Flavour.KAFKAPY),
        (Flavour.KAFKA_43, Flavour.KAFKAPY),
        (Flavour.KAFKAPY, Flavour.KAFKA_43),
    ],
    ids=["kafkapy", "controller of 4.3", "broker of 4.3"],
)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterNode]:
    """Yields the broker of a cluster with another node as its controller."""
    of_controller, of_broker = request.param
    with Cluster(
        tmp_path_factory.mktemp("cluster"),
        [Spec(of_controller, CONTROLLER), Spec(of_broker, BROKER)],
        voters=Voters.STATIC,
        properties=secured_listeners("PLAINTEXT", [USER]),
        by_own_tool=True,
    ) as cluster:
        yield cluster[2]


def create(client: socket.socket, name: str) -> int:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
    [created] = ask(client, ApiKey.CREATE_TOPICS, 7, request, CreateTopicsResponse).topics
    return int(created.error_code)


def metadata(client: socket.socket, name: str) -> int:
    """Requests the metadata of a topic, which creates the topic if it does not exist; returns the error code."""
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)])
    [topic] = ask(client, ApiKey.METADATA, 9, request, MetadataResponse).topics
    return int(topic.error_code)


def alter(client: socket.socket, name: str) -> int:
    config = IncrementalAlterConfigsRequest.AlterableConfig(name="retention.ms", config_operation=0, value="1000000")
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=name, configs=[config]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    [altered] = ask(client, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request, IncrementalAlterConfigsResponse).responses
    return int(altered.error_code)


def describe_quorum(client: socket.socket) -> int:
    partition = DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])
    response = ask(client, ApiKey.DESCRIBE_QUORUM, 2, DescribeQuorumRequest(topics=[topic]), DescribeQuorumResponse)
    return int(response.error_code)


def wait_for(error: Error, request: Callable[[], int]) -> None:
    """Repeats a request until it has the error, because the broker and the controller learn of ACLs later."""
    deadline = time.monotonic() + WAIT_S
    while (code := request()) != error:
        assert time.monotonic() < deadline, Error(code)
        time.sleep(0.05)


def test_the_controller_checks_the_client_of_a_forwarded_request(broker: ClusterNode) -> None:
    with connect(broker, USER) as client:
        assert create(client, "t") == Error.TOPIC_AUTHORIZATION_FAILED
        assert alter(client, "t") == Error.TOPIC_AUTHORIZATION_FAILED
        assert describe_quorum(client) == Error.CLUSTER_AUTHORIZATION_FAILED
        assert metadata(client, "hidden") == Error.TOPIC_AUTHORIZATION_FAILED
        allow(broker, {USER: ["Create topic t", "AlterConfigs topic t", "Describe cluster"]})
        wait_for(Error.NONE, lambda: create(client, "t"))
        assert create(client, "u") == Error.TOPIC_AUTHORIZATION_FAILED
        wait_for(Error.NONE, lambda: alter(client, "t"))
        wait_for(Error.NONE, lambda: describe_quorum(client))


def test_a_topic_is_created_for_a_client_that_names_it(broker: ClusterNode) -> None:
    allow(broker, {USER: ["Describe topic auto", "Describe topic other"]})
    with connect(broker, USER) as client:
        wait_for(Error.TOPIC_AUTHORIZATION_FAILED, lambda: metadata(client, "auto"))
        allow(broker, {USER: ["Create topic auto"]})
        wait_for(Error.NONE, lambda: metadata(client, "auto"))
        assert metadata(client, "other") == Error.TOPIC_AUTHORIZATION_FAILED
