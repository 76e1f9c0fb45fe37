"""Topics: the requests that create, delete, list and describe them, by version."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.client.admin import (
    Admin,
    CreatedTopic,
    NewPartitions,
    NewTopic,
    PartitionDescription,
    TopicDescription,
    TopicListing,
)
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.create_partitions import CreatePartitionsResponse
from kafkapy.protocol.messages.create_topics import CreateTopicsResponse
from kafkapy.protocol.messages.delete_topics import DeleteTopicsResponse
from kafkapy.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsResponse
from kafkapy.types import ZERO_UUID
from tests.harness.client import MemoryBrokers

ID = bytes(range(16))


@pytest.fixture
def brokers():
    harness = MemoryBrokers(node_ids=(1, 2))
    yield harness
    harness.close()


@pytest.fixture
def admin(brokers):
    with brokers.admin(default_api_timeout_ms=20_000) as made:
        yield made


def refused(call: Any) -> Error:
    with pytest.raises(ApiError) as raised:
        call()
    return raised.value.error


def create(request: Any, version: int) -> CreateTopicsResponse:
    made = []
    for each in request.topics:
        result = CreateTopicsResponse.CreatableTopicResult(name=each.name)
        if each.name == "old":
            result.error_code = int(Error.TOPIC_ALREADY_EXISTS)
        elif version >= 7:
            result.topic_id, result.num_partitions, result.replication_factor = ID, 3, 1
            result.configs = [CreateTopicsResponse.CreatableTopicConfigs(name="a", value="b", config_source=5)]
        made.append(result)
    return CreateTopicsResponse(topics=made)


def test_topics_are_created_at_the_controller(brokers, admin: Admin):
    brokers.answers[ApiKey.CREATE_TOPICS] = create
    new = [NewTopic("t", 3, 1, configs={"a": "b"}), NewTopic("u", 5, 2, assignments={0: [2, 1]}), NewTopic("old")]
    results = admin.create_topics(new, validate_only=True, timeout=7)
    assert results.values == dict.fromkeys(("t", "u"), CreatedTopic(ID, 3, 1, {"a": "b"}))
    assert results.errors["old"].error is Error.TOPIC_ALREADY_EXISTS
    (request,) = brokers.of(ApiKey.CREATE_TOPICS)
    first, second, third = request.topics
    assert request.validate_only and 6000 < request.timeout_ms <= 7000
    assert (first.num_partitions, first.replication_factor, first.assignments) == (3, 1, [])
    assert [(each.name, each.value) for each in first.configs] == [("a", "b")]
    assert (second.num_partitions, second.replication_factor) == (-1, -1)
    assert [(each.partition_index, each.broker_ids) for each in second.assignments] == [(0, [2, 1])]
    assert (third.num_partitions, third.replication_factor) == (-1, -1)


def test_a_creation_is_sent_again_after_the_controller_has_moved(brokers, admin: Admin):
    moved = CreateTopicsResponse(
        topics=[CreateTopicsResponse.CreatableTopicResult(name="t", error_code=int(Error.NOT_CONTROLLER))]
    )
    brokers.answers[ApiKey.CREATE_TOPICS] = lambda request, version: (
        moved if len(brokers.of(ApiKey.CREATE_TOPICS)) == 1 else create(request, version)
    )
    assert set(admin.create_topics([NewTopic("t")]).check()) == {"t"}
    assert len(brokers.of(ApiKey.CREATE_TOPICS)) == 2


def test_an_old_broker_creates_topics_and_cannot_validate(brokers, admin: Admin):
    brokers.versions[ApiKey.CREATE_TOPICS] = (0, 0)
    brokers.answers[ApiKey.CREATE_TOPICS] = create
    assert refused(lambda: admin.create_topics([NewTopic("t")], validate_only=True)) is Error.UNSUPPORTED_VERSION
    assert admin.create_topics([NewTopic("t", 1, 1)])["t"].topic_id == ZERO_UUID


def delete(request: Any, version: int) -> DeleteTopicsResponse:
    if version >= 6:
        results = [
            DeleteTopicsResponse.DeletableTopicResult(name=each.name or "of-the-id", topic_id=each.topic_id)
            for each in request.topics
        ]
    else:
        results = [DeleteTopicsResponse.DeletableTopicResult(name=each) for each in request.topic_names]
    return DeleteTopicsResponse(responses=results)


def test_topics_are_deleted_by_name_and_by_id(brokers, admin: Admin):
    brokers.answers[ApiKey.DELETE_TOPICS] = delete
    assert admin.delete_topics(["t", ID, "t"]).check() == {"t": None, ID: None}
    (request,) = brokers.of(ApiKey.DELETE_TOPICS)
    assert [(each.name, each.topic_id) for each in request.topics] == [("t", ZERO_UUID), (None, ID)]


def test_an_old_broker_deletes_topics_by_name_only(brokers, admin: Admin):
    brokers.versions[ApiKey.DELETE_TOPICS] = (0, 5)
    brokers.answers[ApiKey.DELETE_TOPICS] = delete
    assert admin.delete_topics(["t"]).check() == {"t": None}
    assert refused(lambda: admin.delete_topics(["t", ID])) is Error.UNSUPPORTED_VERSION


def test_topics_are_listed_without_internal_ones(brokers, admin: Admin):
    topic_id = brokers.add_topic("t", [(1, 0)])
    metadata = brokers.answers[ApiKey.METADATA]

    def with_internal(request, version):
        response = metadata(request, version)
        for topic in list(response.topics):
            if topic.name == "t":
                internal = type(topic)(name="__internal", topic_id=ID, is_internal=True)
                response.topics.append(internal)
        return response

    brokers.answers[ApiKey.METADATA] = with_internal
    assert admin.list_topics() == {"t": TopicListing("t", topic_id, False)}
    assert set(admin.list_topics(include_internal=True)) == {"t", "__internal"}


def page(request: Any, version: int) -> DescribeTopicPartitionsResponse:
    """Returns a page of topics with three partitions each, up to the request's limit of partitions."""
    response = DescribeTopicPartitionsResponse()
    left = request.response_partition_limit
    start = (request.cursor.topic_name, request.cursor.partition_index) if request.cursor else ("", 0)
    for each in request.topics:
        topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic(
            name=each.name, topic_id=ID, partitions=[]
        )
        if each.name == "absent":
            topic.error_code = int(Error.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            for number in range(start[1] if each.name == start[0] else 0, 3):
                if left == 0:
                    response.next_cursor = DescribeTopicPartitionsResponse.Cursor(
                        topic_name=each.name, partition_index=number
                    )
                    response.topics.append(topic)
                    return response
                left -= 1
                topic.partitions.append(
                    DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition(
                        partition_index=number,
                        leader_id=1,
                        leader_epoch=4,
                        replica_nodes=[1, 2],
                        isr_nodes=[1],
                        eligible_leader_replicas=[2],
                        last_known_elr=None,
                        offline_replicas=[2],
                    )
                )
        response.topics.append(topic)
    return response


def test_topics_are_described_page_by_page(brokers, admin: Admin):
    brokers.answers[ApiKey.DESCRIBE_TOPIC_PARTITIONS] = page
    results = admin.describe_topics(["u", "t", "absent"], page_size=2)
    partitions = tuple(PartitionDescription(number, 1, 4, (1, 2), (1,), (2,), (2,), None) for number in range(3))
    assert results.values == {name: TopicDescription(name, ID, False, partitions) for name in ("t", "u")}
    assert results.errors["absent"].error is Error.UNKNOWN_TOPIC_OR_PARTITION
    requests = brokers.of(ApiKey.DESCRIBE_TOPIC_PARTITIONS)
    assert [[each.name for each in request.topics] for request in requests] == [
        ["absent", "t", "u"], ["t", "u"], ["u"]
    ]  # fmt: skip


def test_an_old_broker_describes_topics_by_metadata(brokers, admin: Admin):
    brokers.versions[ApiKey.DESCRIBE_TOPIC_PARTITIONS] = (9, 9)
    topic_id = brokers.add_topic("t", [(1, 0), (2, 5)])
    results = admin.describe_topics()
    described = results["t"]
    assert (described.name, described.topic_id, [each.leader for each in described.partitions]) == (
        "t",
        topic_id,
        [1, 2],
    )
    assert described.partitions[1].elr is None
    assert admin.describe_topics(["absent"]).errors["absent"].error is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert len(admin.describe_topics([])) == 0


def test_topics_are_described_by_id(brokers, admin: Admin):
    topic_id = brokers.add_topic("t", [(1, 0)])
    assert admin.describe_topic_ids([topic_id])[topic_id].name == "t"
    brokers.versions[ApiKey.METADATA] = (0, 11)
    with brokers.admin() as older:
        assert refused(lambda: older.describe_topic_ids([topic_id])) is Error.UNSUPPORTED_VERSION


def test_partitions_are_added_up_to_a_total(brokers, admin: Admin):
    brokers.answers[ApiKey.CREATE_PARTITIONS] = lambda request, version: CreatePartitionsResponse(
        results=[
            CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=each.name, error_code=0 if each.count > 3 else int(Error.INVALID_PARTITIONS)
            )
            for each in request.topics
        ]
    )
    results = admin.create_partitions({"t": 5, "u": NewPartitions(4, [[1], [2]]), "v": 2}, validate_only=True)
    assert results.values == {"t": None, "u": None} and results.errors["v"].error is Error.INVALID_PARTITIONS
    (request,) = brokers.of(ApiKey.CREATE_PARTITIONS)
    assert request.validate_only
    assert [(each.name, each.count) for each in request.topics] == [("t", 5), ("u", 4), ("v", 2)]
    assert request.topics[0].assignments is None
    assert [each.broker_ids for each in request.topics[1].assignments] == [[1], [2]]
