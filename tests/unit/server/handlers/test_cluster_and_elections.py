"""DescribeCluster and ElectLeaders in every version."""

import pytest

from kafkapy.errors import Error
from kafkapy.protocol.messages.describe_cluster import DescribeClusterRequest
from kafkapy.protocol.messages.elect_leaders import ElectLeadersRequest
from kafkapy.security.acl import ResourceType
from kafkapy.server.authorization import ALL_OPERATIONS, OPERATIONS_NOT_ASKED_FOR
from kafkapy.server.handlers.cluster import handle_describe_cluster
from kafkapy.server.handlers.elections import handle_elect_leaders
from tests.harness.admin import AdminHarness


@pytest.fixture
def harness(tmp_path):
    harness = AdminHarness(tmp_path / "data")
    harness.create_topic("t", 2)
    yield harness
    harness.loop.stop()


@pytest.mark.parametrize("version", range(3))
def test_cluster(harness, version):
    response = harness.send(handle_describe_cluster, DescribeClusterRequest(), version)
    [broker] = response.brokers
    assert (response.error_code, response.cluster_id, response.controller_id) == (0, "cluster", 1)
    assert (broker.broker_id, broker.host, broker.port, broker.is_fenced) == (1, "localhost", 9092, False)
    assert response.cluster_authorized_operations == OPERATIONS_NOT_ASKED_FOR
    asked = harness.send(
        handle_describe_cluster, DescribeClusterRequest(include_cluster_authorized_operations=True), version
    )
    assert asked.cluster_authorized_operations == ALL_OPERATIONS[ResourceType.CLUSTER]


def test_fenced_brokers_when_asked_for(harness):
    harness.lifecycle.end_session()
    assert harness.send(handle_describe_cluster, DescribeClusterRequest(), 2).brokers == []
    [broker] = harness.send(handle_describe_cluster, DescribeClusterRequest(include_fenced_brokers=True), 2).brokers
    assert broker.is_fenced


def test_other_endpoint_types_are_refused(harness):
    for kind, error in ((2, Error.MISMATCHED_ENDPOINT_TYPE), (3, Error.UNSUPPORTED_ENDPOINT_TYPE)):
        response = harness.send(handle_describe_cluster, DescribeClusterRequest(endpoint_type=kind), 1)
        assert response.error_code == error and response.error_message


@pytest.mark.parametrize("version", range(3))
def test_an_election_reports_each_partition(harness, version):
    asked = [ElectLeadersRequest.TopicPartitions(topic="t", partitions=[0, 9])]
    [result] = harness.send(
        handle_elect_leaders, ElectLeadersRequest(topic_partitions=asked), version
    ).replica_election_results
    assert result.topic == "t"
    assert {each.partition_id: Error(each.error_code) for each in result.partition_result} == {
        0: Error.ELECTION_NOT_NEEDED, 9: Error.UNKNOWN_TOPIC_OR_PARTITION,
    }  # fmt: skip
    [result] = harness.send(
        handle_elect_leaders, ElectLeadersRequest(topic_partitions=None), version
    ).replica_election_results
    assert (result.topic, result.partition_result) == ("t", [])


@pytest.mark.parametrize("version", [1, 2])
def test_unknown_election_type(harness, version):
    asked = [ElectLeadersRequest.TopicPartitions(topic="t", partitions=[0])]
    request = ElectLeadersRequest(election_type=7, topic_partitions=asked)
    response = harness.send(handle_elect_leaders, request, version)
    assert response.error_code == Error.INVALID_REQUEST
