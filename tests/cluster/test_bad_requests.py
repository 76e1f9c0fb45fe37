"""Requests that a cluster refuses: the answers of Apache Kafka 4.3, which kafkapy gives too."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kafkapy.errors import Error
from kafkapy.metadata.features import METADATA_VERSION, SUPPORTED_FEATURES
from kafkapy.protocol.api import ApiKey, response_class
from kafkapy.protocol.messages.broker_registration import BrokerRegistrationRequest
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.protocol.messages.elect_leaders import ElectLeadersRequest
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.types import random_uuid
from tests.api_client import ask
from tests.cluster.cluster import Cluster, Spec
from tests.cluster.nodes import Flavour

pytestmark = [pytest.mark.timeout(180)]
FLAVOURS = [Flavour.KAFKAPY, pytest.param(Flavour.KAFKA_43, marks=pytest.mark.peer)]
BROKER, FOLLOWER, UNKNOWN_BROKER = 1, 2, 5
OLD = {**SUPPORTED_FEATURES, METADATA_VERSION: (7, 8)}
WITHOUT_GROUPS = {name: levels for name, levels in SUPPORTED_FEATURES.items() if name != "group.version"}


class Node:
    """A node that is broker and controller, with a connection to each of its listeners."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster_id = cluster.cluster_id
        self.wait_for = cluster.wait_for
        self.broker = socket.create_connection(("127.0.0.1", cluster[BROKER].port), timeout=30)
        self.controller = socket.create_connection(("127.0.0.1", cluster[BROKER].controller_port), timeout=30)

    def close(self) -> None:
        self.broker.close()
        self.controller.close()

    def ask(self, key: ApiKey, version: int, request: Any) -> Any:
        return ask(self.broker, key, version, request, response_class(key))

    def ask_controller(self, key: ApiKey, version: int, request: Any) -> Any:
        return ask(self.controller, key, version, request, response_class(key))

    def register(self, broker_id: int, features: dict[str, tuple[int, int]], **changes: Any) -> Any:
        fields: dict[str, Any] = {
            "broker_id": broker_id,
            "cluster_id": self.cluster_id,
            "incarnation_id": random_uuid(),
            "listeners": [BrokerRegistrationRequest.Listener(name="PLAINTEXT", host="localhost", port=1)],
            "features": [
                BrokerRegistrationRequest.Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in features.items()
            ],
            "rack": None,
            "log_dirs": [random_uuid()],
            **changes,
        }
        return self.ask_controller(ApiKey.BROKER_REGISTRATION, 4, BrokerRegistrationRequest(**fields))

    def create(self, replicas: list[int] | None = None, replication_factor: int = -1) -> Any:
        assignment = CreateTopicsRequest.CreatableReplicaAssignment(partition_index=0, broker_ids=replicas or [])
        topic = CreateTopicsRequest.CreatableTopic(
            name="new",
            num_partitions=-1,
            replication_factor=replication_factor,
            assignments=[assignment] if replicas else [],
        )
        (result,) = self.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=10_000)).topics
        return result


@pytest.fixture(scope="module", params=FLAVOURS, ids=lambda flavour: flavour.name.lower())
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Cluster(tmp_path_factory.mktemp("node"), [Spec(request.param)]) as cluster:
        cluster.create_topic("led", 2, replication_factor=1)
        cluster.wait_for_leader("led", 1)
        connected = Node(cluster)
        yield connected
        connected.close()


def test_more_replicas_than_brokers(node: Node) -> None:
    refused = node.create(replication_factor=3)
    assert refused.error_code == Error.INVALID_REPLICATION_FACTOR
    assert refused.error_message == (
        "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because "
        "only 1 broker(s) are registered or some brokers have all their log directories cordoned."
    )


def test_a_broker_of_another_cluster(node: Node) -> None:
    refused = node.register(UNKNOWN_BROKER, SUPPORTED_FEATURES, cluster_id="other")
    assert (refused.error_code, refused.broker_epoch) == (Error.INCONSISTENT_CLUSTER_ID, -1)


def test_a_node_id_that_is_in_use(node: Node) -> None:
    refused = node.register(BROKER, SUPPORTED_FEATURES)
    assert (refused.error_code, refused.broker_epoch) == (Error.DUPLICATE_BROKER_REGISTRATION, -1)


@pytest.mark.parametrize("features", [OLD, WITHOUT_GROUPS], ids=["old", "missing"])
def test_features_that_do_not_reach_the_finalized_levels(node: Node, features: dict[str, tuple[int, int]]) -> None:
    refused = node.register(UNKNOWN_BROKER, features)
    assert (refused.error_code, refused.broker_epoch) == (Error.UNSUPPORTED_VERSION, -1)


def test_an_election_for_all_partitions_names_each_topic(node: Node) -> None:
    for election_type in (0, 1):
        request = ElectLeadersRequest(election_type=election_type, topic_partitions=None, timeout_ms=10_000)
        response = node.ask(ApiKey.ELECT_LEADERS, 2, request)
        assert response.error_code == 0
        found = {each.topic: each.partition_result for each in response.replica_election_results}
        assert found["led"] == []


def test_a_follower_beyond_the_end_of_the_log(node: Node) -> None:
    """The leader has an empty log of epoch 0."""
    registered = node.register(FOLLOWER, SUPPORTED_FEATURES)
    assert registered.error_code == 0
    created = node.create([BROKER, FOLLOWER])
    assert created.error_code == 0

    def fetch(last_fetched_epoch: int) -> tuple[Error, tuple[int, int]]:
        wanted = FetchRequest.FetchPartition(
            partition=0,
            current_leader_epoch=0,
            fetch_offset=5,
            last_fetched_epoch=last_fetched_epoch,
            log_start_offset=0,
            partition_max_bytes=1000,
        )
        request = FetchRequest(
            replica_state=FetchRequest.ReplicaState(replica_id=FOLLOWER, replica_epoch=registered.broker_epoch),
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=[FetchRequest.FetchTopic(topic_id=created.topic_id, partitions=[wanted])],
            forgotten_topics_data=[],
        )
        (partition,) = node.ask(ApiKey.FETCH, 16, request).responses[0].partitions
        return Error.of(partition.error_code), (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset)

    # There are other errors until the leader has applied the creation of the topic.
    node.wait_for("leader that knows the follower", lambda: fetch(0) == (Error.NONE, (0, 0)))
    assert fetch(-1) == fetch(5) == (Error.OFFSET_OUT_OF_RANGE, (-1, -1))
