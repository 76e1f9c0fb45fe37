"""Lookups of brokers, leaders and coordinators, and the loop that repeats requests for keys with retriable errors."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kafkapy.client import ApiError, RequestTimedOut, TopicPartition
from kafkapy.client.admin import LATEST, Admin
from kafkapy.client.admin.lookups import as_partition_keys, as_partitions
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.delete_groups import DeleteGroupsResponse
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorResponse
from kafkapy.types import by_topic
from tests.harness.client_log import LogBrokers

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def brokers():
    harness = LogBrokers(node_ids=(1, 2))
    harness.fill("t", ["a"] * 4, ["b"] * 6)
    harness.add_topic("t", [(1, 0), (2, 0)])
    harness.answers[ApiKey.DELETE_GROUPS] = lambda request, version: DeleteGroupsResponse(
        results=[DeleteGroupsResponse.DeletableGroupResult(group_id=each) for each in request.groups_names]
    )
    yield harness
    harness.close()


@pytest.fixture
def admin(brokers):
    with brokers.admin(default_api_timeout_ms=20_000, request_timeout_ms=5000) as made:
        yield made


def nodes_of(brokers, key):
    return [each.node_id for each in brokers.asked if each.key == key]


def offsets(results):
    return {key: each.offset for key, each in results.check().items()}


def test_partitions_are_grouped_and_converted():
    assert by_topic([("t", 1), ("u", 0), ("t", 0)]) == {"t": [1, 0], "u": [0]}
    assert as_partitions([("t", 0)]) == [T0] and isinstance(as_partitions([("t", 0)])[0], TopicPartition)
    (key,) = as_partition_keys({("t", 0): 5})
    assert isinstance(key, TopicPartition)


def test_each_leader_gets_one_request_for_its_partitions(brokers, admin: Admin):
    assert offsets(admin.list_offsets({T0: LATEST, T1: LATEST})) == {T0: 4, T1: 6}
    assert sorted(nodes_of(brokers, ApiKey.LIST_OFFSETS)) == [1, 2]


def test_a_moved_leader_is_looked_up_again(brokers, admin: Admin):
    answer = brokers.answers[ApiKey.LIST_OFFSETS]

    def move(request, version):
        response = answer(request, version)
        if brokers.topics["t"][1][0][0] == 1:
            brokers.add_topic("t", [(2, 1), (2, 1)])
            response.topics[0].partitions[0].error_code = int(Error.NOT_LEADER_OR_FOLLOWER)
        return response

    brokers.answers[ApiKey.LIST_OFFSETS] = move
    assert offsets(admin.list_offsets({T0: LATEST})) == {T0: 4}
    assert nodes_of(brokers, ApiKey.LIST_OFFSETS) == [1, 2]


def test_a_topic_that_does_not_exist_is_looked_up_three_times(brokers, admin: Admin):
    results = admin.list_offsets({TopicPartition("absent", 0): LATEST, T0: LATEST})
    assert results.values[T0].offset == 4
    (error,) = results.errors.values()
    assert error.error is Error.UNKNOWN_TOPIC_OR_PARTITION
    named = [each for each in brokers.of(ApiKey.METADATA) if each.topics and "absent" in [t.name for t in each.topics]]
    assert len(named) == 3
    assert not any(each.allow_auto_topic_creation for each in named)


def test_a_partition_that_does_not_exist_is_an_error(admin: Admin):
    results = admin.list_offsets({TopicPartition("t", 7): LATEST})
    assert results.errors[TopicPartition("t", 7)].error is Error.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_without_a_leader_is_waited_for_until_the_time_is_over(brokers, admin: Admin):
    brokers.add_topic("t", [(-1, 0), (2, 0)])
    begun = brokers.clock.monotonic_ms()
    results = admin.list_offsets({T0: LATEST}, timeout=3)
    assert results.errors[T0].error is Error.LEADER_NOT_AVAILABLE
    assert 3000 <= brokers.clock.monotonic_ms() - begun < 6000


def test_an_error_of_the_topic_is_that_of_its_partitions(brokers, admin: Admin):
    brokers.errors["secret"] = Error.TOPIC_AUTHORIZATION_FAILED
    results = admin.list_offsets({TopicPartition("secret", 0): LATEST})
    assert [each.error for each in results.errors.values()] == [Error.TOPIC_AUTHORIZATION_FAILED]


def test_coordinators_are_looked_up_in_one_request(brokers, admin: Admin):
    assert admin.delete_groups(["a", "b", "a"]).check() == {"a": None, "b": None}
    (request,) = brokers.of(ApiKey.FIND_COORDINATOR)
    assert (request.key_type, request.coordinator_keys) == (0, ["a", "b"])
    (deletion,) = brokers.of(ApiKey.DELETE_GROUPS)
    assert deletion.groups_names == ["a", "b"]


def test_older_brokers_look_up_one_coordinator_at_a_time(brokers, admin: Admin):
    brokers.versions[ApiKey.FIND_COORDINATOR] = (0, 3)
    assert admin.delete_groups(["a", "b"]).check() == {"a": None, "b": None}
    assert [each.key for each in brokers.of(ApiKey.FIND_COORDINATOR)] == ["a", "b"]


@pytest.mark.parametrize(("highest", "key_type"), [(0, 0), (1, 1)])
def test_the_type_of_the_coordinator_is_sent_if_the_version_has_it(brokers, admin: Admin, highest, key_type):
    brokers.versions[ApiKey.FIND_COORDINATOR] = (0, highest)
    brokers.answers[ApiKey.FIND_COORDINATOR] = lambda request, version: FindCoordinatorResponse(
        error_code=int(Error.INVALID_REQUEST)
    )
    results = admin.describe_transactions(["x"])
    assert results.errors["x"].error is Error.INVALID_REQUEST
    assert brokers.of(ApiKey.FIND_COORDINATOR)[0].key_type == key_type


def test_the_error_of_a_coordinator_is_that_of_its_key(brokers, admin: Admin):
    answer = brokers.answers[ApiKey.FIND_COORDINATOR]

    def refuse(request, version):
        response = answer(request, version)
        response.coordinators[0].error_code = int(Error.GROUP_AUTHORIZATION_FAILED)
        response.coordinators[0].error_message = "not yours"
        return response

    brokers.answers[ApiKey.FIND_COORDINATOR] = refuse
    results = admin.delete_groups(["a", "b"])
    assert results.values == {"b": None}
    assert results.errors["a"].error is Error.GROUP_AUTHORIZATION_FAILED and results.errors["a"].message == "not yours"


def test_a_coordinator_that_the_response_lacks_is_looked_up_again(brokers, admin: Admin):
    answer = brokers.answers[ApiKey.FIND_COORDINATOR]

    def forget(request, version):
        brokers.answers[ApiKey.FIND_COORDINATOR] = answer
        return FindCoordinatorResponse(coordinators=[])

    brokers.answers[ApiKey.FIND_COORDINATOR] = forget
    assert admin.delete_groups(["a"]).check() == {"a": None}
    assert len(brokers.of(ApiKey.FIND_COORDINATOR)) == 2


def test_a_coordinator_may_be_a_broker_that_the_metadata_do_not_contain(brokers, admin: Admin):
    brokers.answers[ApiKey.FIND_COORDINATOR] = lambda request, version: FindCoordinatorResponse(
        coordinators=[FindCoordinatorResponse.Coordinator(key="a", node_id=9, host="memory", port=9)]
    )
    assert admin.delete_groups(["a"]).check() == {"a": None}
    assert nodes_of(brokers, ApiKey.DELETE_GROUPS) == [9]


def test_an_error_that_is_not_retriable_ends_the_lookup(brokers, admin: Admin):
    brokers.versions[ApiKey.FIND_COORDINATOR] = (7, 8)
    with pytest.raises(ApiError) as raised:
        admin.delete_groups(["a"])
    assert raised.value.error is Error.UNSUPPORTED_VERSION


def test_a_key_that_the_response_lacks_is_an_error(brokers, admin: Admin):
    brokers.answers[ApiKey.DELETE_GROUPS] = lambda request, version: DeleteGroupsResponse(results=[])
    results = admin.delete_groups(["a"])
    assert results.errors["a"].error is Error.UNKNOWN_SERVER_ERROR
    assert results.errors["a"].message == "The response lacks the key."


def test_a_broker_that_the_cluster_does_not_have_is_an_error(admin: Admin):
    results = admin.describe_log_dirs([7])
    assert results.errors[7].error is Error.BROKER_NOT_AVAILABLE


def test_a_request_without_a_response_is_repeated_until_the_time_is_over(brokers, admin: Admin):
    brokers.answers[ApiKey.DELETE_GROUPS] = lambda request, version: None
    begun = brokers.clock.monotonic_ms()
    results = admin.delete_groups(["a"], timeout=12)
    assert isinstance(results.errors["a"], RequestTimedOut)
    assert 12_000 <= brokers.clock.monotonic_ms() - begun < 13_000
    assert len(brokers.of(ApiKey.DELETE_GROUPS)) >= 2


def test_nobody_responds(brokers):
    brokers.down |= {1, 2}
    late = pytest.raises(RequestTimedOut, match="node assignment: no broker of memory:1 responds")
    with brokers.admin(request_timeout_ms=1000, default_api_timeout_ms=1000) as admin, late:
        admin.list_topics()


def test_a_partition_that_the_response_of_a_replica_lacks_has_an_error(brokers, admin: Admin):
    answer = brokers.answers[ApiKey.FETCH]

    def without_the_second(request, version):
        response = answer(request, version)
        for topic in response.responses:
            topic.partitions = [each for each in topic.partitions if each.partition_index == 0]
        return response

    brokers.answers[ApiKey.FETCH] = without_the_second
    found = admin.fetch_replica(1, {T0: 0, T1: 0}, {"t": brokers.topics["t"][0]})
    assert list(found.values) == [T0]
    assert found.errors[T1].error is Error.UNKNOWN_SERVER_ERROR


def test_the_pauses_between_attempts_begin_with_the_first_backoff(brokers, admin: Admin):
    brokers.offset_errors[T0] = [Error.NOT_LEADER_OR_FOLLOWER] * 3
    pauses = []
    admin._network.retry_backoff = SimpleNamespace(pause_ms=lambda attempts: pauses.append(attempts) or 10)
    assert offsets(admin.list_offsets({T0: LATEST})) == {T0: 4}
    assert pauses[:1] == [0] and pauses == sorted(pauses)
