"""Topics are created, extended and deleted with the records and messages of Apache Kafka 4.3."""

import pytest

from kafkapy.controller.broker_registration import begin_controlled_shutdown, fence_broker
from kafkapy.controller.topics import MorePartitions, NewTopic, create_partitions, create_topics, delete_topics
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.topics_image import DIRECTORY_UNASSIGNED
from kafkapy.types import ZERO_UUID
from tests.harness.metadata import (
    DIRECTORY,
    OTHER_DIRECTORY,
    bootstrapped,
    broker_config,
    commit,
    registration,
    replay,
    rules,
    with_brokers,
    with_topic,
)

ONE = with_brokers(bootstrapped(), 1)
THREE = with_brokers(bootstrapped(), 1, 2, 3)


def create(image, *topics, **options):
    return create_topics(image, topics, rules(), **options)


def failed(image, topic):
    result = create(image, topic)
    assert not result.records
    error = result.response[topic.name].error
    return Error(error.error), error.message


def test_records_in_kafkas_order():
    result = create(ONE, NewTopic("t", 2, 1, configs={"retention.ms": "5"}))
    kinds = [(type(message).__name__, version) for message, version in result.records]
    assert kinds == [("TopicRecord", 0), ("ConfigRecord", 0), ("PartitionRecord", 2), ("PartitionRecord", 2)]
    partition = commit(ONE, result).topics.by_name["t"].partitions[1]
    assert partition.replicas == partition.isr == (1,)
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 0, 0)
    assert partition.directories == (DIRECTORY,)
    created = result.response["t"]
    assert (created.num_partitions, created.replication_factor, created.overrides) == (2, 1, {"retention.ms": "5"})


def test_defaults_of_the_broker():
    topic_rules = rules(broker_config(num_partitions="4", default_replication_factor="2"))
    created = create_topics(THREE, [NewTopic("t")], topic_rules).response["t"]
    assert (created.num_partitions, created.replication_factor) == (4, 2)


def test_validate_only_writes_nothing():
    result = create(ONE, NewTopic("t", 3, 1), validate_only=True)
    assert not result.records
    assert (result.response["t"].num_partitions, result.response["t"].topic_id) == (3, ZERO_UUID)


def test_one_bad_topic_leaves_the_others_alone():
    result = create(ONE, NewTopic("good", 1, 1), NewTopic("bad", 0, 1))
    assert list(commit(ONE, result).topics.by_name) == ["good"]
    assert result.response["bad"].error.error == Error.INVALID_PARTITIONS


MANUAL = "The manual partition assignment includes "


@pytest.mark.parametrize(
    ("topic", "error", "message"),
    [
        (NewTopic("t", 0, 1), Error.INVALID_PARTITIONS,
         "Number of partitions was set to an invalid non-positive value."),
        (NewTopic("t", 1, 0), Error.INVALID_REPLICATION_FACTOR,
         "Replication factor must be larger than 0, or -1 to use the default value."),
        (NewTopic("t", 1, 3), Error.INVALID_REPLICATION_FACTOR,
         "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because "
         "only 1 broker(s) are registered or some brokers have all their log directories cordoned."),
        (NewTopic("t", 2, -1, [(0, [1])]), Error.INVALID_REQUEST,
         "A manual partition assignment was specified, but numPartitions was not set to -1."),
        (NewTopic("t", -1, 1, [(0, [1])]), Error.INVALID_REQUEST,
         "A manual partition assignment was specified, but replication factor was not set to -1."),
        (NewTopic("t", assignments=[(0, [1]), (0, [1])]), Error.INVALID_REPLICA_ASSIGNMENT,
         "Found multiple manual partition assignments for partition 0"),
        (NewTopic("t", assignments=[(0, [1]), (2, [1])]), Error.INVALID_REPLICA_ASSIGNMENT,
         "partitions should be a consecutive 0-based integer sequence"),
        (NewTopic("t", assignments=[(0, [])]), Error.INVALID_REPLICA_ASSIGNMENT, MANUAL + "an empty replica list."),
        (NewTopic("t", assignments=[(0, [1, 1])]), Error.INVALID_REPLICA_ASSIGNMENT,
         MANUAL + "the broker 1 more than once."),
        (NewTopic("t", assignments=[(0, [5])]), Error.INVALID_REPLICA_ASSIGNMENT,
         MANUAL + "broker 5, but no such broker is registered."),
        (NewTopic("t", 1, 1, configs={"foo": "1"}), Error.INVALID_CONFIG, "Unknown topic config name: foo"),
        (NewTopic("t", 1, 1, configs={"retention.ms": None}), Error.INVALID_CONFIG,
         "Null value not supported for topic configs: retention.ms"),
        (NewTopic("__cluster_metadata", 1, 1), Error.INVALID_REQUEST,
         "Creation of internal topic __cluster_metadata is prohibited."),
    ],
)  # fmt: skip
def test_invalid_topics_are_refused_in_kafkas_words(topic, error, message):
    assert failed(ONE, topic) == (error, message)


def test_replicas_of_uneven_number():
    topic = NewTopic("t", assignments=[(0, [1, 2]), (1, [3])])
    assert failed(THREE, topic) == (
        Error.INVALID_REPLICA_ASSIGNMENT,
        MANUAL + "a partition with 1 replica(s), but this is not consistent with previous partitions, which have 2 "
        "replica(s).",
    )


def test_names_that_exist_or_collide_are_refused():
    image = with_topic(with_topic(ONE, "t"), "a.b")
    assert failed(image, NewTopic("t", 1, 1)) == (Error.TOPIC_ALREADY_EXISTS, "Topic 't' already exists.")
    assert failed(image, NewTopic("a_b", 1, 1)) == (
        Error.INVALID_TOPIC_EXCEPTION, "Topic 'a_b' collides with existing topic: a.b",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        ([NewTopic("t", 10_001, 1)], "Excessively large number of partitions per request."),
        ([NewTopic("t", 10_000, 1)], "Unable to perform excessively large batch operation."),
        ([NewTopic("t", 5000, 1), NewTopic("u", 5000, 1)], "Unable to perform excessively large batch operation."),
    ],
)
def test_too_many_partitions_in_one_request_are_refused(topics, message):
    with pytest.raises(ApiError) as raised:
        create(ONE, *topics)
    assert (raised.value.error, raised.value.message) == (Error.POLICY_VIOLATION, message)
    assert len(create(ONE, NewTopic("t", 9999, 1)).records) == 10_000


def test_fenced_brokers_get_replicas_only_if_there_are_not_enough_others():
    image = commit(THREE, fence_broker(THREE, 2))
    partitions = commit(image, create(image, NewTopic("t", 6, 2))).topics.by_name["t"].partitions
    assert all(2 not in partition.replicas for partition in partitions.values())
    partition = commit(image, create(image, NewTopic("t", 1, 3))).topics.by_name["t"].partitions[0]
    assert set(partition.replicas) == {1, 2, 3} and set(partition.isr) == {1, 3}
    assert partition.leader == partition.isr[0]


def test_a_broker_in_controlled_shutdown_gets_no_replicas():
    image = commit(THREE, begin_controlled_shutdown(THREE, 2))
    partitions = commit(image, create(image, NewTopic("t", 6, 2))).topics.by_name["t"].partitions
    assert all(2 not in partition.replicas for partition in partitions.values())
    error, message = failed(image, NewTopic("t", 1, 3))
    assert error is Error.INVALID_REPLICATION_FACTOR and "because only 2 broker(s) are registered" in message
    image = commit(with_topic(THREE, "t", 1, 3), begin_controlled_shutdown(THREE, 2))
    assert grown(image, 2)[1:] == [error, message.removeprefix("Unable to replicate the partition 3 time(s): ")]


def test_manual_assignments_may_name_fenced_brokers_but_not_only_them():
    image = commit(commit(THREE, fence_broker(THREE, 1)), fence_broker(THREE, 2))
    replicas = commit(image, create(image, NewTopic("t", assignments=[(0, [1, 3, 2])])))
    partition = replicas.topics.by_name["t"].partitions[0]
    assert (partition.replicas, partition.isr, partition.leader) == ((1, 3, 2), (3,), 3)
    error, message = failed(image, NewTopic("t", assignments=[(0, [1, 2])]))
    assert error is Error.INVALID_REPLICA_ASSIGNMENT
    assert message.endswith("for partition 0 are fenced or in controlled shutdown.")


def test_without_a_live_broker_nothing_is_created():
    image = commit(ONE, fence_broker(ONE, 1))
    assert failed(image, NewTopic("t", 1, 1)) == (
        Error.INVALID_REPLICATION_FACTOR,
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have all their log "
        "directories cordoned.",
    )


def test_several_directories_are_left_to_the_broker():
    broker = registration(1, (DIRECTORY, OTHER_DIRECTORY))._replace(epoch=ONE.brokers[1].epoch, fenced=False)
    image = ONE._replace(brokers={1: broker})
    topic = NewTopic("t", 2, 1)
    partitions = commit(image, create_topics(image, [topic], rules())).topics.by_name["t"].partitions
    assert [partition.directories[0] for partition in partitions.values()] == [DIRECTORY_UNASSIGNED] * 2


def grown(image, *args):
    result = create_partitions(image, [MorePartitions("t", *args)], rules())
    error = result.response["t"]
    return [commit(image, result), Error(error.error), error.message]


def test_partitions_are_added():
    image, error, _ = grown(with_topic(ONE, "t", 2), 4)
    assert error is Error.NONE and sorted(image.topics.by_name["t"].partitions) == [0, 1, 2, 3]
    image, _, _ = grown(with_topic(THREE, "t", 1, 2), 2, [[3, 1]])
    assert image.topics.by_name["t"].partitions[1].replicas == (3, 1)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((2,), Error.INVALID_PARTITIONS, "Topic already has 2 partition(s)."),
        ((1,), Error.INVALID_PARTITIONS, "The topic t currently has 2 partition(s); 1 would not be an increase."),
        ((4, [[1]]), Error.INVALID_REPLICA_ASSIGNMENT,
         "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."),
        ((3, [[1, 1]]), Error.INVALID_REPLICA_ASSIGNMENT, MANUAL + "the broker 1 more than once."),
    ],
)  # fmt: skip
def test_partitions_cannot_be_added(arguments, error, message):
    before = with_topic(ONE, "t", 2)
    after, *found = grown(before, *arguments)
    assert found == [error, message] and after.topics == before.topics


def test_unknown_topic_cannot_grow():
    assert grown(ONE, 2)[1] is Error.UNKNOWN_TOPIC_OR_PARTITION


def test_topics_are_deleted_by_id():
    image = with_topic(with_topic(ONE, "a"), "b")
    a = image.topics.by_name["a"].topic_id
    result = delete_topics(image, [a, a, DIRECTORY])
    assert list(commit(image, result).topics.by_name) == ["b"]
    assert result.response[a].error == 0 and result.response[DIRECTORY].error == Error.UNKNOWN_TOPIC_ID
    assert replay(image, *result.records).topics.by_id.keys() == {image.topics.by_name["b"].topic_id}
