"""Metadata and DescribeTopicPartitions in every version."""

import pytest

from kafkapy.errors import Error
from kafkapy.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from kafkapy.protocol.messages.metadata import MetadataRequest
from kafkapy.security.acl import ResourceType
from kafkapy.server.authorization import ALL_OPERATIONS, OPERATIONS_NOT_ASKED_FOR
from kafkapy.server.handlers.metadata import handle_describe_topic_partitions, handle_metadata
from tests.harness.admin import AdminHarness

VERSIONS = range(14)


@pytest.fixture
def harness(tmp_path):
    harness = AdminHarness(tmp_path / "data")
    harness.create_topic("a", 2)
    harness.create_topic("b")
    yield harness
    harness.loop.stop()


def ask(harness, version, *names, **fields):
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    return harness.send(handle_metadata, MetadataRequest(topics=topics, **fields), version)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_named_topic_is_described(harness, version):
    response = ask(harness, version, "a")
    [topic] = response.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (0, "a", False)
    assert [each.partition_index for each in topic.partitions] == [0, 1]
    partition = topic.partitions[1]
    assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (1, [1], [1])
    assert partition.offline_replicas == []
    [broker] = response.brokers
    assert (broker.node_id, broker.host, broker.port) == (1, "localhost", 9092)
    assert response.controller_id == (1 if version >= 1 else -1)
    assert response.cluster_id == ("cluster" if version >= 2 else None)
    assert topic.topic_authorized_operations == OPERATIONS_NOT_ASKED_FOR
    if version >= 10:
        assert topic.topic_id == harness.metadata.image.topics.by_name["a"].topic_id


@pytest.mark.parametrize("version", VERSIONS)
def test_all_topics_and_none(harness, version):
    nothing = ask(harness, version)
    everything = nothing if version == 0 else harness.send(handle_metadata, MetadataRequest(topics=None), version)
    assert sorted(topic.name for topic in everything.topics) == ["a", "b"]
    if version > 0:
        assert nothing.topics == []


@pytest.mark.parametrize("version", range(4, 14))
def test_missing_topics_without_creation(harness, version):
    response = ask(harness, version, "nope", "bad name", allow_auto_topic_creation=False)
    assert {topic.name: Error(topic.error_code) for topic in response.topics} == {
        "nope": Error.UNKNOWN_TOPIC_OR_PARTITION, "bad name": Error.INVALID_TOPIC_EXCEPTION,
    }  # fmt: skip
    assert "nope" not in harness.metadata.image.topics.by_name


@pytest.mark.parametrize("version", [0, 3, 4, 13])
def test_missing_topics_are_created(harness, version):
    [topic] = ask(harness, version, "new").topics
    assert topic.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    harness.create_topic("barrier")
    [topic] = ask(harness, version, "new").topics
    assert topic.error_code == 0 and len(topic.partitions) == 1


def test_creation_can_be_forbidden(tmp_path):
    harness = AdminHarness(tmp_path / "data", auto_create_topics_enable="false")
    [topic] = ask(harness, 13, "new").topics
    harness.create_topic("barrier")
    assert topic.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION and "new" not in harness.metadata.image.topics.by_name
    harness.loop.stop()


def test_by_id(harness):
    topic_id = harness.metadata.image.topics.by_name["a"].topic_id
    asked = [MetadataRequest.MetadataRequestTopic(name=None, topic_id=each) for each in (topic_id, b"x" * 16)]
    known, unknown = harness.send(handle_metadata, MetadataRequest(topics=asked), 12).topics
    assert (known.name, known.error_code) == ("a", 0)
    assert (unknown.name, unknown.topic_id, Error(unknown.error_code)) == (None, b"x" * 16, Error.UNKNOWN_TOPIC_ID)
    for version in (10, 11):
        [refused, _] = harness.send(
            handle_metadata,
            MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="a", topic_id=topic_id)] * 2),
            version,
        ).topics
        assert refused.error_code == Error.INVALID_REQUEST


@pytest.mark.parametrize("version", range(8, 14))
def test_operations_when_asked_for(harness, version):
    fields = {"include_topic_authorized_operations": True}
    if version <= 10:
        fields["include_cluster_authorized_operations"] = True
    response = ask(harness, version, "a", **fields)
    assert response.topics[0].topic_authorized_operations == ALL_OPERATIONS[ResourceType.TOPIC] == 3576
    if version <= 10:
        assert response.cluster_authorized_operations == ALL_OPERATIONS[ResourceType.CLUSTER] == 8096


@pytest.mark.parametrize(("version", "error"), [(0, 5), (5, 5), (6, 72), (13, 72)])
def test_a_listener_that_the_leader_does_not_have(harness, version, error):
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="b")])
    response = harness.send(handle_metadata, request, version, listener="OTHER")
    assert response.brokers == [] and response.topics[0].partitions[0].error_code == error
    assert response.topics[0].partitions[0].leader_id == -1


def test_kept_answers_go_with_the_image(harness):
    first = ask(harness, 12, "a")
    kept = harness.metadata.current[1]
    assert len(kept) == 1 and ask(harness, 12, "a") == first and len(kept) == 1
    ask(harness, 12, "nope", allow_auto_topic_creation=False)
    assert len(kept) == 1  # not stored, because the request may create missing topics
    harness.create_topic("c")
    assert harness.metadata.current[1] == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_the_response_to_a_request_that_repeats_topics_is_not_stored(harness, version):
    """The limit of stored bytes does not count the requests, which may have a hundred megabytes each."""
    assert [topic.name for topic in ask(harness, version, *["a"] * 1000).topics] == ["a"]
    assert harness.metadata.current[1] == {}


def test_a_partition_without_leader_is_not_available(harness):
    harness.lifecycle.end_session()
    [topic] = ask(harness, 12, "b").topics
    assert topic.partitions[0].error_code == Error.LEADER_NOT_AVAILABLE
    assert topic.partitions[0].offline_replicas == [1]


# -- DescribeTopicPartitions


def described(harness, *names, **fields):
    topics = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names]
    return harness.send(handle_describe_topic_partitions, DescribeTopicPartitionsRequest(topics=topics, **fields), 0)


def cursor(topic, partition):
    return DescribeTopicPartitionsRequest.Cursor(topic_name=topic, partition_index=partition)


def shape(response):
    return [(topic.name, [each.partition_index for each in topic.partitions]) for topic in response.topics]


def test_a_cursor_continues_where_the_page_ended(harness):
    first = described(harness, response_partition_limit=1)
    assert shape(first) == [("a", [0])]
    assert (first.next_cursor.topic_name, first.next_cursor.partition_index) == ("a", 1)
    second = described(harness, response_partition_limit=1, cursor=cursor("a", 1))
    assert shape(second) == [("a", [1])]
    assert (second.next_cursor.topic_name, second.next_cursor.partition_index) == ("b", 0)
    last = described(harness, response_partition_limit=9, cursor=cursor("b", 0))
    assert shape(last) == [("b", [0])] and last.next_cursor is None
    assert shape(described(harness)) == [("a", [0, 1]), ("b", [0])]


def test_described_topics_by_name(harness):
    response = described(harness, "b", "nope", "bad name", "a")
    assert [(topic.name, Error(topic.error_code)) for topic in response.topics] == [
        ("a", Error.NONE), ("b", Error.NONE), ("bad name", Error.INVALID_TOPIC_EXCEPTION),
        ("nope", Error.UNKNOWN_TOPIC_OR_PARTITION),
    ] or [topic.name for topic in response.topics] == sorted(["b", "nope", "bad name", "a"])  # fmt: skip
    partition = response.topics[0].partitions[0]
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])
    assert response.topics[0].topic_authorized_operations == ALL_OPERATIONS[ResourceType.TOPIC]


def test_bad_cursors(harness):
    for bad, names in ((cursor("a", -1), ()), (cursor("x", 0), ("a",))):
        response = described(harness, *names, cursor=bad)
        assert all(topic.error_code == Error.INVALID_REQUEST for topic in response.topics)
