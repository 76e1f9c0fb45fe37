"""Metadata requests: when they are sent, to which broker, and what happens without a response."""

from __future__ import annotations

import pytest

from kafkapy.client.configuration import producer_config
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.metadata import MetadataResponse
from kafkapy.types import TopicPartition
from tests.harness.client import MemoryBrokers, client_settings


@pytest.fixture
def brokers():
    harness = MemoryBrokers(node_ids=(1, 2))
    yield harness
    harness.close()


@pytest.fixture
def network(brokers):
    made = brokers.network(producer_config(client_settings(metadata_max_age_ms=60_000)))
    yield made
    made.close()


def test_topics_of_interest_are_asked_for_and_asked_for_again_when_they_are_old(brokers, network):
    brokers.add_topic("t", [(1, 0), (2, 0)])
    with network.lock:
        network.metadata.add_topic("t")
    assert network.wait_until(lambda: "t" in network.cluster.topics, 5)
    assert [network.cluster.leader("t", each) for each in range(3)] == [1, 2, -1]
    seen = network.metadata.updates
    begun = brokers.clock.monotonic_ms()
    assert network.wait_until(lambda: network.metadata.updates > seen, 120)
    assert brokers.clock.monotonic_ms() - begun >= 59_000


def test_a_topic_without_a_leader_is_asked_for_until_it_has_one(brokers, network):
    brokers.add_topic("t", [(-1, 0)])
    with network.lock:
        network.metadata.add_topic("t")
    assert not network.wait_until(lambda: network.cluster.leader("t", 0) >= 0, 3)
    asked = [each.at_ms for each in brokers.asked if each.key == ApiKey.METADATA]
    assert 3 <= len(asked) < 20  # with growing pauses between the requests
    brokers.add_topic("t", [(2, 1)])
    assert network.wait_until(lambda: network.cluster.leader("t", 0) == 2, 5)


@pytest.mark.parametrize("way", ["added", "set", "known by its id"])
def test_a_topic_that_is_added_during_a_request_is_asked_for_without_a_pause(brokers, network, way):
    topic_id = brokers.add_topic("t", [(1, 0)])
    answer = brokers.answers[ApiKey.METADATA]
    add = {
        "added": lambda: network.metadata.add_topic("t"),
        "set": lambda: network.metadata.set_topics(["t"]),
        "known by its id": lambda: network.metadata.want_ids([topic_id]),
    }[way]

    def answer_and_add(request, version):
        if not request.topics:
            add()
        return answer(request, version)

    brokers.answers[ApiKey.METADATA] = answer_and_add
    assert network.wait_until(lambda: "t" in network.cluster.topics, 5)
    first, second = [each.at_ms for each in brokers.asked if each.key == ApiKey.METADATA][:2]
    assert second - first < 50  # retry.backoff.ms is 100


def test_what_a_broker_says_of_the_leader_is_believed_if_it_is_newer(brokers, network):
    brokers.add_topic("t", [(1, 5)])
    with network.lock:
        network.metadata.add_topic("t")
    assert network.wait_until(lambda: "t" in network.cluster.topics, 5)
    where = TopicPartition("t", 0)
    network.metadata.update_leader(where, 2, 5, ())
    assert network.cluster.leader(*where) == 1
    network.metadata.update_leader(where, 2, 6, ())
    assert network.cluster.leader(*where) == 2


def test_topics_known_by_their_id_get_their_name(brokers, network):
    topic_id = brokers.add_topic("t", [(1, 0)])
    assert network.wait_until(lambda: network.metadata.updates > 0, 5)
    with network.lock:
        network.metadata.want_ids([topic_id, b"\x07" * 16])
    assert network.wait_until(lambda: "t" in network.cluster.topics, 5)
    assert network.metadata.topics == {"t"}
    by_id = [each for each in brokers.of(ApiKey.METADATA) if each.topics and each.topics[0].name is None]
    assert {each.topic_id for each in by_id[0].topics} == {topic_id, b"\x07" * 16}
    with network.lock:
        network.metadata.want_ids([])
        seen = network.metadata.updates
    assert not network.wait_until(lambda: network.metadata.updates > seen + 1, 20)


def test_another_broker_is_asked_when_one_is_gone(brokers, network):
    assert network.wait_until(lambda: network.metadata.updates > 0, 5)
    brokers.down.add(1)
    brokers.serve()
    seen = network.metadata.updates
    assert network.wait_until(lambda: network.metadata.updates > seen, 30)
    assert brokers.asked[-1].node_id == 2


def test_when_all_are_gone_it_begins_again_at_the_bootstrap_addresses(brokers, network):
    assert network.wait_until(lambda: network.metadata.updates > 0, 5)
    brokers.down |= {1, 2}
    brokers.serve()
    assert not network.wait_until(lambda: False, 30)
    brokers.down.clear()
    brokers.node_ids = (3, 4)
    assert network.wait_until(lambda: set(network.cluster.nodes) == {3, 4}, 60)


def test_a_broker_may_ask_for_a_new_beginning(brokers, network):
    assert network.wait_until(lambda: network.metadata.updates > 0, 5)
    answer = brokers.answers[ApiKey.METADATA]
    brokers.answers[ApiKey.METADATA] = lambda request, version: MetadataResponse(
        error_code=int(Error.REBOOTSTRAP_REQUIRED)
    )
    with network.lock:
        network.metadata.request_update()
    assert network.wait_until(lambda: any(each < 0 for each in network.cluster.nodes), 30)
    brokers.answers[ApiKey.METADATA] = answer
    assert network.wait_until(lambda: set(network.cluster.nodes) == {1, 2}, 30)


def test_the_wait_for_a_new_beginning_is_counted_from_the_first_failure(brokers, network):
    assert network.wait_until(lambda: network.metadata.updates > 0, 5)
    updater, rebootstraps = network.metadata, []
    updater._connections.rebootstrap = lambda: rebootstraps.append(brokers.clock.monotonic_ms())
    updater._connections.all_failed = lambda: False
    with network.lock:
        updater._recover(1_000)  # no broker can be reached
        updater._fail(None, 301_000)
        assert rebootstraps == []
        updater._fail(None, 301_001)
        assert len(rebootstraps) == 1
