"""CreateTopics, DeleteTopics, CreatePartitions in every version."""

import pytest

from kafkapy.config.table import TOPIC_ROWS
from kafkapy.errors import Error
from kafkapy.protocol.messages.create_partitions import CreatePartitionsRequest
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.protocol.messages.delete_topics import DeleteTopicsRequest
from kafkapy.server.handlers.topics import handle_create_partitions, handle_create_topics, handle_delete_topics
from kafkapy.types import ZERO_UUID
from tests.harness.admin import AdminHarness, error_of


@pytest.fixture
def harness(tmp_path):
    harness = AdminHarness(tmp_path / "data")
    yield harness
    harness.loop.stop()


def creatable(name, partitions=1, factor=1, **configs):
    return CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=factor, assignments=[],
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )  # fmt: skip


def create(harness, version, *topics, **fields):
    response = harness.send(handle_create_topics, CreateTopicsRequest(topics=list(topics), **fields), version)
    return {topic.name: topic for topic in response.topics}


@pytest.mark.parametrize("version", range(8))
def test_create(harness, version):
    created = create(harness, version, creatable("t", 3, retention_ms="60000"))["t"]
    topic = harness.metadata.image.topics.by_name["t"]
    assert created.error_code == 0 and len(topic.partitions) == 3
    if version >= 5:
        assert (created.num_partitions, created.replication_factor) == (3, 1)
        configs = {config.name: config for config in created.configs}
        assert list(configs) == sorted(TOPIC_ROWS)
        assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("60000", 1)
        assert configs["cleanup.policy"].config_source == 5
    if version >= 7:
        assert created.topic_id == topic.topic_id


@pytest.mark.parametrize("version", range(1, 8))
def test_errors_one_by_one(harness, version):
    answers = create(
        harness, version, creatable("good"), creatable("bad name"), creatable("twice"), creatable("twice"),
        creatable("zero", 0),
    )  # fmt: skip
    assert {name: Error(answer.error_code) for name, answer in answers.items()} == {
        "good": Error.NONE, "bad name": Error.INVALID_TOPIC_EXCEPTION, "twice": Error.INVALID_REQUEST,
        "zero": Error.INVALID_PARTITIONS,
    }  # fmt: skip
    assert answers["twice"].error_message == "Duplicate topic name."
    assert list(harness.metadata.image.topics.by_name) == ["good"]


def test_validate_only_creates_nothing(harness):
    answer = create(harness, 7, creatable("t", 2), validate_only=True)["t"]
    assert (answer.error_code, answer.num_partitions, answer.topic_id) == (0, 2, ZERO_UUID)
    assert not harness.metadata.image.topics.by_name


def test_a_request_for_too_much_fails_as_a_whole(harness):
    answers = create(harness, 7, creatable("a", 9000), creatable("b", 9000))
    assert {Error(answer.error_code) for answer in answers.values()} == {Error.POLICY_VIOLATION}


@pytest.mark.parametrize("version", range(6))
def test_delete_by_name(harness, version):
    create(harness, 7, creatable("t"))
    request = DeleteTopicsRequest(topic_names=["t", "nope"])
    answers = {each.name: each for each in harness.send(handle_delete_topics, request, version).responses}
    assert Error(answers["t"].error_code) is Error.NONE
    assert Error(answers["nope"].error_code) is Error.UNKNOWN_TOPIC_OR_PARTITION
    assert not harness.metadata.image.topics.by_name


def state(name=None, topic_id=ZERO_UUID):
    return DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=topic_id)


def test_delete_by_id_or_name(harness):
    create(harness, 7, creatable("a"), creatable("b"), creatable("c"))
    ids = {name: topic.topic_id for name, topic in harness.metadata.image.topics.by_name.items()}
    asked = [
        state("a"), state(topic_id=ids["b"]), state(topic_id=b"x" * 16), state("c", ids["c"]), state(), state("d"),
        state("d"), state(topic_id=ids["a"]),
    ]  # fmt: skip
    answers = harness.send(handle_delete_topics, DeleteTopicsRequest(topics=asked), 6).responses
    found = {(each.name, each.topic_id): error_of(each) for each in answers}
    assert found[("a", ids["a"])] in [
        (Error.NONE, None),
        (Error.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied."),
    ]
    assert found[("b", ids["b"])] == (Error.NONE, None)
    assert found[(None, b"x" * 16)] == (Error.UNKNOWN_TOPIC_ID, Error.UNKNOWN_TOPIC_ID.message)
    assert found[("c", ids["c"])] == (
        Error.INVALID_REQUEST, "You may not specify both topic name and topic id.",
    )  # fmt: skip
    assert found[(None, ZERO_UUID)] == (Error.INVALID_REQUEST, "Neither topic name nor id were specified.")
    assert found[("d", ZERO_UUID)] == (Error.INVALID_REQUEST, "Duplicate topic name.")
    assert list(harness.metadata.image.topics.by_name) == ["c"]


@pytest.mark.parametrize(("version", "error"), [(0, 42), (1, 42), (2, 42), (3, 73), (4, 73), (5, 73), (6, 73)])
def test_deletion_can_be_forbidden(tmp_path, version, error):
    harness = AdminHarness(tmp_path / "data", delete_topic_enable="false")
    create(harness, 7, creatable("t"))
    names = ["t", "absent"]
    topics = [state(name) for name in names]
    request = DeleteTopicsRequest(topics=topics) if version == 6 else DeleteTopicsRequest(topic_names=names)
    answers = harness.send(handle_delete_topics, request, version).responses
    assert [(each.name, each.topic_id, each.error_code, each.error_message) for each in answers] == [
        (name, ZERO_UUID, error, None) for name in names
    ]
    assert list(harness.metadata.image.topics.by_name) == ["t"]
    harness.loop.stop()


@pytest.mark.parametrize("version", range(4))
def test_create_partitions(harness, version):
    create(harness, 7, creatable("t", 2))

    def grow(*topics, **fields):
        asked = [
            CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=count, assignments=None)
            for name, count in topics
        ]
        request = CreatePartitionsRequest(topics=asked, **fields)
        return {each.name: error_of(each) for each in harness.send(handle_create_partitions, request, version).results}

    assert grow(("t", 4), validate_only=True) == {"t": (Error.NONE, None)}
    assert len(harness.metadata.image.topics.by_name["t"].partitions) == 2
    assert grow(("t", 4), ("u", 1), ("v", 1), ("v", 2)) == {
        "t": (Error.NONE, None),
        "u": (Error.UNKNOWN_TOPIC_OR_PARTITION, None),
        "v": (Error.INVALID_REQUEST, "Duplicate topic name."),
    }
    assert len(harness.metadata.image.topics.by_name["t"].partitions) == 4
