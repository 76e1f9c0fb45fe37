"""Offsets by timestamp and at the ends: one request to each leader, retries, and requests by version."""

from __future__ import annotations

import pytest

from kafkapy.client import ApiError, RequestTimedOut, TopicPartition
from kafkapy.client.configuration import consumer_config
from kafkapy.client.offset_lookup import OffsetAndTimestamp, awaits_metadata, look_up
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.list_offsets import ListOffsetsResponse
from tests.harness.client import client_settings
from tests.harness.client_log import LogBrokers

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def brokers():
    harness = LogBrokers(node_ids=(1, 2))
    harness.fill("t", ["a"] * 20, ["b"] * 5)
    harness.add_topic("t", [(1, 3), (2, 4)])
    harness.starts[T0] = 6
    yield harness
    harness.close()


def test_each_leader_is_requested_once(brokers):
    with brokers.consumer() as consumer:
        consumer.partitions_for("t")
        assert consumer.end_offsets([T0, T1]) == {T0: 20, T1: 5}
        requests = [each for each in brokers.asked if each.key == ApiKey.LIST_OFFSETS]
        assert sorted((each.node_id, each.request.topics[0].partitions[0].timestamp) for each in requests) == [
            (1, -1), (2, -1)
        ]  # fmt: skip
        assert consumer.beginning_offsets([T0, ("t", 1)]) == {T0: 6, T1: 0}
        assert brokers.of(ApiKey.LIST_OFFSETS)[-1].topics[0].partitions[0].timestamp == -2


def test_a_time_has_an_offset_a_timestamp_and_an_epoch_or_none(brokers):
    with brokers.consumer() as consumer:
        assert consumer.offsets_for_times({T0: 1012, T1: 5000}) == {T0: OffsetAndTimestamp(12, 1012, 3), T1: None}
        with pytest.raises(ValueError, match="negative"):
            consumer.offsets_for_times({T0: -1})


@pytest.mark.parametrize("error", [Error.NOT_LEADER_OR_FOLLOWER, Error.OFFSET_NOT_AVAILABLE])
def test_only_the_partition_with_a_retriable_error_is_requested_again(brokers, error):
    brokers.add_topic("t", [(1, 3), (1, 3)])
    brokers.offset_errors[T1] = [error]
    with brokers.consumer() as consumer:
        consumer.partitions_for("t")
        metadata = len(brokers.of(ApiKey.METADATA))
        begun = brokers.clock.monotonic_ms()
        assert consumer.end_offsets([T0, T1]) == {T0: 20, T1: 5}
        assert brokers.clock.monotonic_ms() - begun >= 80
    first, second = brokers.of(ApiKey.LIST_OFFSETS)
    assert [each.partition_index for each in first.topics[0].partitions] == [0, 1]
    assert [each.partition_index for each in second.topics[0].partitions] == [1]
    assert len(brokers.of(ApiKey.METADATA)) > metadata


def test_an_error_that_is_not_retriable_is_raised(brokers):
    brokers.offset_errors[T1] = [Error.TOPIC_AUTHORIZATION_FAILED]
    with brokers.consumer() as consumer, pytest.raises(ApiError) as raised:
        consumer.end_offsets([T0, T1])
    assert raised.value.error is Error.TOPIC_AUTHORIZATION_FAILED


def test_a_lost_connection_is_retried(brokers):
    brokers.breaks.append(ApiKey.LIST_OFFSETS)
    with brokers.consumer() as consumer:
        assert consumer.end_offsets([T0]) == {T0: 20}


def test_a_partition_that_the_response_lacks_is_requested_again(brokers):
    answer = brokers.answers[ApiKey.LIST_OFFSETS]

    def empty(request, version):
        brokers.answers[ApiKey.LIST_OFFSETS] = answer
        response = answer(request, version)
        response.topics = []
        return response

    brokers.answers[ApiKey.LIST_OFFSETS] = empty
    with brokers.consumer() as consumer:
        assert consumer.end_offsets([T0]) == {T0: 20}


def test_a_lookup_ends_when_its_time_is_over(brokers):
    brokers.offset_errors[T0] = [Error.NOT_LEADER_OR_FOLLOWER] * 1000
    with brokers.consumer() as consumer, pytest.raises(RequestTimedOut, match="offsets by times in 2 s"):
        consumer.end_offsets([T0], timeout=2)


@pytest.mark.parametrize(("version", "isolation", "timeout_ms"), [(1, 0, 0), (2, 1, 0), (9, 1, 0), (10, 1, 30_000)])
def test_the_request_has_the_fields_of_its_version(brokers, version, isolation, timeout_ms):
    brokers.versions[ApiKey.LIST_OFFSETS] = (1, version)
    with brokers.consumer(isolation_level="read_committed") as consumer:
        consumer.end_offsets([T0])
    request = brokers.of(ApiKey.LIST_OFFSETS)[0]
    assert (request.replica_id, request.isolation_level, request.timeout_ms) == (-1, isolation, timeout_ms)


def test_a_partition_without_a_leader_awaits_metadata_and_has_them_requested(brokers):
    brokers.add_topic("u", [(-1, 0)])
    where = TopicPartition("u", 0)
    network = brokers.network(consumer_config(client_settings()))
    with network.lock:
        network.metadata.add_topic("u")
    assert network.wait_until(lambda: "u" in network.cluster.topics, 5)
    wanted = []
    network.metadata.ensure_update = lambda: wanted.append("metadata")
    with network.lock:
        assert awaits_metadata(network, where)
        assert wanted == ["metadata"]
        brokers.add_topic("u", [(1, 1)])
        network.metadata.request_update()
    assert network.wait_until(lambda: network.cluster.leader(*where) == 1, 5)
    with network.lock:
        assert not awaits_metadata(network, where)
        assert wanted == ["metadata"]
    network.close()


@pytest.mark.parametrize("way", ["end_offsets", "poll"])
def test_the_offsets_of_a_new_topic_are_looked_up_as_soon_as_its_leader_is_known(brokers, way):
    with brokers.consumer(auto_offset_reset="latest") as consumer:
        if way == "poll":
            consumer.assign([T0])
            consumer.poll(5)
        else:
            consumer.end_offsets([T0])
    asked = [(each.key, each.at_ms) for each in brokers.asked]
    [known_ms] = [at_ms for key, at_ms in asked if key == ApiKey.METADATA][-1:]
    [looked_up_ms] = [at_ms for key, at_ms in asked if key == ApiKey.LIST_OFFSETS]
    assert looked_up_ms - known_ms < 50  # retry.backoff.ms is 100


def test_a_partition_that_the_response_lacks_has_the_metadata_requested(brokers):
    brokers.answers[ApiKey.LIST_OFFSETS] = lambda request, version: ListOffsetsResponse(topics=[])
    network = brokers.network(consumer_config(client_settings()))
    with network.lock:
        network.metadata.add_topic("t")
    assert network.wait_until(lambda: "t" in network.cluster.topics, 5)
    wanted, found = [], []
    network.metadata.request_update = lambda: wanted.append("metadata")
    with network.lock:
        look_up(network, {T0: -1}, 0, lambda *each: found.append(each))
    assert network.wait_until(lambda: bool(found), 5)
    assert (found[0][2].error, wanted) == (Error.NETWORK_EXCEPTION, ["metadata"])
    network.close()
