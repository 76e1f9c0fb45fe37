"""AlterPartitionReassignments (KIP-455): begin, replace and cancel; the transcript `controller_reassignments` has the
course of whole reassignments."""

import pytest

from kafkapy.controller.broker_registration import fence_broker
from kafkapy.controller.partitions import AlterPartition, alter_partition
from kafkapy.controller.reassignments import alter_partition_reassignments, list_partition_reassignments, reassigned
from kafkapy.controller.topics import NewTopic, create_topics
from kafkapy.errors import ApiError, Error
from kafkapy.types import TopicPartition
from tests.harness.metadata import bootstrapped, commit, rules, with_brokers

T0 = TopicPartition("t", 0)


@pytest.fixture
def image():
    """Returns four brokers and a topic on the brokers 1 and 2."""
    brokers = with_brokers(bootstrapped(elr=True), 1, 2, 3, 4)
    return commit(brokers, create_topics(brokers, [NewTopic("t", assignments=[(0, [1, 2])])], rules()))


def partition_of(image):
    return image.topics.by_name["t"].partitions[0]


def reassign(image, replicas, **options):
    result = alter_partition_reassignments(image, [(T0, replicas)], **options)
    ((_, error),) = result.response
    return commit(image, result), error


def in_sync(image, *isr):
    """Returns the image after the leader has requested this ISR."""
    partition = partition_of(image)
    request = AlterPartition(
        image.topics.by_name["t"].topic_id, 0, partition.leader_epoch, partition.partition_epoch, isr, 0
    )
    return commit(image, alter_partition(image, partition.leader, request))


@pytest.mark.parametrize(
    ("partition", "replicas", "error"),
    [
        (T0, [7], Error.INVALID_REPLICA_ASSIGNMENT),
        (T0, [1, 1], Error.INVALID_REPLICA_ASSIGNMENT),
        (T0, [], Error.INVALID_REPLICA_ASSIGNMENT),
        (T0, None, Error.NO_REASSIGNMENT_IN_PROGRESS),
        (TopicPartition("t", 9), [1], Error.UNKNOWN_TOPIC_OR_PARTITION),
        (TopicPartition("u", 0), None, Error.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_impossible_reassignments_are_refused_one_by_one(image, partition, replicas, error):
    result = alter_partition_reassignments(image, [(partition, replicas), (T0, [1, 2])])
    (first, second) = result.response
    assert first[0] == partition and first[1].error == error and not result.records
    assert second == (T0, (0, None))
    assert (first[1].message is None) == (error is Error.NO_REASSIGNMENT_IN_PROGRESS)


def test_the_current_assignment_changes_nothing(image):
    assert reassign(image, [1, 2])[0] == image


@pytest.mark.parametrize(
    ("adding", "target", "expected"),
    [
        ((), [3, 4], ((3, 4, 1, 2), (3, 4), (1, 2))),
        ((), [2, 1], ((2, 1), (), ())),
        ((2,), [1, 2], ((1, 2), (2,), ())),  # the same request again
        ((2,), [1, 3], ((1, 3, 2), (3,), (2,))),
        ((2,), [1], ((1, 2), (), (2,))),
    ],
)
def test_the_first_step_has_all_replicas(image, adding, target, expected):
    assert reassigned(partition_of(image)._replace(adding_replicas=adding), target) == expected


def test_a_fenced_broker_may_get_replicas(image):
    fenced = commit(image, fence_broker(image, 3))
    after, error = reassign(fenced, [1, 3])
    assert not error.error and partition_of(after).adding_replicas == (3,)


def test_a_reassignment_back_to_the_original_replicas_ends_at_once(image):
    moving, _ = reassign(image, [1, 3])
    assert partition_of(moving).replicas == (1, 3, 2)
    after, error = reassign(moving, [1, 2])
    partition = partition_of(after)
    assert not error.error and (partition.replicas, partition.isr) == ((1, 2), (1, 2))
    assert partition.adding_replicas == partition.removing_replicas == ()


def test_a_cancellation_restores_the_replicas_and_keeps_those_in_sync(image):
    moving = in_sync(reassign(image, [3, 4])[0], 1, 2, 3)
    after, error = reassign(moving, None)
    partition = partition_of(after)
    assert not error.error
    assert (partition.replicas, partition.isr, partition.leader) == ((1, 2), (1, 2), 1)
    assert partition.leader_epoch == partition_of(moving).leader_epoch + 1


@pytest.mark.parametrize("replicas", [[1], [1, 2, 3]])
def test_the_replication_factor_may_be_held(image, replicas):
    """KIP-860. During a reassignment the factor is that of its target."""
    after, error = reassign(image, replicas, allow_replication_factor_change=False)
    assert after == image and error.error == Error.INVALID_REPLICATION_FACTOR
    assert error.message == f"The replication factor is changed from 2 to {len(replicas)}"
    moving, _ = reassign(image, [3, 4])
    assert len(partition_of(moving).replicas) == 4
    assert reassign(moving, [1, 3], allow_replication_factor_change=False)[1].error == 0
    assert reassign(moving, [1, 3, 4], allow_replication_factor_change=False)[1].error != 0


def test_too_many_reassignments_are_refused(image):
    with pytest.raises(ApiError) as raised:
        alter_partition_reassignments(image, [(T0, [2, 1])] * 10_001)
    assert raised.value.error is Error.POLICY_VIOLATION


def test_reassignments_in_progress_are_listed_with_a_record_that_only_a_leader_can_commit(image):
    moving, _ = reassign(image, [3, 4])
    for named in (None, [("t", [0, 9]), ("u", [0])]):
        result = list_partition_reassignments(moving, named)
        assert result.response == [(T0, partition_of(moving))]
        assert commit(moving, result).topics == moving.topics and len(result.records) == 1
        assert list_partition_reassignments(image, named).response == []
    assert list_partition_reassignments(moving, []).response == []
